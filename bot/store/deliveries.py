"""Webhooks as they arrived, kept until they are worked through."""

import sqlite3
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime

from bot.store.commands import add_commands
from bot.store.database import StoreTable
from bot.store.refreshes import add_refreshes
from bot.store.rows import Row, encoded, from_timestamp
from bot.store.values import Delivery, DeliveryOutcome, NewCommand, RefreshRequest

PRUNE_STEP = 1000

_INSERT = "INSERT INTO deliveries (id, event, at, body)"
_PLACES = "(?, ?, ?, ?)"
_KEEP = f"{_INSERT} VALUES {_PLACES} ON CONFLICT (id) DO NOTHING"
#: Rows of one statement: SQLite takes 32,766 values, and a statement of each length is kept.
_TOGETHER = 64
_KEEP_AGAIN = """UPDATE deliveries SET state = 'new', error = '', done_at = NULL
    WHERE id = ? AND state = 'failed'"""
KEPT = "SELECT id FROM deliveries WHERE id IN (SELECT value FROM json_each(?))"
MARK = "SELECT at FROM marks WHERE name = ?"
_SET_MARK = """INSERT INTO marks (name, at) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at"""
WAITING = """SELECT id, event, at, body, state FROM deliveries
    WHERE state = 'new' ORDER BY at, rowid LIMIT ?"""
_SETTLE = "UPDATE deliveries SET state = ?, error = ?, done_at = ? WHERE id = ? AND state = 'new'"
_REDACT = "UPDATE deliveries SET body = ? WHERE id = ?"
PRUNE = """DELETE FROM deliveries WHERE rowid IN
    (SELECT rowid FROM deliveries WHERE done_at < ? LIMIT ?)"""


class DeliveriesTable(StoreTable):
    """The table of deliveries."""

    def add(self, rows: Sequence[Delivery]) -> Future[list[DeliveryOutcome]]:
        """Keep deliveries, all or none; the future resolves only when they are on disk."""
        return self._db.submit(
            lambda connection: [
                accepted
                for start in range(0, len(rows), _TOGETHER)
                for accepted in _keep_all(connection, rows[start : start + _TOGETHER])
            ]
        )

    def waiting(self, limit: int = 100) -> list[Delivery]:
        """Those nobody has worked through, oldest first."""
        with self._db.read() as connection:
            return [_delivery(row) for row in connection.execute(WAITING, (limit,))]

    def known(self, ids: Iterable[str]) -> set[str]:
        """Those of them that have come."""
        with self._db.read() as connection:
            return {row["id"] for row in connection.execute(KEPT, (encoded(list(ids)),))}

    def mark_done(
        self, id: str, refreshes: Sequence[RefreshRequest], commands: Sequence[NewCommand]
    ) -> None:
        """Write down what follows from a delivery and that it is done, in one transaction.

        Settling one that does not wait any more does nothing.
        """
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(_SETTLE, ("done", "", now.timestamp(), id)).rowcount:
                add_refreshes(connection, refreshes, now)
                add_commands(connection, commands)

        self._db.write(work)

    def redact(self, kept: Delivery) -> None:
        """Take secrets out of what came, before it stays for days.

        Not as it comes: that would have GitHub wait for each.
        """
        body = self._db.redact(kept.body)
        if body != kept.body:
            self._db.write(lambda connection: connection.execute(_REDACT, (body, kept.id)))

    def mark_failed(self, id: str, error: str) -> None:
        """Set a delivery aside with what went wrong; a redelivery of it is tried again."""
        values = ("failed", error, self._db.clock().timestamp(), id)
        self._db.write(lambda connection: connection.execute(_SETTLE, values))

    def prune(self, now: datetime, keep_seconds: float) -> int:
        """Delete settled deliveries older than `keep_seconds`; how many. Small steps, so that
        others get their turn."""
        before = now.timestamp() - keep_seconds
        total = 0
        while True:
            deleted = self._db.write(
                lambda connection: connection.execute(PRUNE, (before, PRUNE_STEP)).rowcount
            )
            total += deleted
            if deleted < PRUNE_STEP:
                return total


class CursorsTable(StoreTable):
    """How far each growing list at GitHub has been read."""

    def get(self, name: str) -> datetime | None:
        """How far something had been looked at; None: never."""
        with self._db.read() as connection:
            row = connection.execute(MARK, (name,)).fetchone()
            return None if row is None else from_timestamp(row["at"])

    def set(self, name: str, at: datetime) -> None:
        """Remember how far something has been looked at."""
        values = (name, at.timestamp())
        self._db.write(lambda connection: connection.execute(_SET_MARK, values))


def _keep_all(connection: sqlite3.Connection, rows: Sequence[Delivery]) -> list[DeliveryOutcome]:
    """Keep rows together where all are new, one by one where one is known.

    After every statement this thread waits for the interpreter, so one for all is what makes
    many at once cheap.
    """
    values = [value for row in rows for value in _values(row)]
    try:
        connection.execute(f"{_INSERT} VALUES {', '.join([_PLACES] * len(rows))}", values)
    except sqlite3.IntegrityError:  # Nothing of it was kept.
        return [_keep(connection, row) for row in rows]
    return [DeliveryOutcome.NEW] * len(rows)


def _keep(connection: sqlite3.Connection, row: Delivery) -> DeliveryOutcome:
    if connection.execute(_KEEP, _values(row)).rowcount:
        return DeliveryOutcome.NEW
    if connection.execute(_KEEP_AGAIN, (row.id,)).rowcount:
        return DeliveryOutcome.RETRIED
    return DeliveryOutcome.DUPLICATE


def _values(row: Delivery) -> tuple[str, str, float, bytes]:
    return row.id, row.event, row.at.timestamp(), row.body


def _delivery(row: Row) -> Delivery:
    return Delivery(
        id=row["id"],
        event=row["event"],
        at=from_timestamp(row["at"]),
        body=row["body"],
        state=row["state"],
    )
