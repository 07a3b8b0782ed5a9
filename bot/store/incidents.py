"""What is wrong with the whole, not with one session, from when it was seen until it was over."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import from_timestamp, from_timestamp_or_none

_OPEN = "SELECT text FROM incidents WHERE key = ? AND cleared_at IS NULL"
_RAISE = "INSERT INTO incidents (key, since, text) VALUES (?, ?, ?)"
_SAY = "UPDATE incidents SET text = ? WHERE key = ? AND cleared_at IS NULL"
_CLEAR = "UPDATE incidents SET cleared_at = ? WHERE key = ? AND cleared_at IS NULL"
STANDING = """SELECT key, since, text, cleared_at FROM incidents
    WHERE cleared_at IS NULL ORDER BY seq DESC"""
PAST = "SELECT key, since, text, cleared_at FROM incidents ORDER BY seq DESC LIMIT ?"


class Incident(Struct, frozen=True, kw_only=True):
    """One thing that is or was wrong."""

    key: str  #: Its cause, e.g. `many-lost`; one of a key stands at a time.
    since: datetime
    text: str  #: For people: what, where and the remedy.
    cleared_at: datetime | None = None


class IncidentsTable(StoreTable):
    """The table of incidents."""

    def report(self, key: str, text: str, now: datetime) -> bool:
        """Something is wrong; True where that is new. Saying the same again writes nothing."""
        with self._db.read() as connection:
            standing = connection.execute(_OPEN, (key,)).fetchone()
            if standing is not None and standing["text"] == text:
                return False

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(_SAY, (text, key)).rowcount:
                return False
            connection.execute(_RAISE, (key, now.timestamp(), text))
            return True

        return self._db.write(work)

    def clear(self, key: str, now: datetime) -> bool:
        """It is over; False, with nothing written, where it did not stand."""
        with self._db.read() as connection:
            if connection.execute(_OPEN, (key,)).fetchone() is None:
                return False
        values = (now.timestamp(), key)
        return self._db.write(lambda connection: connection.execute(_CLEAR, values).rowcount == 1)

    def current(self) -> list[Incident]:
        """Those that stand, newest first."""
        return self._incidents(STANDING)

    def recent(self, limit: int = 100) -> list[Incident]:
        """The last ones, also those that are over, newest first."""
        return self._incidents(PAST, limit)

    def _incidents(self, query: str, *values: int) -> list[Incident]:
        with self._db.read() as connection:
            return [
                Incident(
                    key=row["key"],
                    since=from_timestamp(row["since"]),
                    text=row["text"],
                    cleared_at=from_timestamp_or_none(row["cleared_at"]),
                )
                for row in connection.execute(query, values)
            ]
