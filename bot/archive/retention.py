"""Finds and removes expired data, and data that belongs to no known session.

Data of a session that is not over is never removed. Every step is safe to repeat after a crash.
"""

import fcntl
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
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
from runtimes.host import Folder, FolderKind, home_of, session_of
from runtimes.workspaces.git import GitFailure

log = logging.getLogger(__name__)

_NOBODY = "no session of this name is known"
_NOT_OVER = "its session is not over"


class Thing(StrEnum):
    """A kind of data."""

    DELIVERIES = "deliveries"
    RUN = "run folder"
    ARCHIVE = "archive"
    HISTORY = "history"
    WORKSPACE = "workspace"
    PRESERVED = "preserved work"
    PROGRAM = "program"


_THINGS: Mapping[FolderKind, Thing] = {
    FolderKind.RUN: Thing.RUN,
    FolderKind.HOME: Thing.RUN,
    FolderKind.WORKSPACE: Thing.WORKSPACE,
    FolderKind.REMOVED: Thing.WORKSPACE,
}


class Item(Struct, frozen=True, kw_only=True):
    """One piece of data, whether it is removed, and why."""

    thing: Thing
    name: str
    goes: bool
    why: str
    bytes: int = 0  #: Roughly, on disk or in the database.


class Busy(Exception):
    """Another process is cleaning up."""


class _Found(NamedTuple):
    item: Item
    remove: Callable[[], object]
    size: Callable[[], int]  #: Called only if needed, because it may be slow.


