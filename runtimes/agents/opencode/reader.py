"""Reads one run of OpenCode from its database and its port."""

import re
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.opencode import files as its
from runtimes.agents.opencode.dialog import ASKED, CHOICES
from runtimes.agents.shared.databases import reading
from runtimes.agents.shared.exits import ended
from runtimes.agents.shared.files import TEXT, read_text, understood
from runtimes.agents.shared.forms import questions
from runtimes.agents.shared.questions import permission, with_choices
from runtimes.agents.shared.usage_counter import UsageCounter
from runtimes.base import Seen

#: From so many tries on it does not look as if the next one helped.
_TRIES = 3
#: It never waits so long for the next one by itself: its provider told it when to come back.
_LONG = timedelta(minutes=2)
_STATE = {
    **ASKED,
    "/session/status": dict[str, its.Status],
}
#: Its port is asked at every look so long after something was written, and otherwise this often:
#: to ask a thousand of them takes seconds.
_LATELY, _AGAIN = timedelta(seconds=15), timedelta(seconds=30)
#: Its word for an answer that was broken off by people.
_ABORTED = "MessageAbortedError"
_LIMITED = re.compile(r"\b429\b|limit|quota|too many requests", re.IGNORECASE)
_UNAUTHORISED = re.compile(
    r"\b40[13]\b|unauthori[sz]ed|api key|auth(entication|error)", re.IGNORECASE
)

_SESSION = """
select id from session where parent_id is null and time_created >= ?
order by time_created limit 1
"""
_MESSAGES = """
select id, session_id, time_updated, data from message
where time_created >= ? and time_updated >= ? order by time_created, id
"""
_PARTS = "select time_updated, data from part where message_id = ? order by id"
_HOLDS = "select 1 from part where session_id = ? and instr(data, ?) limit 1"


