"""What is to be looked at again; many refreshes of one thing are one row."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta

from bot.store.database import StoreTable
from bot.store.rows import encoded, from_timestamp
from bot.store.values import DueRefresh, RefreshRequest

_TOUCH = """INSERT INTO refreshes (repository, subject, since, due) VALUES (?, ?, ?, ?)
    ON CONFLICT (repository, subject) DO UPDATE
    SET since = excluded.since, due = min(due, excluded.due), times = times + 1"""
DUE_TOUCHES = """SELECT repository, subject, since, due, times FROM refreshes
    WHERE due <= :now AND EXISTS
        (SELECT 1 FROM json_each(:prefixes) AS p
            WHERE substr(subject, 1, length(p.value)) = p.value)
    ORDER BY due, since LIMIT :limit"""
_SETTLE = "DELETE FROM refreshes WHERE repository = ? AND subject = ? AND since = ? AND times = ?"
_POSTPONE = """UPDATE refreshes SET due = ?
    WHERE repository = ? AND subject = ? AND since = ? AND times = ?"""


class RefreshesTable(StoreTable):
    """The table of refreshes."""

    def request(
        self, refreshes: Iterable[RefreshRequest], now: datetime, *, apart: timedelta = timedelta()
    ) -> None:
        """Ask for another look; one that waits already keeps its place.

        Of many, each may be due some time after the one before it.
        """
        rows = list(refreshes)
        if rows:
            self._db.write(lambda connection: add_refreshes(connection, rows, now, apart))

    def due(self, now: datetime, prefixes: tuple[str, ...], limit: int = 200) -> list[DueRefresh]:
        """Touches to look at now whose subject starts with one of `prefixes`, oldest first."""
        values = {"now": now.timestamp(), "prefixes": encoded(prefixes), "limit": limit}
        with self._db.read() as connection:
            return [
                DueRefresh(
                    repository=row["repository"],
                    subject=row["subject"],
                    since=from_timestamp(row["since"]),
                    due=from_timestamp(row["due"]),
                    times=row["times"],
                )
                for row in connection.execute(DUE_TOUCHES, values)
            ]

    def mark_done(self, t: DueRefresh) -> None:
        """It was looked at; a refresh that came in the meantime stays."""
        self._db.write(lambda connection: connection.execute(_SETTLE, _identity(t)))

    def postpone(self, t: DueRefresh, due: datetime) -> None:
        """Look at it later; a refresh that came in the meantime keeps its own time."""
        values = (due.timestamp(), *_identity(t))
        self._db.write(lambda connection: connection.execute(_POSTPONE, values))


def add_refreshes(
    connection: sqlite3.Connection,
    refreshes: Iterable[RefreshRequest],
    now: datetime,
    apart: timedelta = timedelta(),
) -> None:
    """Write refreshes down inside a transaction."""
    rows = [
        (t.repository, t.subject, now.timestamp(), (now + apart * place).timestamp())
        for place, t in enumerate(refreshes)
    ]
    connection.executemany(_TOUCH, rows)


def _identity(t: DueRefresh) -> tuple[str, str, float, int]:
    return (t.repository, t.subject, t.since.timestamp(), t.times)
