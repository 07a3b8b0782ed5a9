"""What is kept for how long, and what belongs to nobody: found, explained, let go of.

Nothing of a session that is not over goes. Every step may be repeated after a crash.
"""

import fcntl
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bot.archive.archiver import Archive
from bot.store import ResourceOwner, Store
from bot.system.clock import Clock
from bot.system.locations import Locations
from config.settings import RetentionSettings as Days
from lifecycle.model.policy import Policy
from runtimes.base import RuntimeFailure
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.worktree import Worktree, remove_tree

log = logging.getLogger(__name__)

_OF_RUN = re.compile(r"(?P<session>.+)_(r\d+|home)")
_GONE = re.compile(r"\.(?P<session>.+)\.gone")
_NOBODY = "no session of this name is known"
_NOT_OVER = "its session is not over"
_DAY_SECONDS = 86_400.0


class Thing(StrEnum):
    """What can be kept or go."""

    DELIVERIES = "deliveries"
    RUN = "run folder"
    ARCHIVE = "archive"
    HISTORY = "history"
    WORKSPACE = "workspace"
    PRESERVED = "preserved work"
    PROGRAM = "program"


class Item(Struct, frozen=True, kw_only=True):
    """One thing that is kept or goes, and why."""

    thing: Thing
    name: str
    goes: bool
    why: str
    bytes: int = 0  #: What it takes, roughly.


class Busy(Exception):
    """Somebody else is at it."""


class _Found(NamedTuple):
    item: Item
    remove: Callable[[], object]
    size: Callable[[], int]  #: Asked for only where it matters: it may take a while.