class OpenCodeReader:
    """What is known of a run so far. A look costs what is new."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._written = its.written(files)
        self._began = files.began.timestamp() * 1000 if files.began.year > 1 else 0.0
        self._native = read_text(files.conversation)
        self._changed: tuple[object, ...] = ()
        self._updated = 0.0  #: The newest change to a message that was read.
        self._messages: dict[str, its.Message] = {}  #: Of this run, in all its conversations.
        self._tally = UsageCounter()
        self._prompted: datetime | None = None
        self._last = ""  #: The last message of its own conversation.
        self._tools: list[its.Part] = []  #: That it called there, and that have not returned.
        self._touched: datetime | None = None
        self._summary = ""
        self._turn = Agent(run=files.run)  #: What its database says of the turn.
        self._ask_at = datetime.min.replace(tzinfo=UTC)  #: When its port is asked at the latest.
        self._heard = self._turn  #: The same, with what its port said.

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The activity by its database, with what its port says; see `Reader.read`."""
        self._read_database()
        agent = replace(
            self._turn,
            runtime=seen.runtime,
            program=seen.program,
            native_id=self._native,
            summary=self._summary,
            seen=self._touched,
            usage=self._tally.usage(),
        )
        if end := ended(seen, agent):
            return end
        if agent.activity is Activity.ACTIVE:
            ask = self._is_to_ask(now)
            agent = self._asked(agent, now) if ask else self._still(agent) or agent
        self._heard = agent
        return agent

    def received(self, key: str) -> bool:
        """Whether the key is in the conversation."""
        self._read_database()
        try:
            with reading(its.database(self._files)) as database:
                return database.execute(_HOLDS, (self._native, key)).fetchone() is not None
        except sqlite3.Error:
            return False

    def _read_database(self) -> None:
        changed = its.changed(self._written)
        if not changed or changed == self._changed:
            return
        try:
            with reading(its.database(self._files)) as database:
                self._read_messages(database)
        except sqlite3.Error:
            return
        self._changed = changed

    def _read_messages(self, database: sqlite3.Connection) -> None:
        if not self._native:
            row = database.execute(_SESSION, (self._began,)).fetchone()
            self._native = row[0] if row else ""
        rows = database.execute(_MESSAGES, (self._began, self._updated))
        for name, session, updated, data in rows:
            message = understood(data, its.Message)
            if message is None:
                continue
            self._updated = max(self._updated, updated)
            self._messages[name] = message
            if message.role == "assistant":  # Also in conversations that its own began.
                self._tally.counts(name, message.model_id, its.used(message.tokens, message.cost))
            if session == self._native:
                self._last = max(self._last, name)
                if message.role == "user":
                    self._prompted = its.time(message.time.created)
        if self._last:
            self._read_last(database)

    def _read_last(self, database: sqlite3.Connection) -> None:
        """What the last message of its conversation says of the turn."""
        message = self._messages[self._last]
        rows = database.execute(_PARTS, (self._last,)).fetchall()
        self._touched = its.time(max([message.time.created, *(row[0] for row in rows)]))
        parts = [part for row in rows if (part := understood(row[1], its.Part))]
        self._tools = [part for part in parts if part.state.status in its.RUNNING]
        over = message.time.completed
        if over is None or message.finish == "tool-calls":
            self._turn = Agent(
                run=self._files.run,
                activity=Activity.ACTIVE,
                since=self._prompted,
                evidence="its database says that it answers",
                calling=bool(self._tools),
            )
            return
        self._summary = " ".join(part.text for part in parts if part.type == "text")[:TEXT]
        self._turn = Agent(
            run=self._files.run,
            activity=Activity.READY,
            since=its.time(over),
            evidence=f"its database says that it answered: {message.finish or 'broken off'}",
        )
        if message.error is not None and message.error.name != _ABORTED:
            name, said = message.error.name, message.error.data
            text = str(said.get("message") or name)
            self._turn = _fails(self._turn, text, f"{name} {said.get('statusCode')} {text}")

    def _is_to_ask(self, now: datetime) -> bool:
        """Whether its port may have news: lately there were some, or it was not asked for long."""
        lately = self._touched is not None and now - self._touched < _LATELY
        if not lately and now < self._ask_at:
            return False
        self._ask_at = now + _AGAIN
        return True

    def _still(self, agent: Agent) -> Agent | None:
        """What it was found to wait for, where nothing has happened since; None: nothing."""
        heard = self._heard
        waits = heard.activity in (Activity.WAITING_INPUT, Activity.BLOCKED)
        if not waits or heard.seen != agent.seen:
            return None
        return replace(heard, runtime=agent.runtime, program=agent.program)

    def _asked(self, agent: Agent, now: datetime) -> Agent:
        """What it waits for while it answers. A port that does not answer changes nothing."""
        answers = its.answers(self._files, _STATE)
        if answers is None:
            asked = [_put(tool.state.input) for tool in self._questions]
            return self._still(agent) or self._waiting(agent, asked)
        leaves, asks, statuses = answers
        asked = [_leave(each) for each in leaves] + [
            _put({"questions": each.questions}) for each in asks
        ]
        status = statuses.get(self._native, its.Status())
        again = its.time(status.next)
        told = again - now > _LONG
        if not asked and status.type == "retry" and (told or status.attempt >= _TRIES):
            agent = replace(agent, evidence=f"its port says retry {status.attempt}", calling=False)
            agent = _fails(agent, status.message, status.message)
            limited = told or _LIMITED.search(status.message)
            return replace(agent, limit_until=again if limited else None)
        return self._waiting(agent, asked)

    @property
    def _questions(self) -> list[its.Part]:
        return [tool for tool in self._tools if tool.tool == "question"]

    def _waiting(self, agent: Agent, asked: list[str]) -> Agent:
        if not asked:
            return agent
        return replace(
            agent,
            activity=Activity.WAITING_INPUT,
            since=agent.seen,
            evidence="it asks",
            question=asked[0][:TEXT],
            calling=False,
        )


def _fails(agent: Agent, text: str, said: str) -> Agent:
    return replace(
        agent,
        activity=Activity.BLOCKED,
        error=text[:TEXT],
        unauthorised=bool(_UNAUTHORISED.search(said)),
    )


def _leave(leave: its.Leave) -> str:
    what = leave.metadata.get("command") or leave.metadata.get("filepath")
    given = {"command": what or " ".join(leave.patterns)}
    return with_choices(permission(leave.permission, given), CHOICES)


def _put(given: Mapping[str, object]) -> str:
    return questions(given) or "It asks something."
