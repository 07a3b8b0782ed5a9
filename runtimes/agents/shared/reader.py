"""The base of the agent readers, and the states that all of them report in the same way."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from lifecycle.model.facts import Agent, Exit, Usage
from lifecycle.model.status import Activity, Probe
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import TEXT, contains
from runtimes.agents.shared.usage import UsageCounter
from runtimes.base import Seen

_LISTENS = "the agent waits for the first message"


class Reader(ABC):
    """Reads one run's state from its files, incrementally: each `read` parses only what is new."""

    #: The adapter's `input_box`.
    input_box: re.Pattern[str] | None = None

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._began = files.began
        self._native = files.native
        self._touched: datetime | None = None  #: Time of the newest sign of progress.
        self._summary = ""
        self._counter = UsageCounter()
        self._turn = Agent(run=files.run)  #: The state that the program's files show.
        self._last = self._turn  #: The state that was returned last, unless it was an exit.
        #: Since when a program that was started without a message waits for one.
        self._listens_since: datetime | None = None

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """Return the agent's activity with its evidence.

        A source that cannot be read does not change the activity. `seen` is the runtime's probe.
        `screen` is the text on the terminal, or None if it was not captured.
        """
        self._update()
        agent = replace(
            self._turn,
            runtime=seen.runtime,
            program=seen.program,
            native_id=self._native,
            summary=self._summary,
            seen=self._touched,
            usage=self._usage(),
        )
        if end := exited(seen, agent):
            return end
        self._last = self._judge(agent, seen, screen or "", now)
        if self._last.activity is Activity.NONE and self._listens(screen or "", now):
            since = self._listens_since = self._listens_since or now
            self._last = in_state(self._last, Activity.READY, since, _LISTENS)
        return self._last

    def _listens(self, screen: str, now: datetime) -> bool:
        """Whether the program was started without a message and is ready for the first one."""
        try:
            return not self._files.prompt.stat().st_size and self._is_up(screen, now)
        except FileNotFoundError:
            return False

    def received(self, key: str) -> bool:
        """Whether a message containing this key has reached the agent."""
        return any(contains(path, key) for path in self._received_in())

    @abstractmethod
    def _update(self) -> None:
        """Read what is new in the program's files, and update this reader's attributes."""

    @abstractmethod
    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        """Return `agent`, which was read from the files, with its present activity.

        Not called for a program that has ended.
        """

    def _is_up(self, screen: str, now: datetime) -> bool:
        """Whether the program is ready for its first message.

        Called only while the program has shown no activity.
        """
        box = self.input_box
        return box is not None and box.search(screen) is not None

    def _received_in(self) -> Iterable[Path]:
        """Return the files that contain the messages which the agent has received."""
        return ()

    def _usage(self) -> Usage:
        return self._counter.usage()

    def _at_dialog(self, agent: Agent, question: str, now: datetime) -> Agent:
        """Return the agent as waiting at a dialog that only its screen shows."""
        since = self._last.since if self._last.question == question[:TEXT] else now
        return waiting(agent, since, "the agent's screen shows a dialog", question)


def in_state(
    agent: Agent,
    activity: Activity,
    since: datetime | None,
    evidence: str,
    *,
    question: str = "",
    error: str = "",
    limit_until: datetime | None = None,
    unauthorised: bool = False,
    calling: bool = False,
) -> Agent:
    """Return the agent in this state, without questions and errors of an earlier one."""
    return replace(
        agent,
        activity=activity,
        since=since,
        evidence=evidence[:TEXT],
        question=question[:TEXT],
        error=error[:TEXT],
        limit_until=limit_until,
        unauthorised=unauthorised,
        calling=calling,
    )


def waiting(agent: Agent, since: datetime | None, evidence: str, question: str) -> Agent:
    """Return the agent as waiting for a person's answer to a question."""
    return in_state(agent, Activity.WAITING_INPUT, since, evidence, question=question)


def exited(seen: Seen, agent: Agent) -> Agent | None:
    """Return the agent as exited, or None if its program runs or may run."""
    if seen.program is not Probe.DEAD:
        return None
    end = seen.exit
    match end:
        case None:
            how = "is gone"
        case Exit(lost=lost) if lost:
            how = f"did not end by itself: {lost}"
        case Exit(signal=int(signal)):
            how = f"was ended by signal {signal}"
        case Exit(code=int(code)):
            how = f"exited with {code}"
        case _:
            how = "vanished"
    since = end.at if end else agent.seen
    ended = in_state(agent, Activity.EXITED, since, f"the agent's program {how}")
    return replace(ended, exit=end)
