"""Finds and removes expired data, and data that belongs to no known session.

Data of a session that is not over is never removed, except rows that expire by their own age
(`DatedKind`). Every step is safe to repeat after a crash.
"""

import fcntl
import logging
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from bot.archive.archiver import Archive
from bot.store import DatedKind, ResourceOwner, Store, StoreFailure
from bot.system.clock import Clock
from bot.system.locations import Locations
from config.tables import RetentionSettings as Days
from lifecycle.model.policy import Policy
from lifecycle.model.text import counted
from runtimes.base import RuntimeFailure
from runtimes.host import Folder, FolderKind, home_of, session_of
from runtimes.workspaces import lfs
from runtimes.workspaces.git import GitFailure

log = logging.getLogger(__name__)

_NOBODY = "no session of this name is known"
_NOT_OVER = "its session is not over"


class Thing(StrEnum):
    """A kind of data that can expire or be orphaned."""

    DELIVERIES = DatedKind.DELIVERIES.value
    ACTIONS = DatedKind.ACTIONS.value
    COMMANDS = DatedKind.COMMANDS.value
    OUTSIDERS = DatedKind.OUTSIDERS.value
    INCIDENTS = DatedKind.INCIDENTS.value
    NOTIFICATIONS = DatedKind.NOTIFICATIONS.value
    SESSION = "session"
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
    """A piece of data, with whether it is to be removed and why."""

    thing: Thing
    name: str
    goes: bool  #: Whether it is to be removed.
    why: str
    bytes: int = 0  #: About how many it takes, on disk or in the database; 0 if not measured.


class Busy(Exception):
    """Another process is cleaning up."""


class _Found(NamedTuple):
    item: Item
    remove: Callable[[], object]
    size: Callable[[], int]  #: Called only if needed, because it may be slow.


def _found(
    thing: Thing,
    name: str,
    verdict: tuple[bool, str],
    remove: Callable[[], object],
    size: Callable[[], int] = lambda: 0,
) -> _Found:
    """Return one piece of data with the functions that remove it and compute its size.

    `verdict` says whether the data is to be removed, and why.
    """
    goes, why = verdict
    return _Found(Item(thing=thing, name=name, goes=goes, why=why), remove, size)


