"""Observes which sessions exceed a limit on the size, number or nesting of their files."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from bot.store import LiveSession, Observation, Store
from bot.system.clock import Clock
from bot.system.locations import Locations
from lifecycle.model.status import DiskLimit, Probe

log = logging.getLogger(__name__)

#: A session over the limit resumes below this part of the limit, so that it is not paused again
#: and again.
_RESUMES_AT = 0.9


@dataclass(frozen=True)
class DiskObserver:
    """Measures the disk space of sessions, one after the other; see `runtimes.disk`."""

    store: Store
    locations: Locations
    most_mb: int  #: The limit, in units of 1024 * 1024 bytes; if 0, no limit of any kind.
    clock: Clock
    wait: Callable[[float], bool]  #: Waits the given seconds; returns True if the bot stops.
    #: By session, the run that was measured after its program had ended.
    _ended: dict[str, int] = field(default_factory=dict, init=False)

    def measure(self) -> int:
        """Measure the sessions whose files may have changed; return how many results changed."""
        live = self.store.sessions.live()
        for gone in self._ended.keys() - {one.id for one in live}:
            del self._ended[gone]
        if not self.most_mb and not any(one.work.disk for one in live):
            return 0
        folders = self.locations.host.disk.folders()
        changed = 0
        for one in live:
            if self._may_have_changed(one):
                try:
                    changed += self._measure(one, folders.get(one.id, ()))
                except OSError as failure:  # The machine's; it says nothing about the session.
                    log.warning("%s: its files could not be measured: %s", one.id, failure)
            if self.wait(0.0):
                break
        return changed

    def _may_have_changed(self, session: LiveSession) -> bool:
        if session.agent.program is not Probe.DEAD:
            self._ended.pop(session.id, None)
            return bool(session.run)
        return session.work.disk is not None or self._ended.get(session.id) != session.run

    def _measure(self, session: LiveSession, folders: Sequence[Path]) -> int:
        before, most = session.work.disk, self.most_mb
        within = int(most * _RESUMES_AT) if before else most
        found = None
        if most:
            found = self.locations.host.disk.excess(folders, within, self.wait)
        if self.wait(0.0):
            return 0  # It may not have been measured to the end.
        if session.agent.program is Probe.DEAD:
            self._ended[session.id] = session.run
        if found and found.limit is DiskLimit.MEGABYTES:
            found = replace(found, most=most)
        if found:
            same = before and (before.limit, before.most) == (found.limit, found.most)
            found = before if same else replace(found, since=self.clock())
        if found == before:
            return 0
        seen = Observation(session=session.id, measured=(found,))
        return len(self.store.observations.record([seen], self.clock()))
