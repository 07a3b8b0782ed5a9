"""The facts of sessions, many at once, from one state of the store."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from bot.store.database import StoreTable
from bot.store.decode import (
    agent_of,
    blockers_of,
    command_of,
    ended_of,
    issue_of,
    pulls_of,
    work_of,
)
from bot.store.errors import CorruptRow, StoreFailure
from bot.store.finishing import finished_of
from bot.store.freezes import freezes_by_scope, widest_freeze
from bot.store.places import archived
from bot.store.receipts import receipt_of
from bot.store.rows import (
    Row,
    by_session,
    corrupt_row,
    decoded,
    encoded,
    from_timestamp,
    from_timestamp_or_none,
)
from bot.store.sessions import COMMAND_RULES
from bot.store.usage import OF_SESSIONS as USAGE
from bot.store.usage import day_of, spending, spent_on_day
from bot.store.values import LoadedSession, SessionDecision
from lifecycle.model.facts import Done, Facts, Failure, Frozen, Sent, Spending
from lifecycle.model.status import Reason

SESSIONS = "SELECT * FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
OUTBOX = """SELECT seq, session, key, state, done_at, next_at, result, reason, error, action,
        receipt
    FROM outbox WHERE session IN (SELECT value FROM json_each(?)) ORDER BY session, seq"""


class _Covers(msgspec.Struct, frozen=True):
    """The part of an action that facts need."""

    covers: tuple[str, ...] = ()


_covers = msgspec.json.Decoder(_Covers)


class FactsReader(StoreTable):
    """The facts of sessions, read from all tables at once."""

    def load(self, sessions: Sequence[str]) -> list[LoadedSession]:
        """These sessions as they are, all from one state of the store, in the same order."""
        with self._db.read() as connection:
            found = {one.session: one for one in _load(connection, sessions, self._db.clock())}
        return [found[session] for session in sessions if session in found]

    def get(self, session: str) -> Facts:
        """Everything known of a session. Raises `BadRow`."""
        loaded = self.load([session])
        if not loaded:
            raise StoreFailure(f"there is no session {session!r}: `mergewright ls` lists them")
        (one,) = loaded
        if isinstance(one.facts, CorruptRow):
            raise one.facts
        return one.facts


class _Around:
    """What is read once for all the sessions that are loaded together."""

    def __init__(self, connection: sqlite3.Connection, ids: Sequence[str], now: datetime) -> None:
        among = (encoded(ids),)
        self._connection = connection
        self._day = day_of(now)
        self._today: dict[str, Spending] = {}
        self.outbox = by_session(connection.execute(OUTBOX, among))
        self.commands = by_session(connection.execute(COMMAND_RULES, among))
        self.usage = by_session(connection.execute(USAGE, among))
        self.freezes: dict[str, Frozen] = freezes_by_scope(connection)
        self.archived = archived(connection)

    def today(self, repository: str) -> Spending:
        if repository not in self._today:
            self._today[repository] = spent_on_day(self._connection, repository, self._day)
        return self._today[repository]


def _load(
    connection: sqlite3.Connection, ids: Sequence[str], now: datetime
) -> Iterator[LoadedSession]:
    """Everything known of each session there is, or what is wrong with its rows."""
    around = _Around(connection, ids, now)
    for row in connection.execute(SESSIONS, (encoded(ids),)):
        try:
            yield _visit(row, around)
        except CorruptRow as error:
            yield LoadedSession(session=row["id"], version=row["version"], facts=error)


def _visit(row: Row, around: _Around) -> LoadedSession:
    facts = _facts(row, around)
    before = SessionDecision(
        status=row["status"],
        reason=row["reason"],
        because=row["because"],
        run=row["run"],
        blockers=blockers_of(row),
        recheck_at=from_timestamp_or_none(row["due"]),
        ended=facts.ended,
        wants_slot=bool(row["wants_slot"]),
    )
    return LoadedSession(session=row["id"], version=row["version"], facts=facts, before=before)


def _facts(row: Row, around: _Around) -> Facts:
    session = row["id"]
    actions = around.outbox.get(session, ())
    done, pending, sent, failures = _outbox_facts(actions)
    used = around.usage.get(session, ())
    return Facts(
        session=session,
        project=row["project"],
        created=from_timestamp(row["created"]),
        issue=issue_of(row),
        requester=row["requester"],
        agent_type=row["agent_type"],
        branch=row["branch"],
        run=row["run"],
        slot=bool(row["slot"]),
        start_due=_start_due(actions),
        waits=row["waits"],
        agent_name=row["agent_name"],
        spent=spending(used, row["first_run"]),
        spent_ever=spending(used),
        spent_today=around.today(row["repository"]),
        frozen=widest_freeze(around.freezes, row["project"], session),
        archived=row["repository"] in around.archived,
        restored_at=from_timestamp_or_none(row["restored_at"]),
        agent=agent_of(row),
        work=work_of(row),
        pulls=pulls_of(row),
        commands=tuple(command_of(command) for command in around.commands.get(session, ())),
        done=done,
        pending=pending,
        sent=sent,
        failures=failures,
        ended=ended_of(row),
        finished=finished_of(row),
    )


def _outbox_facts(
    rows: Iterable[Row],
) -> tuple[dict[str, Done], frozenset[str], dict[str, Sent], dict[str, Failure]]:
    done: dict[str, Done] = {}
    pending: set[str] = set()
    sent: dict[str, Sent] = {}
    failures: dict[str, Failure] = {}
    for row in rows:
        keys = (row["key"], *decoded(_covers, row, "outbox", "seq", "action").covers)
        if row["state"] == "due":
            pending.update(keys)
        elif row["state"] == "done":
            done.update(
                dict.fromkeys(keys, Done(at=from_timestamp(row["done_at"]), result=row["result"]))
            )
        elif row["state"] == "sent":
            if receipt := receipt_of(row):
                sent[row["key"]] = receipt.sent
        else:
            failures[row["key"]] = Failure(
                at=from_timestamp(row["done_at"]), reason=_reason(row), detail=row["error"]
            )
    return done, frozenset(pending), sent, failures


def _start_due(rows: Iterable[Row]) -> datetime | None:
    """Since when the start that is not done yet is being tried; ahead: when it is tried again."""
    due = (row["next_at"] for row in rows if row["state"] == "due" and row["key"][:6] == "start:")
    return from_timestamp_or_none(max(due, default=None))


def _reason(row: Row) -> Reason:
    try:
        return Reason(row["reason"])
    except ValueError as error:
        raise corrupt_row("outbox", row["seq"], "reason", error) from error
