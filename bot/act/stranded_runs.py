"""Ends runs whose requests to the model proxy may reach another program. New runs replace them.

After a restart of the bot, the proxy uses the same port as before, because agents that still run
have its address. While the bot is down, another program may take that port and receive the prompts
and run tokens of these agents.
Isolated runs are not affected: they use a socket that no other program can replace.
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
    """Ends runs that may send requests to another program, and records them as lost."""

    store: Store
    locations: Locations
    archive: Archive
    is_isolated: Callable[[str, str], bool]  #: Takes the project and the agent type.
    may_act: Callable[[], bool]  #: Whether this bot holds the lease.
    clock: Clock

    def report(self, why: str) -> None:
        """Open an incident with the reason why the proxy lost its port. `end_all` ends the runs."""
        text = (
            f"The model proxy lost its port: {why}. Agents without isolation may have sent their"
            " prompts and run tokens to the program that has the port now. They are restarted with"
            " new tokens. Find that program, e.g. with `ss -ltnp`"
        )
        _log.error("%s", text)
        self.store.incidents.report(INCIDENT, text, self.clock())

    def end_all(self) -> None:
        """If the proxy lost its port, end the runs that use that port, then close the incident.

        If one of them cannot be ended, the incident stays open, and the next call tries again.
        """
        if all(incident.key != INCIDENT for incident in self.store.incidents.current()):
            return
        try:
            for session in self._stranded():
                if not self.may_act():
                    return
                self._end(session)
        except RuntimeFailure as failure:
            _log.error(
                "a run that uses the port that the model proxy lost could not be ended: %s", failure
            )
        else:
            self.store.incidents.clear(INCIDENT, self.clock())

    def _stranded(self) -> list[Session]:
        """Return the sessions whose runs use the lost port.

        These runs are not isolated, and started before the proxy recorded its new port.
        """
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
