"""The inbox of webhook deliveries."""

import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import Future

from bot.store.commands import add_commands
from bot.store.database import StoreTable
from bot.store.refreshes import add_refreshes
from bot.store.rows import RowDecoder, encoded
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
#: Rows of one statement: SQLite takes 32,766 values, and caches a statement for each length.
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
_REDACT = "UPDATE deliveries SET body = ? WHERE id = ?"

_delivery = RowDecoder(Delivery, "deliveries")
_failed = RowDecoder(FailedDelivery, "deliveries")


class DeliveriesTable(StoreTable):
    """Webhook deliveries as they arrived."""

    def add(self, rows: Sequence[Delivery]) -> Future[list[DeliveryOutcome]]:
        """Store deliveries in one transaction. The future resolves once they are on disk."""
        return self._db.submit(
            lambda connection: [
                accepted
                for start in range(0, len(rows), _BATCH)
                for accepted in _insert_all(connection, rows[start : start + _BATCH])
            ]
        )

    def waiting(self, limit: int = 100) -> list[Delivery]:
        """The deliveries to process, oldest first."""
        return list(map(_delivery, self._all(WAITING, (limit,))))

    def known(self, ids: Iterable[str]) -> set[str]:
        """Return which of these ids are stored, in any state."""
        return {row["id"] for row in self._all(KNOWN, (encoded(list(ids)),))}

    def mark_done(
        self, id: str, refreshes: Sequence[RefreshRequest], commands: Sequence[NewCommand]
    ) -> None:
        """Mark one delivery as done; see `mark_all_done`."""
        self.mark_all_done([ProcessedDelivery(id, tuple(refreshes), tuple(commands))])

    def mark_all_done(self, processed: Iterable[ProcessedDelivery]) -> None:
        """Mark deliveries as done and write their refreshes and commands, in one transaction.

        A delivery that is not waiting is skipped.
        """
        now, rows = self._db.clock(), list(processed)

        def work(connection: sqlite3.Connection) -> None:
            for one in rows:
                if connection.execute(_MARK, ("done", "", now.timestamp(), one.id)).rowcount:
                    add_refreshes(connection, one.refreshes, now)
                    add_commands(connection, one.commands)

        if rows:
            self._db.write(work)

    def redact(self, delivery: Delivery) -> None:
        """Take secrets out of a stored body.

        Done after the delivery is accepted, so that GitHub does not wait for it.
        """
        body = self._db.redact(delivery.body)
        if body != delivery.body:
            self._execute(_REDACT, (body, delivery.id))

    def mark_failed(self, id: str, error: str, refreshes: Sequence[RefreshRequest] = ()) -> None:
        """Mark a delivery as failed and write its refreshes, in one transaction.

        It is processed again by `retry`, or if GitHub redelivers it.
        """
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(_MARK, ("failed", error, now.timestamp(), id)).rowcount:
                add_refreshes(connection, refreshes, now)

        self._db.write(work)

    def failed(self, limit: int = -1) -> list[FailedDelivery]:
        """The deliveries that could not be decoded, newest first; -1: all."""
        return list(map(_failed, self._all(FAILED, (limit,))))

    def failed_count(self) -> int:
        """How many deliveries could not be decoded."""
        (row,) = self._all(FAILED_COUNT)
        return int(row["many"])

    def retry(self, ids: Iterable[str]) -> int:
        """Have failed deliveries processed again; returns how many of these had failed."""
        values = [(name,) for name in ids]
        return self._db.write(lambda connection: connection.executemany(_RETRY, values).rowcount)


def _insert_all(connection: sqlite3.Connection, rows: Sequence[Delivery]) -> list[DeliveryOutcome]:
    """Insert rows in one statement; one by one if any is known.

    After every statement this thread waits for the interpreter lock, so one statement for all
    is what makes a burst cheap.
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


def _values(row: Delivery) -> tuple[str, str, float, bytes]:
    return row.id, row.event, row.at.timestamp(), row.body
