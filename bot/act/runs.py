"""Doing what concerns an agent's program: start it, tell it, stop it, give everything back."""

import time
from datetime import timedelta

from msgspec.structs import replace

from bot.act.dialogs import Answers
from bot.act.releasing import end_programs, release
from bot.act.results import (
    ActionResult,
    Completed,
    FinalCheck,
    RetryLater,
    Withdrawn,
)
from bot.act.run_start import Handover, Starting, values_of
from bot.archive.archiver import Archive
from bot.observe.agents import AgentObserver
from bot.store import Observation, Session, Store
from bot.system.clock import Clock
from bot.system.locations import Locations
from bot.text.prompt_text import one_line, printable
from bot.text.prompts import Prompts
from lifecycle.model import keys
from lifecycle.model.actions import Start, Tell
from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity, Probe
from lifecycle.react.messages import ANSWER
from runtimes.agents.base import AgentAdapter
from runtimes.base import Gone, Handle, Send

#: How long a message may take to show up where the agent reads it, before it is tried again.
_HEARD_SECONDS = 8.0
#: Between two looks for it.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.5
_SCREEN_LINES = 8  #: So many of a screen are shown to people.
#: How often a message is pasted before it is given up.
_PASTES = 3


class Agents:
    """Starts, tells and stops programs. Every method may be repeated after a crash."""

    def __init__(
        self,
        store: Store,
        locations: Locations,
        prompts: Prompts,
        watch: AgentObserver,
        archive: Archive,
        assignment: Handover,
        starting: Starting,
        clock: Clock,
    ) -> None:
        self._store = store
        self._locations = locations
        self._prompts = prompts
        self._watch = watch
        self._archive = archive
        self._assignment = assignment
        self._starting = starting
        self._clock = clock
        self._answers = Answers(locations, store.sessions.get, watch, clock)

    def knows(self, word: str) -> bool:
        """Whether an agent, or a type of them, of this name is configured."""
        return word in self._assignment.names

    def start(self, session: Session, start: Start, check: FinalCheck) -> ActionResult:
        """Make everything ready for a run, and start it."""
        return self._starting.start(session, start, check)

    def tell(self, session: Session, tell: Tell, tried: int, check: FinalCheck) -> ActionResult:
        """Send a message and see that it arrives.

        The same paste never goes out twice, because the runtime knows its key; one that does not
        show up is pasted under the next key, until it is given up.
        """
        if tell.prompt.name == ANSWER and (
            given := self._answers.give(session, tell, tried, check)
        ):
            return given
        mark = keys.visible(session.id, tell.key)
        paste = min(tried, _PASTES - 1)
        handle = self._locations.handle(session.id, tell.run)
        if "base" in tell.prompt.values:
            self._locations.mirror(session.project).refresh()
        self._watch.look(session.id)
        program = self._locations.programs[session.agent_type]
        stopped = (
            check() or self._refuse_dialog(session, tell) or self._refuse_typed(handle, program)
        )
        if stopped:
            return stopped
        values = values_of(session, tell.prompt.values.get("base", ""))
        send = Send(
            text=self._prompts.render(tell.prompt, values, mark),
            key=f"{tell.key}#{paste}",
            submit_seconds=program.submit_seconds,
        )
        try:
            self._locations.runtime.send(handle, send)
        except Gone as gone:
            self._watch.look(session.id)
            return RetryLater(str(gone))
        wait_until = self._clock() + timedelta(seconds=_HEARD_SECONDS + program.submit_seconds)
        pause = _FIRST_PAUSE
        while not self._watch.received(session.id, mark):
            if self._store.outbox.ends_program(session.id):
                return Withdrawn("its program is to be ended, and must not wait for the message")
            if self._clock() > wait_until:
                return RetryLater(
                    f"the message {mark} did not show up in what the agent reads; its screen ends"
                    f" with: {self._last_lines(handle)}"
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return Completed(result=mark)

    def told(self, session: Session, tell: Tell) -> Completed | None:
        """Whether a message has reached the agent of its run."""
        mark = keys.visible(session.id, tell.key)
        if self._answers.was_given(session, tell):
            return Completed(result="it was given")
        if session.run == tell.run and self._watch.received(session.id, mark):
            return Completed(result=f"{mark} was there already")
        return None

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

    def _refuse_dialog(self, session: Session, tell: Tell) -> Withdrawn | None:
        """An agent that asks something by now would take a message for the answer."""
        now = self._store.sessions.get(session.id)
        asks = now is not None and now.agent.activity is Activity.WAITING_INPUT
        if asks and tell.prompt.name != ANSWER:
            return Withdrawn("it asks something, and would take the message for the answer")
        return None

    def _refuse_typed(self, handle: Handle, program: AgentAdapter) -> RetryLater | None:
        """What somebody types at the terminal is not sent together with a message of ours."""
        if typed := program.unsent_text(self._screen(handle)):
            return RetryLater(
                "words stand in the agent's input box that were not sent; send them or take them"
                f" away at its terminal: {one_line(printable(typed))}"
            )
        return None

    def _screen(self, handle: Handle) -> str:
        return self._locations.runtime.screens([handle]).get(handle, "")

    def _last_lines(self, handle: Handle) -> str:
        lines = (" ".join(line.split()) for line in printable(self._screen(handle)).splitlines())
        return " | ".join([line for line in lines if line][-_SCREEN_LINES:])


def _gone(agent: Agent) -> Agent:
    return replace(
        agent,
        activity=Activity.EXITED,
        runtime=Probe.DEAD,
        program=Probe.DEAD,
        stopped=True,
        evidence="stopped",
    )
