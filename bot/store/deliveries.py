"""Webhooks as they arrived, kept until they are worked through."""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import datetime

from bot.store.base import Base
from bot.store.rows import Row, moment
from bot.store.touches import add_touches
from bot.store.values import Accepted, Delivery, NewWish, Touch
from bot.store.wishes import add_wishes

PRUNE_STEP = 1000

_KEEP = """INSERT INTO deliveries (id, event, at, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING"""
_KEEP_AGAIN = """UPDATE deliveries SET state = 'new', error = '', done_at = NULL
    WHERE id = ? AND state = 'failed'"""
WAITING = """SELECT id, event, at, body, state FROM deliveries
    WHERE state = 'new' ORDER BY at, rowid LIMIT ?"""
_SETTLE = "UPDATE deliveries SET state = ?, error = ?, done_at = ? WHERE id = ? AND state = 'new'"
PRUNE = """DELETE FROM deliveries WHERE rowid IN
    (SELECT rowid FROM deliveries WHERE done_at < ? LIMIT ?)"""


class Deliveries(Base):
    """The table of deliveries."""

    def deliver(self, rows: Sequence[Delivery]) -> Future[list[Accepted]]:
        """Keep deliveries, all or none; the future resolves only when they are on disk."""
        return self._submit(lambda connection: [_keep(connection, row) for row in rows])

    def waiting_deliveries(self, limit: int = 100) -> list[Delivery]:
        """Those nobody has worked through, oldest first."""
        with self._read() as connection:
            return [_delivery(row) for row in connection.execute(WAITING, (limit,))]

    def settle_delivery(self, id: str, touches: Sequence[Touch], wishes: Sequence[NewWish]) -> None:
        """Write down what follows from a delivery and that it is done, in one transaction.

        Settling one that does not wait any more does nothing.
        """
        now = self.clock()

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(_SETTLE, ("done", "", now.timestamp(), id)).rowcount:
                add_touches(connection, touches, now)
                add_wishes(connection, wishes)

        self.write(work)

    def fail_delivery(self, id: str, error: str) -> None:
        """Set a delivery aside with what went wrong; a redelivery of it is tried again."""
        values = ("failed", error, self.clock().timestamp(), id)
        self.write(lambda connection: connection.execute(_SETTLE, values))

    def prune(self, now: datetime, keep_seconds: float) -> int:
        """Delete settled deliveries older than `keep_seconds`; how many. Small steps, so that
        others get their turn."""
        before = now.timestamp() - keep_seconds
        total = 0
        while True:
            deleted = self.write(
                lambda connection: connection.execute(PRUNE, (before, PRUNE_STEP)).rowcount
            )
            total += deleted
            if deleted < PRUNE_STEP:
                return total


def _keep(connection: sqlite3.Connection, row: Delivery) -> Accepted:
    values = (row.id, row.event, row.at.timestamp(), row.body)
    if connection.execute(_KEEP, values).rowcount:
        return Accepted.NEW
    if connection.execute(_KEEP_AGAIN, (row.id,)).rowcount:
        return Accepted.AGAIN
    return Accepted.DUPLICATE


def _delivery(row: Row) -> Delivery:
    return Delivery(
        id=row["id"],
        event=row["event"],
        at=moment(row["at"]),
        body=row["body"],
        state=row["state"],
    )
