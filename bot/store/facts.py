"""The facts of sessions, many at once, from one state of the database."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from bot.store.database import StoreTable
from bot.store.decisions import outcomes_of
from bot.store.errors import CorruptRow, StoreFailure
from bot.store.incidents import freezes_by_scope, widest_freeze
from bot.store.receipts import receipt_of
from bot.store.repositories import archived
from bot.store.rows import (
    Row,
    agent_of,
    blockers_of,
    by_session,
    command_of,
    corrupt_row,
    decoded,
    encoded,
    ended_of,
    from_timestamp,
    from_timestamp_or_none,
    issue_of,
    key_of,
    pulls_of,
    work_of,
)
from bot.store.sessions import GRANTED_COMMANDS
from bot.store.usage import OF_SESSIONS as USAGE
from bot.store.usage import day_of, spending, spent_on_day
from bot.store.values import LoadedSession, SessionDecision
from lifecycle.model.facts import Done, Facts, Failure, Frozen, Sent, Spending
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.status import Reason

SESSIONS = "SELECT * FROM sessions WHERE id IN (SELECT value FROM json_each(?))"
OUTBOX = """SELECT seq, session, key, state, done_at, next_at, result, reason, error, action,
        receipt
    FROM outbox WHERE session IN (SELECT value FROM json_each(?)) ORDER BY session, seq"""


class _Covers(msgspec.Struct, frozen=True):
    """The other keys that an action stands for: all of its JSON that facts need."""

    covers: tuple[Key, ...] = ()


_covers = msgspec.json.Decoder(_Covers)


class FactsReader(StoreTable):
    """Reads the facts of sessions from all tables."""

    def load(self, sessions: Sequence[str]) -> list[LoadedSession]:
        """Load sessions from one state of the database, in the same order, without unknown ids."""
        with self._db.read() as connection:
            found = {one.session: one for one in _load(connection, sessions, self._db.clock())}
        return [found[session] for session in sessions if session in found]

    def get(self, session: str) -> Facts:
        """The facts of one session. Raises `CorruptRow`, or `StoreFailure` if it is unknown."""
        loaded = self.load([session])
        if not loaded:
            raise StoreFailure(f"there is no session {session!r}: `mergewright ls` lists them")
        (one,) = loaded
        if isinstance(one.facts, CorruptRow):
            raise one.facts
        return one.facts


class _Related:
    """The rows of other tables that belong to sessions that are loaded together."""

    def __init__(self, connection: sqlite3.Connection, ids: Sequence[str], now: datetime) -> None:
        among = (encoded(ids),)
        self._connection = connection
        self._day = day_of(now)
        self._today: dict[str, Spending] = {}
        self.outbox = by_session(connection.execute(OUTBOX, among))
        self.commands = by_session(connection.execute(GRANTED_COMMANDS, among))
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
    """Load each session; one with a corrupt row has the error as its facts."""
    related = _Related(connection, ids, now)
    for row in connection.execute(SESSIONS, (encoded(ids),)):
        try:
            yield _loaded(row, related)
        except CorruptRow as error:
            yield LoadedSession(session=row["id"], version=row["version"], facts=error)


def _loaded(row: Row, related: _Related) -> LoadedSession:
    facts = _facts(row, related)
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


def _facts(row: Row, related: _Related) -> Facts:
    session = row["id"]
    actions = related.outbox.get(session, ())
    done, pending, sent, failures = _outbox_facts(actions)
    used = related.usage.get(session, ())
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
        spent_today=related.today(row["repository"]),
        frozen=widest_freeze(related.freezes, row["project"], session),
        archived=row["repository"] in related.archived,
        restored_at=from_timestamp_or_none(row["restored_at"]),
        agent=agent_of(row),
        work=work_of(row),
        pulls=pulls_of(row),
        commands=tuple(command_of(command) for command in related.commands.get(session, ())),
        done=done,
        pending=pending,
        sent=sent,
        failures=failures,
        ended=ended_of(row),
        finished=outcomes_of(row),
    )


def _outbox_facts(
    rows: Iterable[Row],
) -> tuple[dict[Key, Done], frozenset[Key], dict[Key, Sent], dict[Key, Failure]]:
    done: dict[Key, Done] = {}
    pending: set[Key] = set()
    sent: dict[Key, Sent] = {}
    failures: dict[Key, Failure] = {}
    for row in rows:
        key = key_of(row)
        keys = (key, *decoded(_covers, row, "outbox", "seq", "action").covers)
        if row["state"] == "due":
            pending.update(keys)
        elif row["state"] == "done":
            done.update(
                dict.fromkeys(keys, Done(at=from_timestamp(row["done_at"]), result=row["result"]))
            )
        elif row["state"] == "sent":
            if receipt := receipt_of(row):
                sent[key] = receipt.sent
        else:
            failures[key] = Failure(
                at=from_timestamp(row["done_at"]), reason=_reason(row), detail=row["error"]
            )
    return done, frozenset(pending), sent, failures


def _start_due(rows: Iterable[Row]) -> datetime | None:
    """When the pending start action was or will be attempted next."""
    waiting = (row for row in rows if row["state"] == "due")
    due = (row["next_at"] for row in waiting if key_of(row).kind is KeyKind.START)
    return from_timestamp_or_none(max(due, default=None))


def _reason(row: Row) -> Reason:
    try:
        return Reason(row["reason"])
    except ValueError as error:
        raise corrupt_row("outbox", row["seq"], "reason", error) from error
