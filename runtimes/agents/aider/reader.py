"""Reads the activity of an Aider run: requests from its analytics log, texts from a chat history.

The adapter has Aider append a line to the log whenever it wants input after a request. Only the
screen shows whether the input it wants is a message or the answer to a question.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from lifecycle.model.times import from_seconds
from runtimes.agents.aider import files as aider_files
from runtimes.agents.aider import screen as aider_screen
from runtimes.agents.aider.files import NOTE, PROMPT, AiderEvent
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import TEXT, LineTail, decode_lines
from runtimes.agents.shared.reader import Reader, in_state, waiting
from runtimes.agents.shared.usage import limit_reset
from runtimes.base import Seen

_SPINNER = "Waiting for "  #: On the screen until the first word of a response arrives.
_ERROR = re.compile(r"litellm\.\w+:|Model \S+ has hit a token limit")
_UNAUTHORISED = re.compile(r"AuthenticationError|PermissionDenied")
_MODEL = re.compile(r"(?:Main m|M)odel: (\S+)")
#: The first characters of lines in the chat history that are not the model's words.
_NOT_WORDS = frozenset("#>")
#: How the lines around an edit in the model's text begin, and the file's name in the line above.
_FENCE = re.compile(r"`{3,}")
_NAME = re.compile(r"\S+")


def _without_edits(words: str) -> str:
    """Remove the edits from the model's text: the names of files and their new contents.

    An edit is a fenced code block, with the line above it if that line contains no space. The
    closing fence is the next line that consists of exactly as many backquotes as begin the opening
    fence. If no such line follows, a line of fewer backquotes closes the block.
    """
    lines = words.split("\n")
    ends = dict[int, list[int]]()
    for number, line in enumerate(lines):
        if _FENCE.fullmatch(line):
            ends.setdefault(len(line), []).append(number)
    sizes = sorted(ends)

    def after(place: int) -> int:
        """Return the line after the code block that begins at `place`; 0 if none does."""
        fence = _FENCE.match(lines[place]) if place < len(lines) else None
        if fence is None:
            return 0
        for size in reversed(sizes[: bisect_right(sizes, fence.end())]):
            at = bisect_right(ends[size], place)
            if at < len(ends[size]):
                return ends[size][at] + 1
        return 0

    kept = []
    at = 0
    while at < len(lines):
        named = _NAME.fullmatch(lines[at]) is not None
        if end := (named and after(at + 1)) or after(at):
            at = end
        else:
            kept.append(lines[at])
            at += 1
    return "\n".join(kept)


class AiderReader(Reader):
    def __init__(self, files: RunFiles) -> None:
        super().__init__(files)
        self._events = LineTail(files.spool)
        self._history = LineTail(aider_files.history(files, self._native))
        self._last_event = ""  #: The last event that shows what Aider does.
        self._event_at: datetime | None = None  #: Time of the newest event.
        self._since: datetime | None = None  #: Time of the last start or request.
        self._model = ""
        self._requests = 0  #: Requests counted since the log was last read from its beginning.
        self._restarts = 0
        self._exception = ""  #: The exception that broke off the last request.
        self._error = ""  #: The error with which the last request failed.
        self._words: list[str] = []  #: Lines of the response that is being written.
        #: The last response after each start in the chat history, earlier runs included.
        self._responses = [""]
        self._starts = 0  #: Starts of this run.

    def _update(self) -> None:
        # The chat history first: it names the model of the requests.
        words = self._words
        for line in self._history.to_end():
            if line[:1] in _NOT_WORDS:
                self._note_line(line.rstrip())
            else:
                words.append(line)
        events = self._events.to_end()
        if self._events.restarts != self._restarts:
            self._restarts, self._requests, self._starts = self._events.restarts, 0, 0
        for event in decode_lines(events, AiderEvent):
            self._note_event(event)
        ours = self._responses[max(0, len(self._responses) - self._starts) :]
        self._summary = next(filter(None, reversed(ours)), "")
        self._touched = self._event_at
        if self._history.modified is not None and self._event_at is not None:
            written = from_seconds(self._history.modified)
            self._touched = max(self._event_at, written)

    def _received_in(self) -> Iterable[Path]:
        return (self._history.path,)

    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        shown = aider_screen.last_line(screen)
        if self._last_event == "message_send_starting":
            streaming = shown and _SPINNER not in shown
            progress = (seen.output_at if streaming else None) or agent.seen
            agent = replace(agent, seen=progress)
            return in_state(agent, Activity.ACTIVE, self._since, "the agent waits for its model")
        if not self._last_event or not shown:
            return agent
        prompt = aider_screen.PROMPT.fullmatch(shown)
        asked = aider_screen.QUESTION.fullmatch(shown)
        if (prompt or asked) and (error := self._exception or self._error):
            # The question after an error is whether to open the provider's page.
            return in_state(
                agent,
                Activity.BLOCKED,
                agent.seen,
                "the agent's chat history ends with an error",
                error=error,
                limit_until=limit_reset(error, agent.seen),
                unauthorised=bool(_UNAUTHORISED.search(error)),
            )
        if prompt:
            return in_state(agent, Activity.READY, agent.seen, "the agent shows its prompt")
        if asked:
            question = aider_screen.question(asked, screen.rstrip())
            return waiting(agent, agent.seen, "the agent's screen asks a question", question)
        answered = self._last_event in ("message_send", "asks")
        calling = answered and not aider_screen.FILLED_PROMPT.match(shown)
        evidence = "the agent's screen shows neither its prompt nor a question"
        return in_state(agent, Activity.ACTIVE, self._since, evidence, calling=calling)

    def _note_event(self, event: AiderEvent) -> None:
        self._event_at = from_seconds(event.time)
        self._starts += event.event == "launched"
        match event.event:
            case "launched" | "message_send_starting":
                self._since = self._event_at
                self._exception = ""
            case "message_send_exception":
                self._exception = event.properties.exception
            case "message_send":
                self._requests += 1
                self._counter.count(str(self._requests), self._model, event.properties.usage())
            case "asks" | "exit":
                pass
            case _:
                return
        self._last_event = event.event

    def _note_line(self, line: str) -> None:
        if line.startswith(PROMPT):
            self._error = ""
        elif line.startswith("# aider chat started at "):
            self._responses.append("")
        elif line.startswith(NOTE):
            self._note(line.removeprefix(NOTE))
        else:
            self._words.append(line)
            return
        self._words.clear()

    def _note(self, line: str) -> None:
        """Note a line that Aider wrote; one with token counts ends the model's text above it."""
        if line.startswith("Tokens: "):
            self._error = ""
            words = "\n".join(map(str.rstrip, self._words)).strip()
            if "```" in words:
                words = _without_edits(words).strip()
            self._responses[-1] = words[:TEXT] or self._responses[-1]
        elif _ERROR.match(line):
            self._error = line
        elif model := _MODEL.match(line):
            self._model = model[1]
