"""Reads one run of Gemini CLI: turns from its hooks, errors and tokens from its transcript.

It says in no file when leave was given: only its screen shows that.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.gemini import files as its
from runtimes.agents.shared.exits import ended
from runtimes.agents.shared.files import TEXT, holds, read_text, understood
from runtimes.agents.shared.forms import questions
from runtimes.agents.shared.hooks import Hook
from runtimes.agents.shared.line_tail import LineTail
from runtimes.agents.shared.questions import permission, with_choices
from runtimes.agents.shared.usage_counter import UsageCounter
from runtimes.agents.shared.usage_limits import resets
from runtimes.base import Seen

_NEVER = datetime.min.replace(tzinfo=UTC)
#: Its dialog is on the screen at the latest so long after its hook was called.
_SETTLE = timedelta(seconds=3)
_ASKS = "ask_user"
_CANCELLED = "Request cancelled."
_UNAUTHORISED = re.compile(r"\b40[13]\b|api.key|unauthenticated", re.IGNORECASE)


class GeminiReader:
    """What is known of a run so far. A look costs what is new."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._began = files.began
        self._native = read_text(files.conversation)
        self._spool = LineTail(files.spool)
        self._transcripts: dict[Path, LineTail] = {}
        self._prompted = _NEVER  #: When the last turn began.
        self._over = _NEVER  #: When one last ended, or was broken off.
        self._failed = _NEVER
        self._error = ""
        self._summary = ""
        self._uses: list[str] = []  #: Tools that run, or wait for leave to run.
        self._given: its.Payload | None = None  #: The last use of a tool.
        self._asked: datetime | None = None
        self._asked_use = ""
        self._question = ""
        #: Whether it asks for leave, and names its choices on the screen alone.
        self._leave = False
        self._touched: datetime | None = None
        self._tally = UsageCounter()
        self._last = Agent()

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The activity by its hooks, with its transcript and screen; see `Reader.read`."""
        self._read_transcripts(anew=self._read_hooks())
        agent = Agent(
            run=self._files.run,
            runtime=seen.runtime,
            program=seen.program,
            native_id=self._native,
            summary=self._summary,
            seen=self._touched,
            usage=self._tally.usage(),  # Its small questions beside them are in no file.
        )
        if end := ended(seen, agent):
            return end
        self._last = self._judged(agent, screen, now)
        return self._last

    def received(self, key: str) -> bool:
        """Whether the key is in a submitted prompt, or in the conversation."""
        return holds(self._files.spool, key) or any(
            holds(path, key) for path in its.transcripts(self._files, self._native)
        )

    def _judged(self, agent: Agent, screen: str | None, now: datetime) -> Agent:
        agent = self._turn(agent)
        shown, choices = its.leave_on(screen or "")
        if agent.activity is not Activity.ACTIVE or self._asked is None:
            # What it told lately may be newer than its screen.
            lately = self._touched is not None and now - self._touched <= _SETTLE
            return self._stopped(agent, shown, choices, now) if shown and not lately else agent
        if screen and not shown and now - self._asked > _SETTLE:
            return replace(agent, evidence="its screen asks for leave no more")
        return replace(
            agent,
            activity=Activity.WAITING_INPUT,
            since=self._asked,
            evidence="its hook Notification was called",
            question=with_choices(self._question, choices if self._leave else ())[:TEXT],
            calling=False,
        )

    def _turn(self, agent: Agent) -> Agent:
        """What its hooks and its transcript say of the turn."""
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
            limit_until=resets(self._error, self._failed),
            unauthorised=bool(_UNAUTHORISED.search(self._error)),
        )

    def _stopped(self, agent: Agent, shown: str, choices: tuple[str, ...], now: datetime) -> Agent:
        """It stands before a dialog of which no hook tells."""
        said = with_choices(shown, choices)[:TEXT]
        evidence = "its screen shows a dialog"
        if shown.startswith(its.LIMITED):
            return replace(
                agent,
                activity=Activity.BLOCKED,
                since=agent.seen,
                evidence=evidence,
                error=said,
                limit_until=resets(shown, agent.seen),
            )
        return replace(
            agent,
            activity=Activity.WAITING_INPUT,
            since=self._last.since if self._last.question == said else now,
            evidence=evidence,
            question=said,
            error="",
            limit_until=None,
            unauthorised=False,
            calling=False,
        )

    def _read_hooks(self) -> bool:
        """Whether there were any: a transcript is begun only where one is called."""
        heard = False
        for line in self._spool.to_end():
            heard = True
            said = understood(line, Hook[its.Payload])
            if said is None or said.run != self._files.run:
                continue
            hook = said.hook
            self._touched = max(self._touched or hook.timestamp, hook.timestamp)
            self._hear(hook, f"{hook.tool_name} {hook.tool_input}")
        return heard

    def _hear(self, hook: its.Payload, use: str) -> None:
        match hook.hook_event_name:
            case "BeforeAgent":
                self._prompted = hook.timestamp
                self._uses.clear()
                self._asked = None
            case "AfterAgent":
                self._over = max(self._over, hook.timestamp)
            case "BeforeTool":
                self._uses.append(use)
                self._given = hook
            case "AfterTool":
                self._uses = [each for each in self._uses if each != use]
                self._asked = None if use == self._asked_use else self._asked
            case "Notification" if hook.notification_type == "ToolPermission":
                self._asked = hook.timestamp
                self._asked_use = self._uses[-1] if self._uses else ""
                self._question = _question(self._given)
                self._leave = self._given is None or self._given.tool_name != _ASKS

    def _read_transcripts(self, anew: bool) -> None:
        if anew or not self._transcripts:
            for path in its.transcripts(self._files, self._native):
                self._transcripts.setdefault(path, LineTail(path))
        for lines in self._transcripts.values():
            for line in lines.to_end():
                record = understood(line, its.Record)
                if record is not None and record.timestamp >= self._began:
                    self._note(record)

    def _note(self, record: its.Record) -> None:
        self._touched = max(self._touched or record.timestamp, record.timestamp)
        if record.type == "error":
            self._failed, self._error = record.timestamp, str(record.content)[:TEXT]
        elif record.type == "info" and record.content == _CANCELLED:
            self._over = max(self._over, record.timestamp)
        elif record.type == "gemini":
            if isinstance(record.content, str) and record.content:
                self._summary = record.content[:TEXT]
            if record.tokens is not None:
                self._tally.counts(record.id, record.model, its.used(record.tokens))


def _question(hook: its.Payload | None) -> str:
    given = hook.tool_input if hook is not None and isinstance(hook.tool_input, dict) else {}
    asked = questions(given) if hook and hook.tool_name == _ASKS else ""
    return asked or permission(hook.tool_name if hook else "a tool", given)