@dataclass(eq=False)
class Retention:
    """Plans the removal of data, and carries it out in only one process at a time."""

    store: Store
    locations: Locations
    archive: Archive
    days: Days
    policy_of: Callable[[str], Policy]  #: The policy of a project, by its name.
    clock: Clock
    #: Releases a session's workspace. If None, the session is woken, and its next decision releases
    #: the workspace.
    release: Callable[[ResourceOwner], object] | None = None

    def __post_init__(self) -> None:
        self._records = self.locations.host.records

    def plan(self) -> list[Item]:
        """List expired data, orphans and files that are kept. Read-only: nothing is removed."""
        return [replace(found.item, bytes=found.size()) for found in self._found(orphans=True)]

    def apply(self, *, orphans: bool = False) -> list[Item]:
        """Remove expired data; with `orphans`, also data of unknown sessions and stray programs.

        Stray programs are those of sessions that are unknown or over. Archives of sessions that are
        over are compressed first.

        Returns the items that were to be removed. If an error kept one, or its session became
        active meanwhile, its `goes` is false.

        Raises `Busy` if another process is cleaning up.
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

        yield from self._dated()
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
        preserved = list(self._preserved(owners))
        yield from preserved
        kept = {folder.session for folder in folders}.union(archived)
        kept.update(found.item.name.partition(" ")[0] for found in preserved)
        for owner in owners.values():
            yield from self._session(owner, kept)
        yield from self._strays(running, owners)

    # -- by age ----------------------------------------------------------------------------------

    def _dated(self) -> Iterator[_Found]:
        """Yield the expired rows of each `DatedKind`; these rows expire by their own age."""
        for kind in DatedKind:
            short = kind in (DatedKind.DELIVERIES, DatedKind.ACTIONS, DatedKind.NOTIFICATIONS)
            days = self.days.transient_days if short else self.days.durable_days
            before = self.clock() - timedelta(days=days)
            size = self.store.expiry.dated(kind, before)
            if size.rows:
                verdict = True, f"older than {_days(days)}"
                remove = partial(self.store.expiry.delete_dated, kind, before)
                yield _found(
                    Thing(kind),
                    counted(size.rows, "row"),
                    verdict,
                    remove,
                    partial(int, size.bytes),
                )

    def _history(self, owner: ResourceOwner) -> Iterator[_Found]:
        verdict = self._expired(owner, self.days.durable_days)
        if verdict[0] and (size := self.store.expiry.history(owner.id)).rows:
            remove = self._if_over(owner, partial(self.store.expiry.delete_history, owner.id))
            yield _found(Thing.HISTORY, owner.id, verdict, remove, lambda: size.bytes)

    def _session(self, owner: ResourceOwner, kept: Container[str]) -> Iterator[_Found]:
        """Yield an expired session's rows, if nothing of it is left outside the database.

        `kept` has the ids of sessions that still have folders, an archive or preserved work.
        """
        verdict = self._expired(owner, self.days.durable_days)
        if not verdict[0] or owner.id in kept:
            return
        if owner.requested:  # The next resync would open a session for it.
            verdict = False, "its issue is open and still asks for an agent"
        remove = partial(self.store.expiry.delete_session, owner.id, self.clock())
        yield _found(Thing.SESSION, owner.id, verdict, remove)

    def _folder(self, folder: Folder, owner: ResourceOwner) -> Iterator[_Found]:
        if folder.kind is FolderKind.HOME and owner.run:
            return  # Removed with the workspace, which a session that never ran has not.
        days, parts = self.days.transient_days, [folder]
        remove: Callable[[], object] = partial(self._records.remove, folder)
        if folder.kind is FolderKind.WORKSPACE:
            days = self.policy_of(owner.project).workspace_days
            wake = partial(self.store.sessions.wake, owner.id)
            remove = partial(self.release, owner) if self.release else wake
            parts.append(home_of(owner.id))
        verdict, remove = self._expired(owner, days), self._if_over(owner, remove)
        if folder.kind is FolderKind.WORKSPACE and owner.project not in self.locations.projects:
            gone = f"{owner.project} is no longer a project, so its work cannot be preserved"
            verdict = False, gone
        yield _found(_THINGS[folder.kind], folder.name, verdict, remove, self._size_of(*parts))

    def _size_of(self, *folders: Folder) -> Callable[[], int]:
        return partial(sum, map(self._records.folder_bytes, folders))

    def _archived(self, session: str, owner: ResourceOwner | None) -> _Found:
        verdict = True, _NOBODY
        remove: Callable[[], object] = partial(self.archive.remove, session)
        if owner is not None:
            verdict = self._expired(owner, self.days.transient_days)
            remove = self._if_over(owner, remove)
        return _found(Thing.ARCHIVE, session, verdict, remove, partial(self.archive.size, session))

    def _expired(self, owner: ResourceOwner, days: float) -> tuple[bool, str]:
        return self._aged("ended", owner.ended_at, days) if owner.over else (False, _NOT_OVER)

    def _aged(self, event: str, since: datetime | None, days: float) -> tuple[bool, str]:
        age = (self.clock() - since) / timedelta(days=1) if since else 0.0
        return age >= days, f"{event} {age:.1f} days ago, kept for {_days(days)}"

    def _if_over(self, owner: ResourceOwner, remove: Callable[[], object]) -> Callable[[], object]:
        """Wrap `remove` to do nothing, and return False, if the session was restored meanwhile."""

        def checked() -> bool:
            now = self.store.sessions.owner(owner.id)
            is_over = now is not None and now.over
            if is_over:
                remove()
            return is_over

        return checked

    def _preserved(self, owners: Mapping[str, ResourceOwner]) -> Iterator[_Found]:
        for project in self.locations.projects:
            mirror = self.locations.mirror(project)
            try:
                all_kept = mirror.preserved() if mirror.path.is_dir() else []
            except GitFailure as failure:
                log.warning("the mirror of %s could not be read: %s", project, failure)
                yield _found(Thing.PRESERVED, project, (False, str(failure)), lambda: None)
                continue
            for kept in all_kept:
                owner, name = owners.get(kept.session), f"{kept.session} run {kept.run}"
                verdict = self._aged("preserved", kept.at, self.days.preserved_days)
                if owner is not None and not owner.over:
                    verdict = False, _NOT_OVER
                remove, size = partial(mirror.forget, kept), partial(mirror.size_of, kept)
                yield _found(Thing.PRESERVED, name, verdict, remove, size)

    # -- orphans ---------------------------------------------------------------------------------

    def _orphan(self, folder: Folder) -> _Found:
        verdict = True, _NOBODY
        remove: Callable[[], object] = partial(self._records.remove, folder)
        if folder.kind is FolderKind.REMOVED:
            verdict = True, "was being removed when the bot ended"
        elif folder.kind is FolderKind.WORKSPACE:
            if project := self._project_of(folder.session):
                remove = partial(self._preserve_and_remove, project, folder.session)
            else:
                verdict = False, f"{_NOBODY}, and no project has a mirror to preserve its work in"
        return _found(_THINGS[folder.kind], folder.name, verdict, remove, self._size_of(folder))

    def _project_of(self, session: str) -> str:
        """Return the project whose name an unknown session's ID begins with; empty if none fits.

        Only projects with a mirror count. If several fit, returns the one with the longest name.
        """
        fitting = [
            name
            for name in self.locations.projects
            if session.startswith(f"{name}-") and self.locations.mirror(name).path.is_dir()
        ]
        return max(fitting, key=len, default="")

    def _preserve_and_remove(self, project: str, session: str) -> None:
        mirror = self.locations.mirror(project)
        isolation = partial(self.locations.isolation, project, "")
        workspace = self.locations.host.workspace(session, "orphaned", mirror.path, isolation)
        if kept := mirror.preserve(workspace, 0):
            most = self.locations.projects[project].lfs_max_mb
            lfs.collect(mirror, workspace, kept, most)
        workspace.remove()
        self.locations.host.ports.release(session)

    def _strays(
        self, running: Sequence[str], owners: Mapping[str, ResourceOwner]
    ) -> Iterator[_Found]:
        """Yield the programs of unknown sessions, and of sessions that are over."""
        for name in running:
            owner = owners.get(session_of(name))
            if owner is None or owner.over:
                verdict = True, "its session is over" if owner else _NOBODY
                remove = partial(self.locations.host.runtime.stop, name)
                yield _found(Thing.PROGRAM, name, verdict, remove)


def _days(days: float) -> str:
    return "1 day" if days == 1 else f"{days:g} days"


def _removed(found: _Found) -> Item:
    """Remove an item and return it; a failure is logged and becomes the reason why it is kept."""
    item = found.item
    try:
        item = replace(item, bytes=found.size())
        if found.remove() is False:
            return replace(item, goes=False, why="deleted or in use again since it was listed")
    except (OSError, GitFailure, RuntimeFailure, StoreFailure) as error:
        log.warning("%s %s: not removed: %s", item.thing, item.name, error)
        return replace(item, goes=False, why=f"could not be removed: {error}")
    done = "removed, or its removal ordered" if item.thing is Thing.WORKSPACE else "removed"
    log.info("%s %s: %s: %s", item.thing, item.name, done, item.why)
    return item
