"""Reads the activity of a Gemini CLI run: turns from its hooks, errors and tokens from transcripts.

Only the screen shows that a permission was given.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.gemini import files as gemini_files
from runtimes.agents.gemini import screen as gemini_screen
from runtimes.agents.gemini.files import GeminiHook, GeminiRecord
from runtimes.agents.shared.activity import exited, waiting
from runtimes.agents.shared.dialogs import permission_request, with_choices
from runtimes.agents.shared.files import TEXT, contains, decode_lines
from runtimes.agents.shared.hooks import HookCall, HookTail
from runtimes.agents.shared.line_tail import LineTail
from runtimes.agents.shared.question_forms import describe_questions
from runtimes.agents.shared.usage import UsageCounter, limit_reset
from runtimes.base import Seen
from runtimes.files import read_text

_NEVER = datetime.min.replace(tzinfo=UTC)
#: The dialog is on the screen this long after its hook was called, at the latest.
_SETTLE = timedelta(seconds=3)
#: The tool that asks people.
_QUESTION_TOOL = "ask_user"
_CANCELLED = "Request cancelled."
_UNAUTHORISED = re.compile(r"\b40[13]\b|api.key|unauthenticated", re.IGNORECASE)


class GeminiReader:
    """Reads one run of Gemini CLI."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._began = files.began
        self._native = read_text(files.conversation)
        self._hooks = HookTail(files, HookCall[GeminiHook])
        self._transcripts: dict[Path, LineTail] = {}
        self._prompted = _NEVER  #: When the last turn began.
        self._over = _NEVER  #: When the last turn ended or was cancelled.
        self._failed = _NEVER
        self._error = ""
        self._summary = ""
        self._uses: list[str] = []  #: Tool calls that have not returned.
        self._last_use: GeminiHook | None = None
        self._asked: datetime | None = None  #: Since when it waits.
        self._asked_use = ""  #: The tool call that waits.
        self._question = ""
        self._asks_permission = False  #: Then only the screen shows the choices.
        self._touched: datetime | None = None  #: Time of the newest hook or record.
        self._counter = UsageCounter()
        self._last = Agent()

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """Return the activity; see `Reader.read`."""
        self._read_transcripts(find=self._read_hooks())
        agent = Agent(
            run=self._files.run,
            runtime=seen.runtime,
            program=seen.program,
            native_id=self._native,
            summary=self._summary,
            seen=self._touched,
            usage=self._counter.usage(),  # No file has the usage of its small side requests.
        )
        if end := exited(seen, agent):
            return end
        self._last = self._judge(agent, screen or "", now)
        return self._last

    def received(self, key: str) -> bool:
        """Whether the key is in a submitted prompt or in a transcript."""
        return contains(self._files.spool, key) or any(
            contains(path, key) for path in gemini_files.transcripts(self._files, self._native)
        )

    def _judge(self, agent: Agent, screen: str, now: datetime) -> Agent:
        agent = self._turn(agent)
        shown, choices = gemini_screen.permission_dialog(screen)
        if agent.activity is not Activity.ACTIVE or self._asked is None:
            # The screen may be older than what was recorded lately.
            lately = self._touched is not None and now - self._touched <= _SETTLE
            return self._at_dialog(agent, shown, choices, now) if shown and not lately else agent
        if screen and not shown and now - self._asked > _SETTLE:
            return replace(agent, evidence="its screen no longer asks for the permission")
        question = with_choices(self._question, choices if self._asks_permission else ())
        return waiting(agent, self._asked, "its hook Notification was called", question)

    def _turn(self, agent: Agent) -> Agent:
        """Return the agent with the state of the turn by hooks and transcripts."""
        if self._prompted is _NEVER:
            return agent
        if self._over < self._prompted:
            return replace(
                agent,
                activity=Activity.ACTIVE,
                since=self._prompted,
                evidence="its hook BeforeAgent was called",
                calling=bool(self._uses),
            )
        agent = replace(agent, since=self._over, evidence="its turn is over")
        if self._failed < self._prompted:
            return replace(agent, activity=Activity.READY)
        return replace(
            agent,
            activity=Activity.BLOCKED,
            evidence="its transcript says error",
            error=self._error,
            limit_until=limit_reset(self._error, self._failed),
            unauthorised=bool(_UNAUTHORISED.search(self._error)),
        )

    def _at_dialog(
        self, agent: Agent, heading: str, choices: tuple[str, ...], now: datetime
    ) -> Agent:
        """Return the agent as stopped by a dialog that no hook reports."""
        question = with_choices(heading, choices)[:TEXT]
        evidence = "its screen shows a dialog"
        if heading.startswith(gemini_screen.LIMIT_HEADING):
            return replace(
                agent,
                activity=Activity.BLOCKED,
                since=agent.seen,
                evidence=evidence,
                error=question,
                limit_until=limit_reset(heading, agent.seen),
            )
        since = self._last.since if self._last.question == question else now
        return waiting(agent, since, evidence, question)

    def _read_hooks(self) -> bool:
        """Note what the hooks report. Returns whether one of this run was called."""
        called = False
        for call in self._hooks.new():
            called = True
            hook = call.hook
            self._touched = max(self._touched or hook.timestamp, hook.timestamp)
            self._note_hook(hook, f"{hook.tool_name} {hook.tool_input}")
        return called

    def _note_hook(self, hook: GeminiHook, use: str) -> None:
        match hook.hook_event_name:
            case "BeforeAgent":
                self._prompted = hook.timestamp
                self._uses.clear()
                self._asked = None
            case "AfterAgent":
                self._over = max(self._over, hook.timestamp)
            case "BeforeTool":
                self._uses.append(use)
                self._last_use = hook
            case "AfterTool":
                self._uses = [each for each in self._uses if each != use]
                self._asked = None if use == self._asked_use else self._asked
            case "Notification" if hook.notification_type == "ToolPermission":
                self._asked = hook.timestamp
                self._asked_use = self._uses[-1] if self._uses else ""
                self._question = _question(self._last_use)
                tool = self._last_use.tool_name if self._last_use else ""
                self._asks_permission = tool != _QUESTION_TOOL

    def _read_transcripts(self, find: bool) -> None:
        """Note what the transcripts report; a new one begins only where a hook is called."""
        if find or not self._transcripts:
            for path in gemini_files.transcripts(self._files, self._native):
                self._transcripts.setdefault(path, LineTail(path))
        for tail in self._transcripts.values():
            for record in decode_lines(tail.to_end(), GeminiRecord):
                if record.timestamp >= self._began:
                    self._note_record(record)

    def _note_record(self, record: GeminiRecord) -> None:
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


def _question(hook: GeminiHook | None) -> str:
    """Describe what the agent asks, or asks permission for, by its last tool call."""
    if hook is None:
        return permission_request("a tool", {})
    arguments = hook.tool_input if isinstance(hook.tool_input, dict) else {}
    asked = describe_questions(arguments) if hook.tool_name == _QUESTION_TOOL else ""
    return asked or permission_request(hook.tool_name, arguments)