@dataclass(eq=False)
class Retention:
    """Plans and applies the removal of data, for one caller at a time."""

    store: Store
    locations: Locations
    archive: Archive
    days: Days
    policy_of: Callable[[str], Policy]  #: By project.
    clock: Clock
    #: Releases a workspace; by default its session is woken, which decides that.
    release: Callable[[ResourceOwner], object] | None = None

    def __post_init__(self) -> None:
        self._records = self.locations.host.records

    def plan(self) -> list[Item]:
        """List all data, including orphans, with what would be deleted or kept. Read-only."""
        return [replace(found.item, bytes=found.size()) for found in self._found(orphans=True)]

    def apply(self, *, orphans: bool = False) -> list[Item]:
        """Remove expired data, with `orphans` also what belongs to no session. Raises `Busy`.

        Returns what was to be removed; an item that could not be is returned as kept.
        """
        with self._alone():
            for owner in self.store.sessions.owners():
                if owner.over:
                    self.archive.pack(owner.id)
            return [_removed(found) for found in self._found(orphans) if found.item.goes]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.locations.paths.data / "retention.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy("another cleanup is under way; try again when it has ended") from None
            yield

    def _found(self, orphans: bool) -> Iterator[_Found]:
        # Listed before the sessions are read, so that a new session is known by then.
        folders, archived = self._records.folders(), self.archive.sessions()
        running = sorted(self.locations.host.runtime.look()) if orphans else []
        owners = {owner.id: owner for owner in self.store.sessions.owners()}

        yield self._deliveries()
        for owner in owners.values():
            yield from self._history(owner)
        for folder in folders:
            known = None if folder.kind is FolderKind.REMOVED else owners.get(folder.session)
            if known is not None:
                yield from self._folder(folder, known)
            elif orphans:
                yield self._orphan(folder)
        for session in archived:
            if (known := owners.get(session)) is not None or orphans:
                yield self._archived(session, known)
        yield from self._preserved(owners)
        yield from self._strays(running, owners)

    # -- by age ----------------------------------------------------------------------------------

    def _deliveries(self) -> _Found:
        days = self.days.transient_days
        size = self.store.deliveries.processed_size(self.clock() - timedelta(days=days))
        why = f"processed more than {days:g} days ago"
        item = Item(
            thing=Thing.DELIVERIES, name=f"{size.rows} webhooks", goes=size.rows > 0, why=why
        )

        def remove() -> None:
            before = self.clock() - timedelta(days=days)
            self.store.deliveries.prune(before)
            self.store.outbox.prune(before)

        return _Found(item, remove, lambda: size.bytes)

    def _history(self, owner: ResourceOwner) -> Iterator[_Found]:
        goes, why = self._expired(owner.ended_at, self.days.durable_days)
        if owner.over and goes and (size := self.store.history.size(owner.id)).rows:
            item = Item(thing=Thing.HISTORY, name=owner.id, goes=True, why=why)
            remove = self._if_over(owner, partial(self.store.history.delete, owner.id))
            yield _Found(item, remove, lambda: size.bytes)

    def _folder(self, folder: Folder, owner: ResourceOwner) -> Iterator[_Found]:
        if folder.kind is FolderKind.HOME:
            return  # Removed with the workspace.
        days, parts = self.days.transient_days, [folder]
        remove: Callable[[], object] = partial(self._records.remove, folder)
        if folder.kind is FolderKind.WORKSPACE:
            days = self.policy_of(owner.project).workspace_days
            wake = partial(self.store.sessions.wake, owner.id)
            remove = partial(self.release, owner) if self.release else wake
            parts.append(home_of(owner.id))
        size = partial(sum, map(self._records.folder_bytes, parts))
        yield self._expiring(_THINGS[folder.kind], folder.name, owner, days, remove, size)

    def _archived(self, session: str, owner: ResourceOwner | None) -> _Found:
        remove, size = partial(self.archive.remove, session), partial(self.archive.size, session)
        if owner is not None:
            days = self.days.transient_days
            return self._expiring(Thing.ARCHIVE, session, owner, days, remove, size)
        return _Found(Item(thing=Thing.ARCHIVE, name=session, goes=True, why=_NOBODY), remove, size)

    def _expiring(
        self,
        thing: Thing,
        name: str,
        owner: ResourceOwner,
        days: float,
        remove: Callable[[], object],
        size: Callable[[], int],
    ) -> _Found:
        goes, why = self._expired(owner.ended_at, days)
        if not owner.over:
            goes, why = False, _NOT_OVER
        item = Item(thing=thing, name=name, goes=goes, why=why)
        return _Found(item, self._if_over(owner, remove), size)

    def _expired(
        self, since: datetime | None, days: float, ended: str = "ended"
    ) -> tuple[bool, str]:
        age = (self.clock() - since) / timedelta(days=1) if since else 0.0
        return age >= days, f"{ended} {age:.1f} days ago, kept for {days:g}"

    def _if_over(self, owner: ResourceOwner, remove: Callable[[], object]) -> Callable[[], object]:
        """Wrap `remove` to do nothing if the session was restored meanwhile."""

        def checked() -> None:
            now = self.store.sessions.owner(owner.id)
            if now is not None and now.over:
                remove()

        return checked

    def _preserved(self, owners: Mapping[str, ResourceOwner]) -> Iterator[_Found]:
        for project in self.locations.projects:
            mirror = self.locations.mirror(project)
            try:
                all_kept = mirror.preserved() if mirror.path.is_dir() else []
            except GitFailure as failure:
                log.warning("the mirror of %s: %s", project, failure)
                item = Item(thing=Thing.PRESERVED, name=project, goes=False, why=str(failure))
                yield _Found(item, lambda: None, lambda: 0)
                continue
            for kept in all_kept:
                owner = owners.get(kept.session)
                goes, why = self._expired(kept.at, self.days.preserved_days, "kept")
                if owner is not None and not owner.over:
                    goes, why = False, _NOT_OVER
                name = f"{kept.session} run {kept.run}"
                item = Item(thing=Thing.PRESERVED, name=name, goes=goes, why=why)
                yield _Found(item, partial(mirror.forget, kept), partial(mirror.size_of, kept))

    # -- orphans ---------------------------------------------------------------------------------

    def _orphan(self, folder: Folder) -> _Found:
        goes, why = True, _NOBODY
        remove: Callable[[], object] = partial(self._records.remove, folder)
        if folder.kind is FolderKind.REMOVED:
            why = "was being removed when the bot ended"
        elif folder.kind is FolderKind.WORKSPACE:
            project = self._project_of(folder.session)
            if project:
                remove = partial(self._preserve_and_remove, project, folder.session)
            else:
                goes, why = False, f"{_NOBODY}, and no project has a mirror to preserve its work in"
        item = Item(thing=_THINGS[folder.kind], name=folder.name, goes=goes, why=why)
        return _Found(item, remove, partial(self._records.folder_bytes, folder))

    def _project_of(self, session: str) -> str:
        """The project with a mirror whose name a session's id begins with; empty if none."""
        fitting = [
            name
            for name in self.locations.projects
            if session.startswith(f"{name}-") and self.locations.mirror(name).path.is_dir()
        ]
        return max(fitting, key=len, default="")

    def _preserve_and_remove(self, project: str, session: str) -> None:
        mirror = self.locations.mirror(project)
        workspace = self.locations.host.workspace(session, "orphaned", mirror.path)
        mirror.preserve(workspace, 0)
        workspace.remove()

    def _strays(
        self, running: Sequence[str], owners: Mapping[str, ResourceOwner]
    ) -> Iterator[_Found]:
        """Programs of unknown sessions, and of sessions that are over."""
        for name in running:
            owner = owners.get(session_of(name))
            if owner is None or owner.over:
                why = "its session is over" if owner else _NOBODY
                item = Item(thing=Thing.PROGRAM, name=name, goes=True, why=why)
                yield _Found(item, partial(self.locations.host.runtime.stop, name), lambda: 0)


def _removed(found: _Found) -> Item:
    """Remove an item; a failure is logged and returned as the reason why it is kept."""
    item = found.item
    try:
        item = replace(item, bytes=found.size())
        found.remove()
    except (OSError, GitFailure, RuntimeFailure) as error:
        log.warning("%s %s: not removed: %s", item.thing, item.name, error)
        return replace(item, goes=False, why=f"could not be removed: {error}")
    log.info("%s %s: removed: %s", item.thing, item.name, item.why)
    return item
