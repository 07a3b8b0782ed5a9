"""Reads one run of Aider: its calls from what it counts, errors and words from its conversation.

Both are files it appends to. Into the first goes a line too whenever it wants to hear something
after a call; whether that is the next message or an answer to a question only its screen shows.
"""

import re
from datetime import UTC, datetime

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.aider import files as its
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.exits import ended
from runtimes.agents.shared.files import TEXT, holds, read_text, understood
from runtimes.agents.shared.line_tail import LineTail
from runtimes.agents.shared.usage_counter import UsageCounter
from runtimes.agents.shared.usage_limits import resets
from runtimes.base import Seen

_WAITS = "Waiting for "  #: It shows this until the first word of an answer comes.
_ERROR = re.compile(r"litellm\.\w+:|Model \S+ has hit a token limit")
_UNAUTHORISED = re.compile(r"AuthenticationError|PermissionDenied")
_MODEL = re.compile(r"(?:Main m|M)odel: (\S+)")
_MARKS = ("#", ">")  #: Of what are not its model's own words, in its conversation.
#: In its words: a file's name with what is to stand in it.
_EDIT = re.compile(r"^(?:\S+\n)?(`{3,})[^\n]*\n.*?^\1$\n?", re.MULTILINE | re.DOTALL)


class AiderReader:
    """What is known of a run so far. A look costs what is new."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._native = read_text(files.conversation)
        self._events = LineTail(files.spool)
        self._history = LineTail(its.history(files, self._native))
        self._last = ""  #: The last thing it counted that says what it is at.
        self._since: datetime | None = None  #: When it last began to start, or to call the model.
        self._touched: datetime | None = None
        self._model = ""
        self._tally = UsageCounter()
        self._calls = 0  #: Calls that were counted since its spool was last begun.
        self._begun = 0
        self._fault = ""  #: What the last call broke off with, by itself.
        self._error = ""  #: What it says of the last call to its provider.
        self._words: list[str] = []
        #: The last words since each start that its conversation tells of, also of earlier runs.
        self._said = [""]
        self._starts = 0  #: Those of this run.

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The activity by what it counts and says, with its screen; see `Reader.read`."""
        for line in self._history.to_end():  # First: it says there which model it calls.
            if line.startswith(_MARKS):
                self._hear(line.rstrip())
            else:
                self._words.append(line)
        events = self._events.to_end()
        if self._events.begun != self._begun:
            self._begun, self._calls, self._starts = self._events.begun, 0, 0
        for line in events:
            if event := understood(line, its.Event):
                self._count(event)
        agent = Agent(
            run=self._files.run,
            runtime=seen.runtime,
            program=seen.program,
            native_id=self._native,
            summary=self._summary(),
            seen=self._progress(),
            usage=self._tally.usage(),
        )
        return ended(seen, agent) or self._judged(agent, seen, (screen or "").rstrip())

    def received(self, key: str) -> bool:
        """Whether the key is in the conversation."""
        return holds(its.history(self._files, self._native), key)

    def _judged(self, agent: Agent, seen: Seen, screen: str) -> Agent:
        shown = screen.rpartition("\n")[2].strip()
        if self._last == "message_send_starting":
            words = shown and _WAITS not in shown  # They come, one by one.
            return replace(
                agent,
                activity=Activity.ACTIVE,
                since=self._since,
                seen=(seen.output_at if words else None) or agent.seen,
                evidence="it calls its model",
            )
        if not self._last or not screen:
            return agent
        box = its.BOX.fullmatch(shown)
        asked = its.QUESTION.fullmatch(shown)
        if (box or asked) and (error := self._fault or self._error):
            # After an error it asks whether to open the provider's page.
            return replace(
                agent,
                activity=Activity.BLOCKED,
                since=agent.seen,
                evidence="its conversation says error",
                error=error[:TEXT],
                limit_until=resets(error, agent.seen),
                unauthorised=bool(_UNAUTHORISED.search(error)),
            )
        if box:
            return replace(
                agent,
                activity=Activity.READY,
                since=agent.seen,
                evidence="its screen asks for a message",
            )
        if asked:
            return replace(
                agent,
                activity=Activity.WAITING_INPUT,
                since=agent.seen,
                evidence="its screen asks",
                question=its.question(asked, screen),
            )
        return replace(
            agent,
            activity=Activity.ACTIVE,
            since=self._since,
            evidence="its screen asks for nothing",
            calling=self._last in ("message_send", "asks") and not its.FILLED.match(shown),
        )

    def _summary(self) -> str:
        """Its last words in this run."""
        ours = self._said[max(0, len(self._said) - self._starts) :]
        return next(filter(None, reversed(ours)), "")

    def _progress(self) -> datetime | None:
        """When it last counted or said something."""
        if self._history.written is None or self._touched is None:
            return self._touched
        return max(self._touched, datetime.fromtimestamp(self._history.written, UTC))

    def _count(self, event: its.Event) -> None:
        given = event.properties
        self._touched = datetime.fromtimestamp(event.time, UTC)
        self._starts += event.event == "launched"
        match event.event:
            case "launched" | "message_send_starting":
                self._since = self._touched
                self._fault = ""
            case "message_send_exception":
                self._fault = given.exception
            case "message_send":
                self._calls += 1
                self._tally.counts(str(self._calls), self._model, its.used(given))
            case "asks" | "exit":
                pass
            case _:
                return
        self._last = event.event

    def _hear(self, said: str) -> None:
        if said.startswith("#### "):
            self._error = ""
        elif said.startswith("# aider chat started at "):
            self._said.append("")
        elif said.startswith("> "):
            self._note(said.removeprefix("> "))
        else:
            self._words.append(said)
            return
        self._words.clear()

    def _note(self, said: str) -> None:
        """What it says itself: its model's own words stand above what they have cost."""
        if said.startswith("Tokens: "):
            self._error = ""
            words = "\n".join(map(str.rstrip, self._words)).strip()
            if "```" in words:  # To search for them takes longer than all else.
                words = _EDIT.sub("", words).strip()
            self._said[-1] = words[:TEXT] or self._said[-1]
        elif _ERROR.match(said):
            self._error = said
        elif model := _MODEL.match(said):
            self._model = model[1]
