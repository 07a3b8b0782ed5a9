"""What a visitor may see and do, by their role in each project."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from litestar.exceptions import (
    NotFoundException,
    PermissionDeniedException,
    ServiceUnavailableException,
)

from bot.github.errors import GitHubFailure
from bot.github.write_access import WriteAccess
from bot.intake.authorize import TO_AGENT, may_give
from bot.store import Store
from bot.text import page_text
from bot.web.visitor import Visitor
from config.settings import ProjectSettings
from lifecycle.model.roles import Role

_log = logging.getLogger(__name__)

#: The permission at GitHub that gives a role.
PERMISSIONS: Final[Mapping[Role, str]] = {
    Role.READ: "read",
    Role.TRIAGE: "triage",
    Role.WRITE: "write",
    Role.ADMIN: "admin",
}


class Reach:
    """A visitor's roles. They are read from GitHub unless a recent reading is known."""

    def __init__(
        self,
        visitor: Visitor,
        projects: Mapping[str, ProjectSettings],
        people: WriteAccess | None,
        within: timedelta,
    ) -> None:
        """`within` is how old a reading may be. Without `people`, only the page token has roles."""
        self.visitor = visitor
        self._projects = projects
        self._people = people
        self._within = within

    @property
    def is_whole(self) -> bool:
        """Whether the visitor has the page token, which belongs to no person."""
        return not self.visitor.login

    def role(self, project: str) -> Role:
        """Return the role in a project, at most `visitor.most`; raise 503 if it cannot be read."""
        visitor, known = self.visitor, self._projects.get(project)
        if self.is_whole:
            return visitor.most
        if known is None or self._people is None:
            return Role.NONE
        with github_errors():
            found = self._people.role(
                known.repository, visitor.login, user=visitor.user, within=self._within
            )
        return min(found, visitor.most)

    def roles(self) -> dict[str, Role]:
        """Return the visitor's role in each project in which they have one.

        Leaves out projects whose permissions cannot be read now. Raises 503 if that leaves none.
        """
        found: dict[str, Role] = {}
        failed: ServiceUnavailableException | None = None
        for project in self._projects:
            try:
                role = self.role(project)
            except ServiceUnavailableException as failure:
                _log.warning("%s: @%s: %s", project, self.visitor.login, failure.extra)
                failed = failure
                continue
            if role:
                found[project] = role
        if failed and not found:
            raise failed
        return found

    def everywhere(self) -> Role:
        """Return the lowest of the visitor's roles in all projects.

        It is `Role.NONE` if the visitor has no role in one of the projects, or if their role in one
        of them cannot be read now.
        Raises 503 as `roles` does.
        """
        if self.is_whole:
            return self.visitor.most
        roles = self.roles()
        return min((roles.get(one, Role.NONE) for one in self._projects), default=Role.NONE)

    def snapshot(self) -> Callable[[str], Role] | None:
        """Return the visitor's roles at this moment: a function from a project to the role there.

        Returns None if the visitor has no role in any project. Raises 503 as `roles` does.
        """
        if self.is_whole:
            return lambda _: self.visitor.most
        roles = self.roles()
        return (lambda project: roles.get(project, Role.NONE)) if roles else None

    def projects(self) -> tuple[str, ...] | None:
        """Return the projects whose sessions the visitor sees; None for all, even former ones."""
        return None if self.is_whole else tuple(self.roles())

    def seen(self) -> dict[str, ProjectSettings]:
        """Return the projects that the visitor sees, by name."""
        seen = self.projects()
        projects = sorted(self._projects.items())
        return {name: one for name, one in projects if seen is None or name in seen}

    def repositories(self) -> tuple[str, ...] | None:
        """Return the repositories of the projects that the visitor sees; None for all."""
        return None if self.is_whole else tuple(one.repository for one in self.seen().values())

    def check_command(self, repository: str, kind: str) -> None:
        """Raise 403 unless the visitor may give a command, or 503 if GitHub does not answer.

        The person needs the permission that the same command needs in a comment; a personal token
        must also have the scope for it. Everybody with the page token may give every command.
        """
        if self.is_whole:
            return
        wanted = Role.TRIAGE if kind in TO_AGENT else Role.WRITE
        with github_errors():
            may = self._people is not None and may_give(
                self._people, repository, self.visitor.login, kind
            )
        if not may or self.visitor.most < wanted:
            raise refused(wanted, repository)


def refused(role: Role, where: str) -> PermissionDeniedException:
    """Return the error 403 for a visitor who lacks `role` in `where`, such as a repository."""
    return PermissionDeniedException(
        f"This requires the permission `{PERMISSIONS[role]}` in {where}.",
        extra={
            "remedy": "Ask an administrator of the repository for it, or use a personal token with"
            " a wider scope."
        },
    )


def no_session(store: Store, reach: Reach, id: str) -> NotFoundException:
    """Return the error 404 for a session that does not exist, or that the visitor may not see.

    If somebody has requested a new session that was given this ID, the error says that it will be
    opened soon, or why the bot refused to open it. Only visitors who may see its project get this
    information.
    """
    if reach.role(id.rpartition("-")[0]):
        if store.commands.requested(id):
            remedy = "Try again in a second, once the bot has opened it."
            return NotFoundException(f"No session {id} yet.", extra={"remedy": remedy})
        if why := store.commands.not_opened(id):
            return NotFoundException(f"The session {id} was not opened: {page_text.line(why)}.")
    return NotFoundException(f"No session {id}.")


@contextmanager
def github_errors() -> Iterator[None]:
    """Turn a `GitHubFailure`, such as for an unreadable permission, into the HTTP error 503."""
    try:
        yield
    except GitHubFailure as failure:
        raise ServiceUnavailableException(
            "Your permissions cannot be read from GitHub now.",
            extra={"remedy": f"Try again in a minute. {failure}"},
        ) from failure
