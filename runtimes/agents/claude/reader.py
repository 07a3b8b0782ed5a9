"""Reads the activity of a Claude Code run: its status file decides, hooks add the words."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.claude import files as claude_files
from runtimes.agents.claude import screen as claude_screen
from runtimes.agents.claude.files import ClaudeMessage, ClaudeRecord, ClaudeStatus
from runtimes.agents.shared.dialogs import as_question, permission_request, text_of, with_choices
from runtimes.agents.shared.files import TEXT, LineTail, WatchedFile, decode_lines
from runtimes.agents.shared.hooks import HookPayload, HookTail
from runtimes.agents.shared.messages import text_parts
from runtimes.agents.shared.question_forms import describe_questions
from runtimes.agents.shared.reader import Reader, in_state, waiting
from runtimes.base import Seen

#: The status becomes `idle` a moment before the error that ended the turn is recorded.
_SETTLE = timedelta(seconds=0.5)
#: The spool records the time of a hook in whole seconds.
_HOOK_TICK = timedelta(seconds=1)
#: A usage limit is reached from this percentage on: the program rounds.
_FULL = 99.0
#: Values of `ClaudeRecord.error`: a usage limit, and a rejected key or login.
_LIMITED = "rate_limit"
_UNAUTHORISED = ("authentication_failed", "oauth_org_not_allowed", "account_on_hold")
#: Short answers to a permission dialog; the screen shows longer ones.
_PERMISSION_CHOICES = ("Yes", "Always", "No")


class ClaudeReader(Reader):
    def __init__(self, files: RunFiles) -> None:
        super().__init__(files)
        self._hooks = HookTail(files)
        self._transcript: LineTail | None = None
        self._subagents: dict[Path, LineTail] = {}
        #: When the last prompt was submitted. The status file may still show that the program was
        #: idle before it. Once the turn is known to be over: when the run began.
        self._prompted: datetime | None = None
        self._calls: set[str] = set()  #: Tool calls without a result.
        self._status_file: WatchedFile[ClaudeStatus] | None = None
        self._status: ClaudeStatus | None = None
        self._first_line, self._last_line = (
            WatchedFile(path, claude_files.ClaudeStatusLine)
            for path in claude_files.status_lines(files)
        )
        self._question = ""
        self._error = ""
        self._error_word: object = ""

    def _update(self) -> None:
        # The status first: what led to a status is recorded before the status.
        self._status = self._read_status()
        self._read_hooks()
        self._read_transcript()

    def _received_in(self) -> Iterable[Path]:
        tail = self._find_transcript()
        return (self._files.spool, *([tail.path] if tail else []))

    def _read_status(self) -> ClaudeStatus | None:
        """Read the status file of the living process with this conversation."""
        known = self._status_file.read() if self._status_file else None
        if known is not None and self._status_file and not self._status_file.changed:
            return known
        for path in (claude_files.folder(self._files) / "sessions").glob("*.json"):
            file = WatchedFile(path, ClaudeStatus)
            status = file.read()
            if status is None or status.session_id != self._native:
                continue
            if claude_files.is_alive(status):
                self._status_file = file
                return status
        self._status_file = None
        return None

    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        if self._status is None:  # Startup dialogs come before the first status file.
            question = as_question(claude_screen.startup_dialog(screen))
            return self._at_dialog(agent, question, now) if question else agent
        self._turn = self._by_status(agent, self._status, screen, now)
        return self._turn

    def _by_status(self, agent: Agent, status: ClaudeStatus, screen: str, now: datetime) -> Agent:
        since = datetime.fromtimestamp(status.status_updated_at / 1000, UTC)
        evidence = f"the agent's status file says: {status.status} {status.waiting_for}".rstrip()
        match status.status:
            case "busy":
                if error := text_of(claude_screen.RETRY, screen):
                    evidence = f"the agent's screen says that it retries after: {error}"
                agent = replace(agent, seen=max(since, self._touched or since))
                calling = bool(self._calls)
                return in_state(agent, Activity.ACTIVE, since, evidence, calling=calling)
            case "waiting":
                question = self._question or f"It waits: {status.waiting_for}."
                return waiting(agent, since, evidence, question)
            case "idle" | "shell" if self._turn_is_over(since, now):
                return in_state(
                    agent,
                    Activity.BLOCKED if self._error else Activity.READY,
                    since,
                    evidence,
                    error=self._error,
                    limit_until=self._limit_reset() if self._error_word == _LIMITED else None,
                    unauthorised=self._error_word in _UNAUTHORISED,
                )
        return agent

    def _turn_is_over(self, idle_since: datetime, now: datetime) -> bool:
        return bool(self._prompted and idle_since >= self._prompted and now - idle_since >= _SETTLE)

    def _read_hooks(self) -> None:
        for call in self._hooks.new():
            hook = call.hook
            match hook.hook_event_name:
                case "UserPromptSubmit":
                    self._prompted = call.time + _HOOK_TICK
                    self._fail("", "")
                case "PermissionRequest":
                    self._question = _question(hook)
                case "Stop":
                    self._summary = hook.last_assistant_message[:TEXT]
                    self._prompted = self._began
                    self._fail("", "")
                case "StopFailure":
                    self._prompted = self._began
                    self._fail(hook.last_assistant_message or hook.error, hook.error)

    def _find_transcript(self) -> LineTail | None:
        if self._transcript is None:
            path = claude_files.transcript(self._files, self._native)
            self._transcript = LineTail(path) if path else None
        return self._transcript

    def _read_transcript(self) -> None:
        tail = self._find_transcript()
        if tail is None:
            return
        offset = tail.offset
        for record, message in self._records(tail.to_end()):
            self._note(record, message)
        if tail.offset != offset:  # The transcript grows when a subagent starts.
            for other in claude_files.subagent_transcripts(tail.path):
                self._subagents.setdefault(other, LineTail(other))
        for tail in self._subagents.values():
            for record, message in self._records(tail.to_end()):
                self._count(record, message)

    def _records(self, lines: Iterable[str]) -> Iterator[tuple[ClaudeRecord, ClaudeMessage]]:
        """Yield the records of this run that have a message."""
        for record in decode_lines(lines, ClaudeRecord):
            if record.timestamp is None or record.timestamp < self._began:
                continue
            self._touched = max(self._touched or record.timestamp, record.timestamp)
            if record.message is not None:
                yield record, record.message

    def _count(self, record: ClaudeRecord, message: ClaudeMessage) -> None:
        if message.usage is not None and not record.is_api_error_message:
            self._counter.count(message.id, message.model, message.usage.usage())

    def _note(self, record: ClaudeRecord, message: ClaudeMessage) -> None:
        content = message.content
        self._count(record, message)
        if record.is_api_error_message:
            text = content if isinstance(content, str) else " ".join(text_parts(content))
            self._fail(text, record.error)
        elif record.type == "user" and isinstance(content, str):
            self._prompted = record.timestamp
            self._calls.clear()
            self._fail("", "")
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                self._calls.add(str(block.get("id")))
            elif block.get("type") == "tool_result":
                self._calls.discard(str(block.get("tool_use_id")))

    def _fail(self, error: str, word: object) -> None:
        """Note the error that ended the turn; empty if it ended without one or has not ended."""
        self._error, self._error_word = error, word

    def _usage(self) -> Usage:
        """Tokens of this run's responses; the cost by which the conversation's cost grew."""
        used = super()._usage()
        first, last = self._first_line.read(), self._last_line.read()
        if first is None or last is None:
            return used
        cost = last.cost.total_cost_usd - first.cost.total_cost_usd
        return replace(used, cost_usd=round(max(0.0, cost), 6))

    def _limit_reset(self) -> datetime | None:
        """When the last of the exhausted usage limits resets; None if the program has no time."""
        line = self._last_line.read()
        windows = line.rate_limits.values() if line else ()
        full = [each.resets_at for each in windows if each.used_percentage >= _FULL]
        return datetime.fromtimestamp(max(full), UTC) if full else None


def _question(hook: HookPayload) -> str:
    """Describe what the agent asks, or asks permission for."""
    if hook.tool_name == "ExitPlanMode":
        return f"It asks to continue with this plan: {hook.arguments.get('plan', '')}".rstrip(": ")
    asked = describe_questions(hook.arguments) if hook.tool_name == "AskUserQuestion" else ""
    request = permission_request(hook.tool_name, hook.arguments)
    return asked or with_choices(request, _PERMISSION_CHOICES)