class Retention:
    """Finds what has outlived its days. What it does, it does for one caller at a time."""

    def __init__(
        self,
        store: Store,
        locations: Locations,
        archive: Archive,
        days: Days,
        policy_of: Callable[[str], Policy],
        clock: Clock,
        release: Callable[[ResourceOwner], object] | None = None,
    ) -> None:
        """`release` gives a workspace back; None: the bot does, when it visits the session."""
        self._store = store
        self._locations = locations
        self._paths = locations.paths
        self._archive = archive
        self._days = days
        self._policy_of = policy_of
        self._clock = clock
        self._release = release or (lambda tenant: store.sessions.wake(tenant.id))

    def plan(self) -> list[Item]:
        """Everything there is with what becomes of it, orphans included. Touches nothing."""
        return [replace(found.item, bytes=found.size()) for found in self._found(orphans=True)]

    def apply(self, *, orphans: bool = False) -> list[Item]:
        """Let go of what is to go, and say so; what could not be removed is told as kept.

        `orphans`: also of what belongs to no session. Raises `Busy`.
        """
        with self._alone():
            for tenant in self._store.retention.owners():
                if tenant.over:
                    self._archive.pack(tenant.id)
            return [_removed(found) for found in self._found(orphans) if found.item.goes]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self._paths.data / "retention.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy("another cleanup is under way; try again when it has ended") from None
            yield

    def _found(self, orphans: bool) -> Iterator[_Found]:
        # Listed before the sessions are read, so that what is new by then belongs to somebody.
        folders = list(self._folders())
        programs = sorted(self._locations.runtime.look()) if orphans else []
        tenants = {tenant.id: tenant for tenant in self._store.retention.owners()}

        yield self._deliveries()
        for tenant in tenants.values():
            yield from self._history(tenant)
        for thing, folder in folders:
            if (owner := tenants.get(_owner(folder))) is not None:
                yield from self._of_session(thing, folder, owner)
            elif orphans:
                yield self._orphan(thing, folder)
        yield from self._preserved(tenants)
        yield from self._strays(programs, tenants)

    def _folders(self) -> Iterator[tuple[Thing, Path]]:
        paths = self._paths
        rooms = {
            Thing.RUN: paths.sessions,
            Thing.ARCHIVE: paths.archive,
            Thing.WORKSPACE: paths.workspaces,
        }
        for thing, room in rooms.items():
            if room.is_dir():
                yield from ((thing, path) for path in sorted(room.iterdir()) if path.is_dir())

    # -- by age ----------------------------------------------------------------------------------

    def _deliveries(self) -> _Found:
        days = self._days.transient_days
        pile = self._store.retention.deliveries_size(self._clock() - timedelta(days=days))
        why = f"worked through more than {days:g} days ago"
        item = Item(
            thing=Thing.DELIVERIES, name=f"{pile.rows} webhooks", goes=pile.rows > 0, why=why
        )

        def remove() -> None:
            now = self._clock()
            self._store.deliveries.prune(now, days * _DAY_SECONDS)
            self._store.outbox.prune(now - timedelta(days=days))

        return _Found(item, remove, lambda: pile.bytes)

    def _history(self, tenant: ResourceOwner) -> Iterator[_Found]:
        goes, why = self._outlived(tenant.ended, self._days.durable_days)
        if tenant.over and goes and (told := self._store.retention.history_size(tenant.id)).rows:
            item = Item(thing=Thing.HISTORY, name=tenant.id, goes=True, why=why)
            remove = self._if_over(tenant, partial(self._store.retention.delete_history, tenant.id))
            yield _Found(item, remove, lambda: told.bytes)

    def _of_session(self, thing: Thing, folder: Path, tenant: ResourceOwner) -> Iterator[_Found]:
        if folder == self._paths.home(tenant.id):
            return  # It goes with the workspace.
        days, parts = self._days.transient_days, [folder]
        remove: Callable[[], object] = partial(remove_tree, folder)
        if thing is Thing.WORKSPACE:
            days = self._policy_of(tenant.project).workspace_days
            remove = partial(self._release, tenant)
            parts.append(self._paths.home(tenant.id))
        goes, why = self._outlived(tenant.ended, days)
        if not tenant.over:
            goes, why = False, _NOT_OVER
        item = Item(thing=thing, name=folder.name, goes=goes, why=why)
        yield _Found(item, self._if_over(tenant, remove), lambda: sum(map(_size, parts)))

    def _outlived(
        self, since: datetime | None, days: float, ended: str = "ended"
    ) -> tuple[bool, str]:
        age = (self._clock() - since) / timedelta(days=1) if since else 0.0
        return age >= days, f"{ended} {age:.1f} days ago, and is kept for {days:g}"

    def _if_over(self, tenant: ResourceOwner, remove: Callable[[], object]) -> Callable[[], object]:
        """Remove it only where nobody brought the session back meanwhile."""

        def checked() -> None:
            now = self._store.retention.owner(tenant.id)
            if now is not None and now.over:
                remove()

        return checked

    def _preserved(self, tenants: Mapping[str, ResourceOwner]) -> Iterator[_Found]:
        for project in self._locations.projects:
            mirror = self._locations.mirror(project)
            try:
                all_kept = mirror.preserved() if mirror.path.is_dir() else []
            except GitFailure as failure:
                log.warning("the mirror of %s: %s", project, failure)
                item = Item(thing=Thing.PRESERVED, name=project, goes=False, why=str(failure))
                yield _Found(item, lambda: None, lambda: 0)
                continue
            for kept in all_kept:
                tenant = tenants.get(kept.session)
                goes, why = self._outlived(kept.at, self._days.preserved_days, "kept")
                if tenant is not None and not tenant.over:
                    goes, why = False, _NOT_OVER
                name = f"{kept.session} run {kept.run}"
                item = Item(thing=Thing.PRESERVED, name=name, goes=goes, why=why)
                yield _Found(item, partial(mirror.forget, kept), partial(mirror.size_of, kept))

    # -- what belongs to nobody ------------------------------------------------------------------

    def _orphan(self, thing: Thing, folder: Path) -> _Found:
        goes, why = True, _NOBODY
        remove: Callable[[], object] = partial(remove_tree, folder)
        if _GONE.fullmatch(folder.name):
            why = "was being removed when the bot ended"
        elif thing is Thing.WORKSPACE:
            project = self._project_of(folder.name)
            if project:
                remove = partial(self._keep_and_remove, project, folder)
            else:
                goes, why = False, f"{_NOBODY}, and no project has a mirror to keep its work in"
        item = Item(thing=thing, name=folder.name, goes=goes, why=why)
        return _Found(item, remove, partial(_size, folder))

    def _project_of(self, session: str) -> str:
        """The configured project with a mirror that a session's name begins with, or nothing."""
        fitting = [
            name
            for name in self._locations.projects
            if session.startswith(f"{name}-") and self._locations.mirror(name).path.is_dir()
        ]
        return max(fitting, key=len, default="")

    def _keep_and_remove(self, project: str, folder: Path) -> None:
        mirror = self._locations.mirror(project)
        workspace = Worktree(folder.parent, folder.name, "orphaned", str(mirror.path))
        mirror.preserve(workspace, 0)
        workspace.remove()

    def _strays(
        self, programs: Sequence[str], tenants: Mapping[str, ResourceOwner]
    ) -> Iterator[_Found]:
        """Programs that run for nobody, or for a session that is over."""
        runtime = self._locations.runtime
        for name in programs:
            tenant = tenants.get(_owner(Path(name)))
            if tenant is None or tenant.over:
                why = "its session is over" if tenant else _NOBODY
                item = Item(thing=Thing.PROGRAM, name=name, goes=True, why=why)
                yield _Found(item, partial(runtime.stop, runtime.handle(name)), lambda: 0)


def _removed(found: _Found) -> Item:
    """Remove it; the trouble of one is not that of the others."""
    item = found.item
    try:
        item = replace(item, bytes=found.size())
        found.remove()
    except (OSError, GitFailure, RuntimeFailure) as error:
        log.warning("%s %s: not removed: %s", item.thing, item.name, error)
        return replace(item, goes=False, why=f"could not be removed: {error}")
    log.info("%s %s: removed: %s", item.thing, item.name, item.why)
    return item


def _owner(folder: Path) -> str:
    run = _OF_RUN.fullmatch(folder.name)
    return run["session"] if run else folder.name


def _size(folder: Path) -> int:
    """What a folder takes on disk; what cannot be read counts nothing."""
    found = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.lstat(Path(place, name)).st_blocks * 512
            except OSError:
                continue
    return found
