"""Reads one run of Claude Code from the files it leaves behind."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.claude import files as its
from runtimes.agents.shared.exits import ended
from runtimes.agents.shared.files import TEXT, holds, read_text, understood
from runtimes.agents.shared.forms import questions
from runtimes.agents.shared.hooks import Hook
from runtimes.agents.shared.line_tail import LineTail
from runtimes.agents.shared.questions import permission, put, with_choices
from runtimes.agents.shared.usage_counter import UsageCounter
from runtimes.agents.shared.watched_file import WatchedFile
from runtimes.base import Seen

#: It says `idle` a moment before the error that ended the turn is written down.
_SETTLE = timedelta(seconds=0.5)
#: Hooks tell the time in whole seconds.
_HOOK_TICK = timedelta(seconds=1)
#: From so many percent on a limit is used up: it rounds.
_FULL = 99.0
#: Its words among its errors: for a usage limit, and for a key or a login that is not accepted.
_LIMITED = "rate_limit"
_UNAUTHORISED = ("authentication_failed", "oauth_org_not_allowed", "account_on_hold")

_WAITS = "its screen says that it waits to try again"
#: Of a permission, in short: its screen has more words for them.
_CHOICES = ("Yes", "Always", "No")


class ClaudeReader:
    """What is known of a run so far. A look costs what is new."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._started = files.began
        self._native = ""
        self._spool = LineTail(files.spool)
        self._path: Path | None = None
        self._transcript: LineTail | None = None
        self._subagents: dict[Path, LineTail] = {}  #: The transcripts of agents that it began.
        self._recorded: datetime | None = None
        #: When the last prompt was submitted, unless its turn is known to be over: that it was idle
        #: before says nothing of this turn.
        self._prompted: datetime | None = None
        self._calls: set[str] = set()  #: Tools that run, or wait for leave to run.
        self._tally = UsageCounter()
        self._own: WatchedFile[its.Status] | None = None  #: The status file of the program.
        self._first_line = WatchedFile(its.first_line(files), its.Line)
        self._last_line = WatchedFile(its.last_line(files), its.Line)
        self._question = ""
        self._error = ""
        self._word: object = ""  #: What kind of error it is, in one word.
        self._summary = ""
        self._last = Agent(run=files.run)

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The activity by its status file, with the words of its hooks; see `Reader.read`."""
        native = self._conversation()
        status = self._status(native)  # First: what led to a status is written before it.
        self._read_hooks()
        self._read_transcript()
        agent = replace(
            self._last,
            runtime=seen.runtime,
            program=seen.program,
            native_id=native,
            summary=self._summary,
            seen=self._recorded,
            usage=self._usage(),
        )
        if end := ended(seen, agent):
            return end
        if status is not None:
            agent = self._last = self._judged(agent, status, screen or "", now)
        # Its first questions come before there is any such file.
        elif question := put(its.first_question(screen or ""))[:TEXT]:
            return replace(
                agent,
                activity=Activity.WAITING_INPUT,
                since=now,
                evidence="its screen shows a dialog",
                question=question,
            )
        return agent

    def received(self, key: str) -> bool:
        """Whether the key is in a submitted prompt, or in the conversation."""
        path = self._find_transcript()
        return holds(self._files.spool, key) or (path is not None and holds(path, key))

    def _conversation(self) -> str:
        self._native = self._native or read_text(self._files.conversation)
        return self._native

    def _status(self, native: str) -> its.Status | None:
        """What the living program with this conversation says of itself."""
        known = self._own.read() if self._own else None
        if known is not None and self._own and not self._own.fresh:
            return known  # A program that dies does not write it any more.
        for path in (its.folder(self._files) / "sessions").glob("*.json"):
            own = WatchedFile(path, its.Status)
            status = own.read()
            if status is not None and status.session_id == native and its.lives(status):
                self._own = own
                return status
        self._own = None
        return None

    def _judged(self, agent: Agent, status: its.Status, screen: str, now: datetime) -> Agent:
        since = datetime.fromtimestamp(status.status_updated_at / 1000, UTC)
        said = replace(
            agent,
            since=since,
            evidence=f"its status file says {status.status} {status.waiting_for}".rstrip(),
            question="",
            error="",
            limit_until=None,
            unauthorised=False,
            calling=False,
        )
        match status.status:
            case "busy":
                seen = max(since, self._recorded or since)
                said = replace(said, activity=Activity.ACTIVE, seen=seen, calling=bool(self._calls))
                error = its.retried(screen)
                return replace(said, evidence=f"{_WAITS}: {error}"[:TEXT]) if error else said
            case "waiting":
                question = self._question or f"It waits: {status.waiting_for}."
                return replace(said, activity=Activity.WAITING_INPUT, question=question)
            case "idle" | "shell" if self._is_over(since, now):
                if not self._error:
                    return replace(said, activity=Activity.READY)
                return replace(
                    said,
                    activity=Activity.BLOCKED,
                    error=self._error,
                    limit_until=self._limit() if self._word == _LIMITED else None,
                    unauthorised=self._word in _UNAUTHORISED,
                )
        return agent

    def _is_over(self, since: datetime, now: datetime) -> bool:
        """Whether that it has nothing to do since then is about the last prompt's turn."""
        return bool(self._prompted and since >= self._prompted and now - since >= _SETTLE)

    def _read_hooks(self) -> None:
        for line in self._spool.to_end():
            said = understood(line, Hook[its.Payload])
            if said is None or said.run != self._files.run:
                continue
            hook = said.hook
            match hook.hook_event_name:
                case "UserPromptSubmit":
                    self._prompted = datetime.fromtimestamp(said.at, UTC) + _HOOK_TICK
                    self._goes_on()
                case "PermissionRequest":
                    self._question = _question(hook)[:TEXT]
                case "Stop":
                    self._summary = hook.last_assistant_message[:TEXT]
                    self._prompted = self._started
                    self._goes_on()
                case "StopFailure":
                    self._prompted = self._started
                    self._fails(hook.last_assistant_message or hook.error, hook.error)

    def _find_transcript(self) -> Path | None:
        self._path = self._path or its.transcript(self._files, self._conversation())
        return self._path

    def _read_transcript(self) -> None:
        path = self._find_transcript()
        if path is None:
            return
        if self._transcript is None:
            self._transcript = LineTail(path)
        offset = self._transcript.offset
        for record in self._records(self._transcript.to_end()):
            if record.message is not None and record.timestamp is not None:
                self._note(record, record.message, record.timestamp)
        if self._transcript.offset != offset:  # It says there that it begins an agent.
            for other in its.subagents(path):
                self._subagents.setdefault(other, LineTail(other))
        for theirs in self._subagents.values():
            for record in self._records(theirs.to_end()):
                if record.message is not None:
                    self._spend(record, record.message)

    def _records(self, lines: Iterable[str]) -> Iterator[its.Record]:
        """Those of this run."""
        for line in lines:
            record = understood(line, its.Record)
            if record is None or record.timestamp is None or record.timestamp < self._started:
                continue
            self._recorded = max(self._recorded or record.timestamp, record.timestamp)
            yield record

    def _spend(self, record: its.Record, message: its.Message) -> None:
        if message.usage is not None and not record.is_api_error_message:
            self._tally.counts(message.id, message.model, its.used(message.usage))

    def _note(self, record: its.Record, message: its.Message, at: datetime) -> None:
        """Which calls run, what was used, and which error ended a turn."""
        content = message.content
        self._spend(record, message)
        if record.is_api_error_message:
            self._fails(content if isinstance(content, str) else _texts(content), record.error)
        elif record.type == "user" and isinstance(content, str):
            self._prompted = at
            self._calls.clear()
            self._goes_on()
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                self._calls.add(str(block.get("id")))
            elif block.get("type") == "tool_result":
                self._calls.discard(str(block.get("tool_use_id")))

    def _goes_on(self) -> None:
        """A turn began or ended well: no error stands any more."""
        self._error, self._word = "", ""

    def _fails(self, text: str, word: object) -> None:
        self._error, self._word = text[:TEXT], word

    def _usage(self) -> Usage:
        """Tokens by its answers in this run; costs by what those of the conversation grew."""
        used = self._tally.usage()
        first, last = self._first_line.read(), self._last_line.read()
        if first is None or last is None:
            return used
        cost = last.cost.total_cost_usd - first.cost.total_cost_usd
        return replace(used, cost_usd=round(max(0.0, cost), 6))

    def _limit(self) -> datetime | None:
        """When the last of the limits that are used up resets, if the program was told of any."""
        line = self._last_line.read()
        windows = line.rate_limits.values() if line else ()
        full = [each.resets_at for each in windows if each.used_percentage >= _FULL]
        return datetime.fromtimestamp(max(full), UTC) if full else None


def _texts(content: Sequence[Mapping[str, object]]) -> str:
    return " ".join(str(block["text"]) for block in content if "text" in block)


def _question(hook: its.Payload) -> str:
    """What it asks leave for, or asks, in words for people."""
    given = hook.tool_input
    if hook.tool_name == "ExitPlanMode":
        return f"It asks to go on with this plan: {given.get('plan', '')}".rstrip(": ")
    asked = questions(given) if hook.tool_name == "AskUserQuestion" else ""
    return asked or with_choices(permission(hook.tool_name, given), _CHOICES)
