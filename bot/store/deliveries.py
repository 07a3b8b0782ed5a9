"""The inbox of webhook deliveries."""

import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import asdict

from bot.store.commands import add_commands
from bot.store.database import StoreTable
from bot.store.refreshes import add_refreshes
from bot.store.rows import RowDecoder, encoded, from_timestamp, skip_corrupt
from bot.store.values import (
    Delivery,
    DeliveryOutcome,
    FailedDelivery,
    NewCommand,
    ProcessedDelivery,
    RefreshRequest,
)

_INSERT = "INSERT INTO deliveries (id, event, at, body)"
_ROW = "(?, ?, ?, ?)"
_INSERT_NEW = f"{_INSERT} VALUES {_ROW} ON CONFLICT (id) DO NOTHING"
#: The most rows of one INSERT. SQLite allows 32,766 values, and caches one statement for each
#: number of rows.
_BATCH = 64
_RETRY = """UPDATE deliveries SET state = 'new', error = '', done_at = NULL
    WHERE id = ? AND state = 'failed'"""
FAILED = """SELECT id, event, at, error FROM deliveries
    WHERE state = 'failed' ORDER BY at DESC LIMIT ?"""
FAILED_COUNT = "SELECT count(*) AS many FROM deliveries WHERE state = 'failed'"
KNOWN = "SELECT id FROM deliveries WHERE id IN (SELECT value FROM json_each(?))"
WAITING = """SELECT id, event, at, body FROM deliveries
    WHERE state = 'new' ORDER BY at, rowid LIMIT ?"""
_MARK = "UPDATE deliveries SET state = ?, error = ?, done_at = ? WHERE id = ? AND state = 'new'"
_OUTCOME = """INSERT INTO delivery_outcomes (delivery, repository, at, ignored, effects)
    SELECT id, ?, at, ?, ? FROM deliveries WHERE id = ?
    ON CONFLICT (delivery) DO UPDATE SET repository = excluded.repository,
        ignored = excluded.ignored, effects = excluded.effects"""
_RECORD = """SELECT id, event, deliveries.at, state, error, done_at,
        coalesce(repository, '') AS repository, coalesce(ignored, '') AS ignored,
        coalesce(effects, '[]') AS effects
    FROM deliveries LEFT JOIN delivery_outcomes ON delivery = id WHERE {}"""
RECORD = _RECORD.format("id = ?")
RECENT = _RECORD.format(
    """(:event = '' OR event = :event)
        AND CASE :state WHEN '' THEN 1 WHEN 'ignored' THEN ignored <> '' ELSE state = :state END
        AND (:repository = '' OR repository = :repository)
        AND (:repositories IS NULL OR repository IN (SELECT value FROM json_each(:repositories)))
        AND (:after IS NULL OR deliveries.at < :after OR deliveries.at = :after AND id < :last)
    ORDER BY deliveries.at DESC, id DESC LIMIT :limit"""
)
ONE = "SELECT id, event, at, body FROM deliveries WHERE id = ?"
LAST = "SELECT repository, max(at) AS at FROM delivery_outcomes GROUP BY repository"
_REDACT = "UPDATE deliveries SET body = ? WHERE id = ?"


class Ignored(StrEnum):
    """Why the bot ignored a delivery."""

    EVENT = "event"  #: The bot reads no events of this kind, or none with this action.
    OWN = "own"  #: The bot itself wrote the comment.
    REPOSITORY = "repository"  #: The repository belongs to no project.
    BOT = "bot"  #: Another bot wrote the comment, and may not give commands.
    SESSION = "session"  #: The delivery concerns no session and does not request one.


