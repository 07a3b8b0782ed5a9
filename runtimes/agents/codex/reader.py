"""Reads the activity of a Codex run: turns and questions from its rollout, permissions from hooks.

Only the screen shows that a permission was given, and which dialog is open before the first prompt.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles, conversation_id
from runtimes.agents.codex import files as codex_files
from runtimes.agents.codex import screen as codex_screen
from runtimes.agents.shared.dialogs import permission_request, text_of, with_choices
from runtimes.agents.shared.files import (
    TEXT,
    LineTail,
    Newest,
    decode_json,
    decode_lines,
    digest,
)
from runtimes.agents.shared.hooks import HookTail
from runtimes.agents.shared.question_forms import UNREADABLE_QUESTION, describe_questions
from runtimes.agents.shared.reader import Reader, in_state, waiting
from runtimes.agents.shared.usage import limit_reset
from runtimes.base import Seen

#: The dialog is on the screen this long after its hook was called, at the latest.
_SETTLE = timedelta(seconds=3)
_ID = 200  #: The characters that are kept of the id of a call or turn.
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


class CodexReader(Reader):
    input_box = codex_screen.INPUT_BOX

    def __init__(self, files: RunFiles) -> None:
        super().__init__(files)
        self._hooks = HookTail(files)
        self._rollout: LineTail | None = None
        self._announced = Newest[str, str]()  #: Id of the call by digest of tool and command.
        self._requests = Newest[str, _Request]()  #: By the id of the call that waits.
        self._calls = Newest[str, bool]()  #: Tool calls without an output.
        self._model = ""  #: Of the turn's responses.
        self._limits = codex_files.CodexLimits()

    def _update(self) -> None:
        self._read_hooks()
        self._read_rollout()

    def _received_in(self) -> Iterable[Path]:
        tail = self._find_rollout()
        return (self._files.spool, *([tail.path] if tail else []))

    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        shown, choices = codex_screen.permission_dialog(screen)
        request = next(iter(self._requests.values()), None)
        if request is not None and not request.permission:
            return waiting(
                agent,
                request.at,
                f"the agent asked a question (tool {_QUESTION_TOOL})",
                request.question,
            )
        if request is not None:
            if screen and not shown and now - request.at > _SETTLE:
                evidence = "the agent's screen no longer asks for the permission"
                return replace(agent, evidence=evidence, calling=True)
            question = with_choices(request.question, choices)
            return waiting(
                agent,
                request.at,
                "the agent asked for a permission (hook PermissionRequest)",
                question,
            )
        if shown:
            return self._at_dialog(agent, with_choices(shown, choices), now)
        agent = replace(agent, calling=bool(self._calls))
        if agent.activity is Activity.ACTIVE and (error := text_of(codex_screen.RETRY, screen)):
            return replace(
                agent, evidence=f"the agent's screen says that it retries after: {error}"[:TEXT]
            )
        return agent

    def _read_hooks(self) -> None:
        for call in self._hooks.new():
            hook = call.hook
            self._native = self._native or conversation_id(hook.session_id)
            use = digest(hook.tool_name, hook.arguments.get("command"))
            if hook.hook_event_name == "PreToolUse":
                self._announced[use] = hook.tool_use_id[:_ID]
            elif hook.hook_event_name == "PermissionRequest":
                self._requests[self._announced.get(use, use)] = _Request(
                    turn=hook.turn_id[:_ID],
                    question=permission_request(hook.tool_name, hook.arguments)[:TEXT],
                    at=call.time,
                    permission=True,
                )

    def _find_rollout(self) -> LineTail | None:
        if self._rollout is None:
            path = codex_files.rollout(self._files, self._native)
            self._rollout = LineTail(path) if path else None
        return self._rollout

    def _read_rollout(self) -> None:
        tail = self._find_rollout()
        for record in decode_lines(tail.to_end() if tail else (), codex_files.CodexRecord):
            at, ours = record.timestamp, record.timestamp >= self._began
            self._touched = at if ours else self._touched
            if record.type == "event_msg":
                self._note_event(decode_json(record.payload, codex_files.CodexEvent), at, ours)
            elif record.type == "turn_context":
                context = decode_json(record.payload, codex_files.CodexTurnContext)
                self._model = context.model if context else ""
            elif record.type == "token_usage_record" and ours:
                if used := decode_json(record.payload, codex_files.CodexUsage):
                    self._counter.count(used.response_id, self._model, used.usage.usage())
            elif record.type == "response_item" and ours:
                self._note_item(decode_json(record.payload, codex_files.CodexItem), at)

    def _note_event(self, event: codex_files.CodexEvent | None, at: datetime, ours: bool) -> None:
        if event is None:
            return
        if event.type == "token_count":
            self._limits = event.rate_limits or self._limits
        elif ours and event.type == "task_started":
            self._turn = in_state(self._turn, Activity.ACTIVE, at, _evidence(event))
        elif ours and event.type in ("task_complete", "turn_aborted"):
            self._calls.clear()
            for call, request in [*self._requests.items()]:
                if request.turn == event.turn_id[:_ID]:
                    del self._requests[call]
            self._summary = (event.last_agent_message or self._summary)[:TEXT]
            self._turn = self._turn_over(event, at)

    def _turn_over(self, event: codex_files.CodexEvent, at: datetime) -> Agent:
        error = event.error
        if error is None:
            return in_state(self._turn, Activity.READY, at, _evidence(event))
        limited = error.word in _LIMITED or error.code in _LIMITED
        return in_state(
            self._turn,
            Activity.BLOCKED,
            at,
            _evidence(event),
            error=error.message or error.word,
            limit_until=self._limits.reset() or limit_reset(error.message, at) if limited else None,
            unauthorised=error.word in _UNAUTHORISED or error.code in _UNAUTHORISED,
        )

    def _note_item(self, item: codex_files.CodexItem | None, at: datetime) -> None:
        if item is None:
            return
        call = item.call_id[:_ID]
        if item.type.endswith("_call_output"):
            self._calls.pop(call, None)
            self._requests.pop(call, None)
        elif item.type.endswith("_call") and call:
            self._calls[call] = True
            if item.name == _QUESTION_TOOL:
                arguments = decode_json(str(item.arguments), dict[str, object])
                self._requests[call] = _Request(
                    turn="",
                    question=(describe_questions(arguments) or UNREADABLE_QUESTION)[:TEXT],
                    at=at,
                    permission=False,
                )


def _evidence(event: codex_files.CodexEvent) -> str:
    return f"the agent's transcript ends with: {event.type}"
