"""What the bot must be allowed at GitHub: one table, for setup, doctor and the documents."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct


class AppPermission(Struct, frozen=True, kw_only=True):
    """One permission of a repository, by GitHub's own key."""

    name: str
    level: Literal["read", "write"]
    why: str


#: The least with which everything works. Whoever may write may read as well.
PERMISSIONS: tuple[AppPermission, ...] = (
    AppPermission(
        name="actions", level="write", why="read logs of failed jobs, run flaky ones again"
    ),
    AppPermission(name="checks", level="write", why="read checks, run flaky ones again, report"),
    AppPermission(
        name="contents", level="write", why="fetch, push branches, merge, delete branches"
    ),
    AppPermission(name="issues", level="write", why="read issues, comment, react, label, close"),
    AppPermission(name="merge_queues", level="write", why="hear of merge queues, use them"),
    AppPermission(name="metadata", level="read", why="see the repository, and who may write to it"),
    AppPermission(
        name="pull_requests", level="write", why="open pull requests, read reviews, reply"
    ),
    AppPermission(name="statuses", level="read", why="read the statuses of commits"),
)


def missing_permissions(granted: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each permission an App was not granted; `granted` is name -> level."""
    return tuple(
        f"the permission {one.name}: {one.level} is missing"
        f" (it has {granted.get(one.name) or 'none'}); it is needed to {one.why}"
        for one in PERMISSIONS
        if granted.get(one.name) not in {one.level, "write", "admin"}
    )