class DeliveryEffect(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One effect of a delivery: a subject to read again from GitHub, or a command."""

    repository: str
    #: As in `RefreshRequest` if the subject is read again. For a command, `number:12`, or
    #: `session:widgets-12b` if the command names a session.
    subject: str
    command: str = ""  #: The kind of the command; if empty, the subject is read again.
    actor: str = ""  #: The login of the person who gave the command; if empty, no command.


class DeliveryRecord(FailedDelivery, frozen=True, kw_only=True):
    """A webhook delivery in any state, with its effects."""

    state: str  #: `new`, `done` or `failed`.
    done_at: datetime | None  #: When it was processed or failed; None while `new`.
    repository: str  #: The repository that it names; empty if none, several, or not processed yet.
    ignored: str  #: A value of `Ignored`; if empty, it had effects, or none were recorded yet.
    effects: tuple[DeliveryEffect, ...]


class DeliveryQuery(Struct, frozen=True, kw_only=True):
    """Which deliveries to list. An empty text selects all."""

    state: str = ""  #: `new`, `done`, `failed`, or `ignored` for those without effects.
    event: str = ""
    repository: str = ""
    #: Only deliveries that name one of these. None for all, even those that name no repository.
    repositories: tuple[str, ...] | None = None
    #: The cursor that `page` returned with the previous page; empty for the first page.
    cursor: str = ""
    limit: int = 50


_delivery = RowDecoder(Delivery, "deliveries")
_record = RowDecoder(DeliveryRecord, "deliveries")
_failed = RowDecoder(FailedDelivery, "deliveries")


class DeliveriesTable(StoreTable):
    """Webhook deliveries and their effects. `redact` masks secrets in the body of a delivery."""

    def add(self, rows: Sequence[Delivery]) -> Future[list[DeliveryOutcome]]:
        """Store deliveries. The future resolves when all deliveries are on disk.

        The result has one outcome per delivery, in the order of `rows`.
        """
        return self._db.submit(
            lambda connection: [
                accepted
                for start in range(0, len(rows), _BATCH)
                for accepted in _insert_all(connection, rows[start : start + _BATCH])
            ]
        )

    def waiting(self, limit: int = 100) -> list[Delivery]:
        """Return up to `limit` deliveries that wait to be processed, oldest first."""
        return list(map(_delivery, self._all(WAITING, (limit,))))

    def known(self, ids: Iterable[str]) -> set[str]:
        """Return which of these ids are stored, in any state."""
        return {row["id"] for row in self._all(KNOWN, (encoded(list(ids)),))}

    def mark_done(
        self, id: str, refreshes: Sequence[RefreshRequest], commands: Sequence[NewCommand]
    ) -> None:
        """Mark one delivery as done. See `mark_all_done`."""
        self.mark_all_done([ProcessedDelivery(id, tuple(refreshes), tuple(commands))])

    def mark_all_done(self, processed: Iterable[ProcessedDelivery]) -> None:
        """Mark deliveries as done and write all their effects, in one transaction.

        A delivery that is not in state `new` is skipped.
        """
        now, rows = self._db.clock(), list(processed)

        def work(connection: sqlite3.Connection) -> None:
            for one in rows:
                if connection.execute(_MARK, ("done", "", now.timestamp(), one.id)).rowcount:
                    add_refreshes(connection, one.refreshes, now)
                    add_commands(connection, one.commands)
                    connection.execute(_OUTCOME, _outcome(one))

        if rows:
            self._db.write(work)

    def redact(self, delivery: Delivery) -> None:
        """Mask secrets in a stored body.

        This is done after the delivery is accepted, so that GitHub does not wait for it.
        """
        body = self._db.redact(delivery.body)
        if body != delivery.body:
            self._execute(_REDACT, (body, delivery.id))

    def mark_failed(self, id: str, error: str, refreshes: Sequence[RefreshRequest] = ()) -> None:
        """Mark a new delivery as failed and write its refreshes, in one transaction.

        The delivery is processed again after `retry`, or if GitHub redelivers it.
        """
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(_MARK, ("failed", error, now.timestamp(), id)).rowcount:
                add_refreshes(connection, refreshes, now)
                repository = refreshes[0].repository if refreshes else ""
                failed = ProcessedDelivery(id, tuple(refreshes), repository=repository)
                connection.execute(_OUTCOME, _outcome(failed))

        self._db.write(work)

    def failed(self, limit: int = -1) -> list[FailedDelivery]:
        """Return up to `limit` deliveries that could not be processed, newest first; all if -1."""
        return list(map(_failed, self._all(FAILED, (limit,))))

    def failed_count(self) -> int:
        """Return how many deliveries could not be processed."""
        (row,) = self._all(FAILED_COUNT)
        return int(row["many"])

    def page(self, query: DeliveryQuery) -> tuple[list[DeliveryRecord], str]:
        """Return a page of deliveries, newest first, and the cursor of the next page.

        The cursor is empty if there is no next page.
        """
        after, _, last = query.cursor.partition(":")
        values = {
            **asdict(query),
            "repositories": None if query.repositories is None else encoded(query.repositories),
            "after": float(after) if after else None,
            "last": last,
            "limit": query.limit + 1,
        }
        rows = self._all(RECENT, values)
        listed = rows[: query.limit]
        cursor = f"{listed[-1]['at']!r}:{listed[-1]['id']}" if len(rows) > query.limit else ""
        return list(skip_corrupt(_record, listed)), cursor

    def record(self, id: str) -> DeliveryRecord | None:
        """Return a delivery with its effects, or None if it is unknown. Raises `CorruptRow`."""
        row = self._first(RECORD, (id,))
        return None if row is None else _record(row)

    def get(self, id: str) -> Delivery | None:
        """Return a delivery as it is stored (see `redact`); None if it is unknown."""
        row = self._first(ONE, (id,))
        return None if row is None else _delivery(row)

    def last(self) -> dict[str, datetime]:
        """Return when each repository's last processed or failed delivery arrived.

        Deliveries that name no repository or several are listed under an empty name.
        """
        return {row["repository"]: from_timestamp(row["at"]) for row in self._all(LAST)}

    def retry(self, ids: Iterable[str]) -> int:
        """Make failed deliveries due again; return how many of `ids` had failed."""
        values = [(name,) for name in ids]
        return self._db.write(lambda connection: connection.executemany(_RETRY, values).rowcount)


def _insert_all(connection: sqlite3.Connection, rows: Sequence[Delivery]) -> list[DeliveryOutcome]:
    """Insert rows in one statement, or one by one if any row is stored already.

    One statement makes a burst of deliveries cheap, because this thread waits for the interpreter
    lock after every statement.
    """
    values = [value for row in rows for value in _values(row)]
    try:
        connection.execute(f"{_INSERT} VALUES {', '.join([_ROW] * len(rows))}", values)
    except sqlite3.IntegrityError:  # None of them was inserted.
        return [_insert(connection, row) for row in rows]
    return [DeliveryOutcome.NEW] * len(rows)


def _insert(connection: sqlite3.Connection, row: Delivery) -> DeliveryOutcome:
    if connection.execute(_INSERT_NEW, _values(row)).rowcount:
        return DeliveryOutcome.NEW
    if connection.execute(_RETRY, (row.id,)).rowcount:
        return DeliveryOutcome.RETRIED
    return DeliveryOutcome.DUPLICATE


def _outcome(one: ProcessedDelivery) -> tuple[str, str, str, str]:
    effects = [
        *(
            DeliveryEffect(repository=each.repository, subject=each.subject)
            for each in one.refreshes
        ),
        *(
            DeliveryEffect(
                repository=each.repository,
                subject=f"session:{each.addressee}" if each.addressee else f"number:{each.number}",
                command=each.kind,
                actor=each.actor,
            )
            for each in one.commands
        ),
    ]
    return one.repository, one.ignored, encoded(effects), one.id


def _values(row: Delivery) -> tuple[str, str, float, bytes]:
    return row.id, row.event, row.at.timestamp(), row.body
