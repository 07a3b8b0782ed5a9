"""Reads the activity of a Codex run: turns and questions from its rollout, permissions from hooks.

Only the screen shows that a permission was given, and dialogs before the first prompt.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.codex import files as codex_files
from runtimes.agents.codex import screen as codex_screen
from runtimes.agents.codex.files import (
    CodexError,
    CodexEvent,
    CodexHook,
    CodexItem,
    CodexLimits,
    CodexRecord,
    CodexTurnContext,
    CodexUsage,
)
from runtimes.agents.shared.activity import exited, waiting
from runtimes.agents.shared.dialogs import permission_request, with_choices
from runtimes.agents.shared.files import TEXT, contains, decode_json, decode_lines
from runtimes.agents.shared.hooks import HookCall, HookTail
from runtimes.agents.shared.line_tail import LineTail
from runtimes.agents.shared.question_forms import describe_questions
from runtimes.agents.shared.usage import UsageCounter, limit_reset
from runtimes.base import Seen
from runtimes.files import read_text

#: The dialog is on the screen this long after its hook was called, at the latest.
_SETTLE = timedelta(seconds=3)
#: A usage limit is reached from this percentage on: the program rounds.
_FULL = 99.0
#: Kinds of errors and HTTP statuses: a usage limit, and a rejected key or login.
_LIMITED = ("usage_limit_exceeded", 429)
_UNAUTHORISED = ("unauthorized", 401, 403)
#: The tool that asks people.
_QUESTION_TOOL = "request_user_input"


class _Request(Struct, frozen=True):
    """What the agent waits for: a permission, or an answer to its questions."""

    turn: str
    question: str
    at: datetime
    permission: bool


class CodexReader:
    """Reads one run of Codex."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._began = files.began
        self._native = read_text(files.conversation)
        self._hooks = HookTail(files, HookCall[CodexHook])
        self._path: Path | None = None
        self._rollout: LineTail | None = None
        self._recorded: datetime | None = None  #: Time of the newest record.
        self._announced: dict[str, str] = {}  #: Id of the call by tool and command.
        self._requests: dict[str, _Request] = {}  #: By the id of the call that waits.
        self._calls: set[str] = set()  #: Tool calls without an output.
        self._model = ""  #: Of the turn.
        self._counter = UsageCounter()
        self._limits = CodexLimits()
        self._turn = Agent(run=files.run)  #: The state of the turn by the rollout.
        self._last = self._turn

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """Return the activity; see `Reader.read`."""
        self._read_hooks()
        self._read_rollout()
        agent = replace(
            self._judge(screen or "", now),
            runtime=seen.runtime,
            program=seen.program,
            native_id=self._native,
            seen=self._recorded,
            usage=self._counter.usage(),
        )
        if end := exited(seen, agent):
            return end
        self._last = agent
        return agent

    def received(self, key: str) -> bool:
        """Whether the key is in a submitted prompt or in the rollout."""
        path = self._find_rollout()
        return contains(self._files.spool, key) or (path is not None and contains(path, key))

    def _judge(self, screen: str, now: datetime) -> Agent:
        shown, choices = codex_screen.permission_dialog(screen)
        request = next(iter(self._requests.values()), None)
        if request is not None:
            if request.permission and screen and not shown and now - request.at > _SETTLE:
                evidence = "its screen no longer asks for the permission"
                return replace(self._turn, evidence=evidence, calling=True)
            if request.permission:
                source = "its hook PermissionRequest was called"
                question = with_choices(request.question, choices)
            else:
                source, question = f"it called {_QUESTION_TOOL}", request.question
            return waiting(self._turn, request.at, source, question)
        if shown:
            question = with_choices(shown, choices)
            since = self._last.since if self._last.question == question else now
            return waiting(self._turn, since, "its screen shows a dialog", question)
        turn = replace(self._turn, calling=bool(self._calls))
        error = codex_screen.retry_error(screen) if turn.activity is Activity.ACTIVE else ""
        evidence = f"its screen says that it retries after: {error}"[:TEXT]
        return replace(turn, evidence=evidence) if error else turn

    def _read_hooks(self) -> None:
        for call in self._hooks.new():
            hook = call.hook
            self._native = self._native or hook.session_id
            arguments = hook.tool_input if isinstance(hook.tool_input, dict) else {}
            use = f"{hook.tool_name} {arguments.get('command')}"
            if hook.hook_event_name == "PreToolUse":
                self._announced[use] = hook.tool_use_id
            elif hook.hook_event_name == "PermissionRequest":
                self._requests[self._announced.get(use, use)] = _Request(
                    turn=hook.turn_id,
                    question=permission_request(hook.tool_name, arguments),
                    at=datetime.fromtimestamp(call.at, UTC),
                    permission=True,
                )

    def _find_rollout(self) -> Path | None:
        self._path = self._path or codex_files.rollout(self._files, self._native)
        return self._path

    def _read_rollout(self) -> None:
        path = self._find_rollout()
        if path is None:
            return
        if self._rollout is None:
            self._rollout = LineTail(path)
        for record in decode_lines(self._rollout.to_end(), CodexRecord):
            at, ours = record.timestamp, record.timestamp >= self._began
            self._recorded = at if ours else self._recorded
            if record.type == "event_msg":
                self._note_event(decode_json(record.payload, CodexEvent), at, ours)
            elif record.type == "turn_context":
                context = decode_json(record.payload, CodexTurnContext)
                self._model = context.model if context else ""
            elif record.type == "token_usage_record" and ours:
                self._count(decode_json(record.payload, CodexUsage))
            elif record.type == "response_item" and ours:
                self._note_item(decode_json(record.payload, CodexItem), at)

    def _count(self, used: CodexUsage | None) -> None:
        if used is not None:
            self._counter.count(used.response_id, self._model, used.usage.usage())

    def _note_event(self, event: CodexEvent | None, at: datetime, ours: bool) -> None:
        if event is None:
            return
        if event.type == "token_count":
            self._limits = event.rate_limits or self._limits
        elif ours and event.type == "task_started":
            self._set_turn(event, at, Activity.ACTIVE)
        elif ours and event.type in ("task_complete", "turn_aborted"):
            self._calls.clear()
            self._requests = {
                call: request
                for call, request in self._requests.items()
                if request.turn != event.turn_id
            }
            self._set_turn(event, at, Activity.READY)
            if event.error is not None:
                self._fail(event.error, at)

    def _set_turn(self, event: CodexEvent, at: datetime, activity: Activity) -> None:
        self._turn = Agent(
            run=self._files.run,
            activity=activity,
            since=at,
            evidence=f"its rollout says {event.type}",
            summary=(event.last_agent_message or self._turn.summary)[:TEXT],
        )

    def _fail(self, error: CodexError, at: datetime) -> None:
        limited = error.word in _LIMITED or error.code in _LIMITED
        self._turn = replace(
            self._turn,
            activity=Activity.BLOCKED,
            error=error.message[:TEXT] or error.word,
            limit_until=self._limit_reset() or limit_reset(error.message, at) if limited else None,
            unauthorised=error.word in _UNAUTHORISED or error.code in _UNAUTHORISED,
        )

    def _note_item(self, item: CodexItem | None, at: datetime) -> None:
        if item is None:
            return
        if item.type.endswith("_call_output"):
            self._calls.discard(item.call_id)
            self._requests.pop(item.call_id, None)
        elif item.type.endswith("_call") and item.call_id:
            self._calls.add(item.call_id)
            if item.name == _QUESTION_TOOL:
                arguments = decode_json(str(item.arguments), dict[str, object])
                self._requests[item.call_id] = _Request(
                    turn="",
                    question=describe_questions(arguments) or "It asks something.",
                    at=at,
                    permission=False,
                )

    def _limit_reset(self) -> datetime | None:
        """When the last of the exhausted usage limits resets; None if the program has no time."""
        windows = (self._limits.primary, self._limits.secondary)
        full = [
            each.resets_at
            for each in windows
            if each is not None and each.used_percent >= _FULL and each.resets_at is not None
        ]
        return datetime.fromtimestamp(max(full), UTC) if full else None
