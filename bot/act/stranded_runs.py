"""Restarts runs whose address of the model proxy was lost to another program.

The proxy keeps its port, because running programs know it. While the bot was down, another program
may have taken the port: the runs send it their questions and their tokens. Isolated runs use a
socket that nobody else can replace.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from bot.act.runs import end_programs
from bot.archive.archiver import Archive
from bot.store import Observation, Session, Store
from bot.system.clock import Clock
from bot.system.locations import Locations
from lifecycle.model.facts import Exit
from lifecycle.model.status import Activity, Probe
from runtimes.base import RuntimeFailure

_log = logging.getLogger(__name__)

INCIDENT = "proxy-port"
_LOST = "another program took the port of the model proxy"


@dataclass(eq=False)
class StrandedRuns:
    """Ends the runs that may talk to another program; they count as lost and are restarted."""

    store: Store
    locations: Locations
    archive: Archive
    is_isolated: Callable[[str, str], bool]  #: Whether runs are, by project and agent type.
    may_act: Callable[[], bool]  #: Whether this bot holds the lease.
    clock: Clock

    def report(self, why: str) -> None:
        """Report that the port is lost. `end_all` ends the runs, also after a crash."""
        text = (
            f"The model proxy lost its port: {why}. Agents without isolation may have sent their"
            " questions and run tokens to the program that has it now. They are restarted with new"
            " tokens. Find that program, e.g. with `ss -ltnp`"
        )
        _log.error("%s", text)
        self.store.incidents.report(INCIDENT, text, self.clock())

    def end_all(self) -> None:
        """End the runs that are older than the proxy's port, if that was lost; then it is over."""
        if all(incident.key != INCIDENT for incident in self.store.incidents.current()):
            return
        try:
            for session in self._stranded():
                if not self.may_act():
                    return
                self._end(session)
        except RuntimeFailure as failure:
            _log.error("a run with a lost address of the proxy still runs: %s", failure)
        else:
            self.store.incidents.clear(INCIDENT, self.clock())

    def _stranded(self) -> list[Session]:
        """The sessions whose runs use the port, and got their token before it was written."""
        paths, found = self.locations.paths, []
        written = paths.model_port.stat().st_mtime
        for live in self.store.sessions.live():
            token = paths.run_token(live.id, live.run)
            session = self.store.sessions.get(live.id)
            if session is None or self.is_isolated(session.project, session.agent_type):
                continue
            if token.exists() and token.stat().st_mtime < written:
                found.append(session)
        return found

    def _end(self, session: Session) -> None:
        end_programs(self.locations, self.archive, session, session.run)
        now, dead = self.clock(), Probe.DEAD
        agent = replace(
            session.agent,
            run=session.run,
            activity=Activity.EXITED,
            runtime=dead,
            program=dead,
            exit=Exit(at=now, lost=_LOST),
            evidence=_LOST,
        )
        seen = Observation(session=session.id, run=session.run, agent=agent)
        self.store.observations.record([seen], now)
        _log.warning("%s: run %s was ended: %s", session.id, session.run, _LOST)
