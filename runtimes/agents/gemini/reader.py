"""Reads the activity of a Gemini CLI run: turns from its hooks, errors and tokens from transcripts.

Only the screen shows that a permission was given. No file has the usage of Gemini CLI's auxiliary
requests to the model, which are small.
"""

import re
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.gemini import files as gemini_files
from runtimes.agents.gemini import screen as gemini_screen
from runtimes.agents.shared.dialogs import permission_request, with_choices
from runtimes.agents.shared.files import (
    TEXT,
    LineTail,
    Newest,
    decode_lines,
    digest,
    new_lines,
)
from runtimes.agents.shared.hooks import HookCall, HookPayload, HookTail
from runtimes.agents.shared.question_forms import describe_questions
from runtimes.agents.shared.reader import Reader, in_state, waiting
from runtimes.agents.shared.usage import limit_reset
from runtimes.base import Seen

_NEVER = datetime.min.replace(tzinfo=UTC)
#: The dialog is on the screen this long after its hook was called, at the latest.
_SETTLE = timedelta(seconds=3)
_CALLS = 100  #: The most tool calls that are kept without a result.
#: The tool that asks people.
_QUESTION_TOOL = "ask_user"
_CANCELLED = "Request cancelled."
_UNAUTHORISED = re.compile(r"\b40[13]\b|api.key|unauthenticated", re.IGNORECASE)


class GeminiReader(Reader):
    input_box = gemini_screen.INPUT_BOX

    def __init__(self, files: RunFiles) -> None:
        super().__init__(files)
        self._hooks = HookTail(files)
        self._transcripts = Newest[Path, LineTail]()
        self._prompted = _NEVER  #: When the last turn began.
        self._over = _NEVER  #: When the last turn ended or was cancelled.
        self._failed = _NEVER
        self._error = ""
        #: Digests of the tool calls that have not returned, the newest ones.
        self._uses = deque[str](maxlen=_CALLS)
        self._last_use = HookPayload(hook_event_name="", tool_name="a tool")
        self._asked: datetime | None = None  #: Since when the agent waits for an answer.
        self._asked_use = ""  #: Digest of the tool call that waits for the answer.
        self._question = ""
        #: Whether the answer is to a permission request. Only the screen shows its choices.
        self._asks_permission = False

    def _update(self) -> None:
        called = False
        for call in self._hooks.new():
            called = True
            self._note_hook(call)
        # A new transcript begins only where a hook is called.
        if called or not self._transcripts:
            for path in gemini_files.transcripts(self._files, self._native):
                self._transcripts[path] = self._transcripts.get(path) or LineTail(path)
        for lines in new_lines(self._transcripts.values()):
            for record in decode_lines(lines, gemini_files.GeminiRecord):
                if record.timestamp >= self._began:
                    self._note_record(record)

    def _received_in(self) -> Iterable[Path]:
        return (self._files.spool, *gemini_files.transcripts(self._files, self._native))

    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        agent = self._by_files(agent)
        shown, choices = gemini_screen.permission_dialog(screen)
        if agent.activity is not Activity.ACTIVE or self._asked is None:
            # The screen may be older than what was recorded lately.
            if not shown or (self._touched is not None and now - self._touched <= _SETTLE):
                return agent
            question = with_choices(shown, choices)
            if not shown.startswith(gemini_screen.LIMIT_HEADING):
                return self._at_dialog(agent, question, now)
            return in_state(
                agent,
                Activity.BLOCKED,
                agent.seen,
                "the agent's screen shows a dialog",
                error=question,
                limit_until=limit_reset(shown, agent.seen),
            )
        if screen and not shown and now - self._asked > _SETTLE:
            return replace(agent, evidence="the agent's screen no longer asks for the permission")
        question = with_choices(self._question, choices if self._asks_permission else ())
        return waiting(agent, self._asked, "the agent asked people (hook Notification)", question)

    def _by_files(self, agent: Agent) -> Agent:
        """Return the agent with the state of its turn that hooks and transcripts show."""
        if self._prompted is _NEVER:
            return agent
        if self._over < self._prompted:
            evidence, calling = "the agent began a turn (hook BeforeAgent)", bool(self._uses)
            return in_state(agent, Activity.ACTIVE, self._prompted, evidence, calling=calling)
        if self._failed < self._prompted:
            return in_state(agent, Activity.READY, self._over, "the agent ended its turn")
        return in_state(
            agent,
            Activity.BLOCKED,
            self._over,
            "the agent's transcript ends with an error",
            error=self._error,
            limit_until=limit_reset(self._error, self._failed),
            unauthorised=bool(_UNAUTHORISED.search(self._error)),
        )

    def _note_hook(self, call: HookCall) -> None:
        hook = call.hook
        use = digest(hook.tool_name, hook.tool_input)
        self._touched = max(self._touched or call.time, call.time)
        match hook.hook_event_name:
            case "BeforeAgent":
                self._prompted = call.time
                self._uses.clear()
                self._asked = None
            case "AfterAgent":
                self._over = max(self._over, call.time)
            case "BeforeTool":
                self._uses.append(use)
                self._last_use = hook
            case "AfterTool":
                self._uses = deque((each for each in self._uses if each != use), _CALLS)
                self._asked = None if use == self._asked_use else self._asked
            case "Notification" if hook.notification_type == "ToolPermission":
                self._asked = call.time
                self._asked_use = self._uses[-1] if self._uses else ""
                self._question = _question(self._last_use)
                self._asks_permission = self._last_use.tool_name != _QUESTION_TOOL

    def _note_record(self, record: gemini_files.GeminiRecord) -> None:
        self._touched = max(self._touched or record.timestamp, record.timestamp)
        if record.type == "error":
            self._failed, self._error = record.timestamp, str(record.content)[:TEXT]
        elif record.type == "info" and record.content == _CANCELLED:
            self._over = max(self._over, record.timestamp)
        elif record.type == "gemini":
            if isinstance(record.content, str) and record.content:
                self._summary = record.content[:TEXT]
            if record.tokens is not None:
                self._counter.count(record.id, record.model, record.tokens.usage())


def _question(hook: HookPayload) -> str:
    """Describe the question that this tool call asks, or the permission that the call needs."""
    asked = describe_questions(hook.arguments) if hook.tool_name == _QUESTION_TOOL else ""
    return asked or permission_request(hook.tool_name, hook.arguments)
