"""Reads the activity of an OpenCode run: turns from its database, questions from its port."""

import re
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles, conversation_id
from runtimes.agents.opencode import files as opencode_files
from runtimes.agents.opencode import port
from runtimes.agents.opencode.files import (
    RUNNING,
    Millis,
    OpenCodeMessage,
    OpenCodePart,
    to_datetime,
)
from runtimes.agents.opencode.port import OpenCodePermission, OpenCodeStatus
from runtimes.agents.shared.databases import open_database
from runtimes.agents.shared.dialogs import permission_request, with_choices
from runtimes.agents.shared.files import TEXT, decode_json, decode_rows
from runtimes.agents.shared.question_forms import UNREADABLE_QUESTION, describe_questions
from runtimes.agents.shared.reader import Reader, in_state, waiting
from runtimes.base import Seen

#: After this many attempts another retry is unlikely to succeed.
_ATTEMPTS = 3
#: The program's own backoff is shorter than this: a wait of this length was set by the provider.
_LONG_WAIT = timedelta(minutes=2)
_STATE = {
    **port.PENDING,
    "/session/status": dict[str, OpenCodeStatus],
}
#: The port is read at every look until `_RECENT` after a write, then once per `_INTERVAL`, because
#: reading a thousand ports takes seconds.
_RECENT, _INTERVAL = timedelta(seconds=15), timedelta(seconds=30)
#: The error of a response that a person aborted.
_ABORTED = "MessageAbortedError"
_LIMITED = re.compile(r"\b429\b|limit|quota|too many requests", re.IGNORECASE)
_UNAUTHORISED = re.compile(
    r"\b40[13]\b|unauthori[sz]ed|api key|auth(entication|error)", re.IGNORECASE
)

_CONVERSATION = """
select id from session where parent_id is null and time_created >= ?
order by time_created limit 1
"""
_MESSAGES = """
select id, session_id, time_updated, data from message
where time_created >= ? and time_updated >= ? order by time_created, id
"""
_PARTS = "select time_updated, data from part where message_id = ? order by id"
_CONTAINS = "select 1 from part where session_id = ? and instr(data, ?) limit 1"


