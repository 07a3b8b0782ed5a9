"""What is to be looked at again; many touches of one thing are one row."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta

from bot.store.base import Base
from bot.store.rows import encoded, moment
from bot.store.values import DueTouch, Touch

_TOUCH = """INSERT INTO touches (repository, subject, since, due) VALUES (?, ?, ?, ?)
    ON CONFLICT (repository, subject) DO UPDATE
    SET since = excluded.since, due = min(due, excluded.due), times = times + 1"""
DUE_TOUCHES = """SELECT repository, subject, since, due, times FROM touches
    WHERE due <= :now AND EXISTS
        (SELECT 1 FROM json_each(:prefixes) AS p
            WHERE substr(subject, 1, length(p.value)) = p.value)
    ORDER BY due, since LIMIT :limit"""
_SETTLE = "DELETE FROM touches WHERE repository = ? AND subject = ? AND since = ? AND times = ?"
_POSTPONE = """UPDATE touches SET due = ?
    WHERE repository = ? AND subject = ? AND since = ? AND times = ?"""


class Touches(Base):
    """The table of touches."""

    def touch(
        self, touches: Iterable[Touch], now: datetime, *, apart: timedelta = timedelta()
    ) -> None:
        """Ask for another look; one that waits already keeps its place.

        Of many, each may be due some time after the one before it.
        """
        rows = list(touches)
        if rows:
            self.write(lambda connection: add_touches(connection, rows, now, apart))

    def due_touches(
        self, now: datetime, prefixes: tuple[str, ...], limit: int = 200
    ) -> list[DueTouch]:
        """Touches to look at now whose subject starts with one of `prefixes`, oldest first."""
        values = {"now": now.timestamp(), "prefixes": encoded(prefixes), "limit": limit}
        with self._read() as connection:
            return [
                DueTouch(
                    repository=row["repository"],
                    subject=row["subject"],
                    since=moment(row["since"]),
                    due=moment(row["due"]),
                    times=row["times"],
                )
                for row in connection.execute(DUE_TOUCHES, values)
            ]

    def settle_touch(self, t: DueTouch) -> None:
        """It was looked at; a touch that came in the meantime stays."""
        self.write(lambda connection: connection.execute(_SETTLE, _identity(t)))

    def postpone_touch(self, t: DueTouch, due: datetime) -> None:
        """Look at it later; a touch that came in the meantime keeps its own time."""
        values = (due.timestamp(), *_identity(t))
        self.write(lambda connection: connection.execute(_POSTPONE, values))


def add_touches(
    connection: sqlite3.Connection,
    touches: Iterable[Touch],
    now: datetime,
    apart: timedelta = timedelta(),
) -> None:
    """Write touches down inside a transaction."""
    rows = [
        (t.repository, t.subject, now.timestamp(), (now + apart * place).timestamp())
        for place, t in enumerate(touches)
    ]
    connection.executemany(_TOUCH, rows)


def _identity(t: DueTouch) -> tuple[str, str, float, int]:
    return (t.repository, t.subject, t.since.timestamp(), t.times)
