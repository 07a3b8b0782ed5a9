"""The freezes that a visitor sees, adds and removes. Forbidden requests raise an HTTP error."""

from litestar.exceptions import ClientException

from bot.store import Freeze, Store
from bot.web.reach import Reach, refused
from lifecycle.model.roles import Role


class FreezeViews:
    """Reads and changes freezes of everything (empty `scope`) or of a project (`project:NAME`)."""

    def __init__(self, store: Store, reach: Reach) -> None:
        self._freezes = store.freezes
        self._reach = reach

    def all(self) -> list[Freeze]:
        """Return the freezes in effect that the visitor sees."""
        seen = self._reach.projects()
        return [
            one
            for one in self._freezes.all()
            if seen is None or not one.scope or one.scope.removeprefix("project:") in seen
        ]

    def add(self, scope: str, actor: str) -> list[Freeze]:
        """Freeze everything or a project, and return the freezes that the visitor sees.

        Raises 400 for another kind of scope, 404 for a project that the visitor does not see, and
        403 without the role `admin`.
        """
        self._check(scope)
        self._freezes.add(scope, actor)
        return self.all()

    def remove(self, scope: str, actor: str) -> list[Freeze]:
        """Undo a freeze of everything or a project, and return those that the visitor still sees.

        Does nothing if the scope is not frozen. Raises 400 for another kind of scope, 404 for a
        project that the visitor does not see, and 403 without the role `admin`.
        """
        self._check(scope)
        self._freezes.remove(scope, actor)
        return self.all()

    def may_change(self, scope: str) -> bool:
        """Whether the visitor may freeze and unfreeze a scope, provided that it exists."""
        if not scope:
            return self._reach.everywhere() >= Role.ADMIN
        return self._reach.role(scope.removeprefix("project:")) >= Role.ADMIN

    def _check(self, scope: str) -> None:
        kind, _, name = scope.partition(":")
        projects = self._reach.seen()
        if not scope or (kind == "project" and name in projects):
            if not self.may_change(scope):
                where = projects[name].repository if scope else "the repositories of all projects"
                raise refused(Role.ADMIN, where)
            return
        known = ", ".join(projects) or "none"
        raise ClientException(
            f"There is no scope {scope[:80]!r}.",
            status_code=404 if kind == "project" else 400,
            extra={
                "remedy": f"Use `all` for everything or project:NAME (known: {known})."
                " For one session, send the command `freeze`."
            },
        )
