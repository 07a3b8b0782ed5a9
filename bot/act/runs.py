"""Starts and stops runs of agents, and releases a session's resources on its host."""

from msgspec.structs import replace

from bot.act.message_sender import MessageSender
from bot.act.releasing import end_programs, release
from bot.act.results import ActionResult, Completed, FinalCheck
from bot.act.run_start import AgentDirectory, Starting, values_of
from bot.archive.archiver import Archive
from bot.store import DueAction, Observation, Session, Store
from bot.system.clock import Clock
from bot.system.locations import Locations
from bot.text.prompts import Prompts
from lifecycle.model.actions import SendMessage, Start
from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity, Probe


class AgentRuns:
    """Starts, messages and stops agents. Every method is safe to repeat after a crash."""

    def __init__(
        self,
        store: Store,
        locations: Locations,
        prompts: Prompts,
        archive: Archive,
        assignment: AgentDirectory,
        starting: Starting,
        clock: Clock,
    ) -> None:
        self._locations = locations
        self._archive = archive
        self._assignment = assignment
        self._starting = starting
        self._messages = MessageSender(store, locations, prompts, values_of, clock)

    def knows(self, word: str) -> bool:
        """Whether an agent or agent type of this name is configured."""
        return word in self._assignment.names

    def start(self, session: Session, start: Start, check: FinalCheck) -> ActionResult:
        """Prepare the workspace and home for a run, and start it."""
        return self._starting.start(session, start, check)

    def send_message(
        self, session: Session, due: DueAction, message: SendMessage, check: FinalCheck
    ) -> ActionResult:
        """Send a message to the agent, or a person's answer to what it asks."""
        return self._messages.send(session, due, message, check)

    def stop(self, session: Session, run: int) -> Completed:
        """End the program and all it started; the workspace stays."""
        end_programs(self._locations, self._archive, session, run)
        return Completed(
            observed=Observation(session=session.id, run=run, agent=_gone(session.agent))
        )

    def release(self, session: Session, run: int) -> Completed:
        """End the program, keep what would be lost in the mirror, remove the workspace."""
        kept = release(self._locations, self._archive, session, run)
        work = replace(session.work, path="")
        seen = Observation(session=session.id, run=run, agent=_gone(session.agent), work=work)
        return Completed(result=f"kept {kept}" if kept else "", observed=seen)


def _gone(agent: Agent) -> Agent:
    return replace(
        agent,
        activity=Activity.EXITED,
        runtime=Probe.DEAD,
        program=Probe.DEAD,
        stopped=True,
        evidence="stopped",
    )
