"""Reads one run of Codex from the files it leaves behind."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.codex import files as its
from runtimes.agents.shared.exits import ended
from runtimes.agents.shared.files import TEXT, holds, read_text, understood
from runtimes.agents.shared.forms import questions
from runtimes.agents.shared.hooks import Hook
from runtimes.agents.shared.line_tail import LineTail
from runtimes.agents.shared.questions import permission, with_choices
from runtimes.agents.shared.usage_counter import UsageCounter
from runtimes.agents.shared.usage_limits import resets
from runtimes.base import Seen

#: Its dialog is on the screen at the latest so long after its hook was called.
_SETTLE = timedelta(seconds=3)
#: From so many percent on a limit is used up: it rounds.
_FULL = 99.0
#: Its words and HTTP codes for a usage limit, and for a key or a login that is not accepted.
_LIMITED = ("usage_limit_exceeded", 429)
_UNAUTHORISED = ("unauthorized", 401, 403)
_WAITS = "its screen says that it waits to try again"
#: The tool with which it asks people.
_ASKS = "request_user_input"


class _Ask(Struct, frozen=True):
    """What it waits for: leave to use a tool, or an answer."""

    turn: str
    question: str
    at: datetime
    leave: bool


class CodexReader:
    """What is known of a run so far. A look costs what is new."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._began = files.began
        self._native = read_text(files.conversation)
        self._spool = LineTail(files.spool)
        self._path: Path | None = None
        self._rollout: LineTail | None = None
        self._recorded: datetime | None = None
        self._announced: dict[str, str] = {}  #: The call of each use of a tool.
        self._asks: dict[str, _Ask] = {}  #: What it waits for, by its call.
        self._calls: set[str] = set()  #: Tools that run, or wait for leave to run.
        self._model = ""  #: Of the turn.
        self._tally = UsageCounter()
        self._limits = its.Limits()
        self._turn = Agent(run=files.run)  #: What its rollout says of the turn.
        self._last = self._turn

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The activity by its hooks and its rollout, with its screen; see `Reader.read`."""
        self._read_hooks()
        self._read_rollout()
        agent = replace(
            self._judged(screen, now),
            runtime=seen.runtime,
            program=seen.program,
            native_id=self._native,
            seen=self._recorded,
            usage=self._tally.usage(),
        )
        if end := ended(seen, agent):
            return end
        self._last = agent
        return agent

    def received(self, key: str) -> bool:
        """Whether the key is in a submitted prompt, or in the conversation."""
        path = self._find_rollout()
        return holds(self._files.spool, key) or (path is not None and holds(path, key))

    def _judged(self, screen: str | None, now: datetime) -> Agent:
        """What the turn does, or what it waits for."""
        shown, choices = its.leave_on(screen or "")
        ask = next(iter(self._asks.values()), None)
        if ask is not None:
            if ask.leave and screen and not shown and now - ask.at > _SETTLE:
                evidence = "its screen asks for leave no more"
                return replace(self._turn, evidence=evidence, calling=True)
            source = "its hook PermissionRequest was called" if ask.leave else f"it called {_ASKS}"
            question = with_choices(ask.question, choices if ask.leave else ())
            return self._waiting(question, ask.at, source)
        if shown:
            question = with_choices(shown, choices)
            since = self._last.since if self._last.question == question else now
            return self._waiting(question, since, "its screen shows a dialog")
        turn = replace(self._turn, calling=bool(self._calls))
        error = its.retried(screen or "") if turn.activity is Activity.ACTIVE else ""
        return replace(turn, evidence=f"{_WAITS}: {error}"[:TEXT]) if error else turn

    def _waiting(self, question: str, since: datetime | None, evidence: str) -> Agent:
        return replace(
            self._turn,
            activity=Activity.WAITING_INPUT,
            since=since,
            evidence=evidence,
            question=question[:TEXT],
        )

    def _read_hooks(self) -> None:
        for line in self._spool.to_end():
            said = understood(line, Hook[its.Payload])
            if said is None or said.run != self._files.run:
                continue
            hook = said.hook
            self._native = self._native or hook.session_id
            given = hook.tool_input if isinstance(hook.tool_input, dict) else {}
            use = f"{hook.tool_name} {given.get('command')}"
            if hook.hook_event_name == "PreToolUse":
                self._announced[use] = hook.tool_use_id
            elif hook.hook_event_name == "PermissionRequest":
                self._asks[self._announced.get(use, use)] = _Ask(
                    turn=hook.turn_id,
                    question=permission(hook.tool_name, given),
                    at=datetime.fromtimestamp(said.at, UTC),
                    leave=True,
                )

    def _find_rollout(self) -> Path | None:
        self._path = self._path or its.rollout(self._files, self._native)
        return self._path

    def _read_rollout(self) -> None:
        path = self._find_rollout()
        if path is None:
            return
        if self._rollout is None:
            self._rollout = LineTail(path)
        for line in self._rollout.to_end():
            record = understood(line, its.Record)
            if record is None:
                continue
            at, ours = record.timestamp, record.timestamp >= self._began
            self._recorded = at if ours else self._recorded
            if record.type == "event_msg":
                self._happened(understood(record.payload, its.Event), at, ours)
            elif record.type == "turn_context":
                context = understood(record.payload, its.Context)
                self._model = context.model if context else ""
            elif record.type == "token_usage_record" and ours:
                self._spent(understood(record.payload, its.Spent))
            elif record.type == "response_item" and ours:
                self._said(understood(record.payload, its.Item), at)

    def _spent(self, spent: its.Spent | None) -> None:
        if spent is not None:
            self._tally.counts(spent.response_id, self._model, its.used(spent.usage))

    def _happened(self, event: its.Event | None, at: datetime, ours: bool) -> None:
        """A turn began or ended, or limits were told."""
        if event is None:
            return
        if event.type == "token_count":
            self._limits = event.rate_limits or self._limits
        elif ours and event.type == "task_started":
            self._goes_on(event, at, Activity.ACTIVE)
        elif ours and event.type in ("task_complete", "turn_aborted"):
            self._calls.clear()
            self._asks = {call: a for call, a in self._asks.items() if a.turn != event.turn_id}
            self._goes_on(event, at, Activity.READY)
            if event.error is not None:
                self._fails(event.error, at)

    def _goes_on(self, event: its.Event, at: datetime, activity: Activity) -> None:
        self._turn = Agent(
            run=self._files.run,
            activity=activity,
            since=at,
            evidence=f"its rollout says {event.type}",
            summary=(event.last_agent_message or self._turn.summary)[:TEXT],
        )

    def _fails(self, error: its.Failure, at: datetime) -> None:
        limited = error.word in _LIMITED or error.code in _LIMITED
        self._turn = replace(
            self._turn,
            activity=Activity.BLOCKED,
            error=error.message[:TEXT] or error.word,
            limit_until=self._limit() or resets(error.message, at) if limited else None,
            unauthorised=error.word in _UNAUTHORISED or error.code in _UNAUTHORISED,
        )

    def _said(self, item: its.Item | None, at: datetime) -> None:
        """A tool was called, or has returned."""
        if item is None:
            return
        if item.type.endswith("_call_output"):
            self._calls.discard(item.call_id)
            self._asks.pop(item.call_id, None)
        elif item.type.endswith("_call") and item.call_id:
            self._calls.add(item.call_id)
            if item.name == _ASKS:
                given = understood(str(item.arguments), dict[str, object])
                self._asks[item.call_id] = _Ask(
                    turn="",
                    question=questions(given) or "It asks something.",
                    at=at,
                    leave=False,
                )

    def _limit(self) -> datetime | None:
        """When the last of the limits that are used up resets, if it was told of any."""
        windows = (self._limits.primary, self._limits.secondary)
        full = [
            each.resets_at
            for each in windows
            if each is not None and each.used_percent >= _FULL and each.resets_at is not None
        ]
        return datetime.fromtimestamp(max(full), UTC) if full else None