class OpenCodeReader(Reader):
    def __init__(self, files: RunFiles) -> None:
        super().__init__(files)
        self._database_files = opencode_files.database_files(files)
        self._began_millis = self._began.timestamp() * 1000
        self._fingerprint: tuple[object, ...] = ()  #: Of the database, when it was last read.
        self._updated = 0.0  #: Time of the newest change to a message.
        self._messages: dict[str, OpenCodeMessage] = {}  #: Of the run, subagents included.
        self._prompted: datetime | None = None
        self._last_message = ""  #: Id of the conversation's last message.
        self._tools: list[OpenCodePart] = []  #: The last message's calls that have not returned.
        self._answers = False  #: Whether the port answered when it was asked last.
        self._ask_at = datetime.min.replace(tzinfo=UTC)  #: When to ask the port at the latest.

    def received(self, key: str) -> bool:
        """Whether the text `key` is in the run's conversation."""
        self._update()
        return bool(opencode_files.query(self._files, _CONTAINS, self._native, key))

    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        """Return the agent's state, which during a turn depends on OpenCode's HTTP API.

        The API shows whether the agent waits for a person, or retries a failed model request.
        """
        if agent.activity is not Activity.ACTIVE:
            return agent
        return self._ask_port(agent, now) if self._is_due(now) else self._unchanged(agent) or agent

    def _is_up(self, screen: str, now: datetime) -> bool:
        if self._is_due(now):
            self._answers = port.get(self._files, _STATE) is not None
        return self._answers

    def _update(self) -> None:
        fingerprint = opencode_files.fingerprint(self._database_files)
        if not fingerprint or fingerprint == self._fingerprint:
            return
        try:
            with open_database(opencode_files.database(self._files)) as database:
                self._read_messages(database)
        except sqlite3.Error:
            return
        self._fingerprint = fingerprint

    def _read_messages(self, database: sqlite3.Connection) -> None:
        if not self._native:
            row = database.execute(_CONVERSATION, (self._began_millis,)).fetchone()
            self._native = conversation_id(str(row[0])) if row else ""
        rows = database.execute(_MESSAGES, (self._began_millis, self._updated))
        for name, session, updated, data in decode_rows(rows, tuple[str, str, Millis, str]):
            message = decode_json(data, OpenCodeMessage)
            if message is None:
                continue
            self._updated = max(self._updated, updated)
            self._messages[name] = message
            if message.role == "assistant":  # Subagents' messages have other sessions.
                self._counter.count(name, message.model_id, message.tokens.usage(message.cost))
            if session == self._native:
                self._last_message = max(self._last_message, name)
                if message.role == "user":
                    self._prompted = to_datetime(message.time.created)
        if self._last_message:
            self._read_last_message(database)

    def _read_last_message(self, database: sqlite3.Connection) -> None:
        """Note the state of the turn, which the conversation's last message shows."""
        message = self._messages[self._last_message]
        found = database.execute(_PARTS, (self._last_message,))
        rows = [*decode_rows(found, tuple[Millis, str])]
        self._touched = to_datetime(max([message.time.created, *(row[0] for row in rows)]))
        parts = [part for row in rows if (part := decode_json(row[1], OpenCodePart))]
        self._tools = [part for part in parts if part.state.status in RUNNING]
        turn, ended = self._turn, message.time.completed
        if ended is None or message.finish == "tool-calls":
            evidence, calling = "the agent works on a response", bool(self._tools)
            self._turn = in_state(turn, Activity.ACTIVE, self._prompted, evidence, calling=calling)
            return
        self._summary = " ".join(part.text for part in parts if part.type == "text")[:TEXT]
        evidence = f"the agent's response ended: {message.finish or 'broken off'}"
        self._turn = in_state(turn, Activity.READY, to_datetime(ended), evidence)
        if message.error is not None and message.error.name != _ABORTED:
            name, data = message.error.name, message.error.data
            text = str(data.get("message") or name)
            self._turn = _blocked(self._turn, evidence, text, f"{name} {data.get('statusCode')}")

    def _is_due(self, now: datetime) -> bool:
        """Whether to ask OpenCode's HTTP server now; if so, note when to ask it next."""
        recent = self._touched is not None and now - self._touched < _RECENT
        if not recent and now < self._ask_at:
            return False
        self._ask_at = now + _INTERVAL
        return True

    def _unchanged(self, agent: Agent) -> Agent | None:
        """Return the last state if it was waiting or blocked and nothing was written since."""
        last = self._last
        stopped = last.activity in (Activity.WAITING_INPUT, Activity.BLOCKED)
        if not stopped or last.seen != agent.seen:
            return None
        return replace(last, runtime=agent.runtime, program=agent.program)

    def _ask_port(self, agent: Agent, now: datetime) -> Agent:
        state = port.get(self._files, _STATE)
        if state is None:
            calls = [tool.state.input for tool in self._tools if tool.tool == "question"]
            asked = [_questions(arguments) for arguments in calls]
            return self._unchanged(agent) or _waiting(agent, asked)
        permissions, questions, statuses = state
        asked = [_permission(each) for each in permissions]
        asked += [_questions({"questions": each.questions}) for each in questions]
        status = statuses.get(self._native, OpenCodeStatus())
        retry_at = to_datetime(status.next)
        long_wait = retry_at - now > _LONG_WAIT
        if not asked and status.type == "retry" and (long_wait or status.attempt >= _ATTEMPTS):
            evidence = f"the agent retries after an error, attempt {status.attempt}"
            agent = _blocked(agent, evidence, status.message)
            limited = long_wait or _LIMITED.search(status.message)
            return replace(agent, limit_until=retry_at if limited else None)
        return _waiting(agent, asked)


def _waiting(agent: Agent, asked: list[str]) -> Agent:
    return waiting(agent, agent.seen, "the agent asks people", asked[0]) if asked else agent


def _blocked(agent: Agent, evidence: str, error: str, details: str = "") -> Agent:
    rejected = bool(_UNAUTHORISED.search(f"{details} {error}"))
    blocked = in_state(agent, Activity.BLOCKED, agent.since, evidence, error=error)
    return replace(blocked, unauthorised=rejected)


def _permission(pending: OpenCodePermission) -> str:
    what = pending.metadata.get("command") or pending.metadata.get("filepath")
    arguments = {"command": what or " ".join(pending.patterns)}
    return with_choices(permission_request(pending.permission, arguments), port.PERMISSION_CHOICES)


def _questions(arguments: Mapping[str, object]) -> str:
    return describe_questions(arguments) or UNREADABLE_QUESTION
