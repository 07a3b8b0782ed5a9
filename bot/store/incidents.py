"""Freezes, which people set, and incidents, which the bot reports."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.history import add_history, wake_scope
from bot.store.rows import from_timestamp, from_timestamp_or_none
from bot.store.values import HistoryKind
from lifecycle.model.facts import Frozen

FREEZES = "SELECT scope, actor, at FROM freezes ORDER BY scope"
_FREEZE = "INSERT INTO freezes (scope, actor, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_UNFREEZE = "DELETE FROM freezes WHERE scope = ?"
_OPEN = "SELECT text FROM incidents WHERE key = ? AND cleared_at IS NULL"
_REPORT = "INSERT INTO incidents (key, since, text) VALUES (?, ?, ?)"
_SET_TEXT = "UPDATE incidents SET text = ? WHERE key = ? AND cleared_at IS NULL"
_CLEAR = "UPDATE incidents SET cleared_at = ? WHERE key = ? AND cleared_at IS NULL"
CURRENT = """SELECT key, since, text, cleared_at FROM incidents
    WHERE cleared_at IS NULL ORDER BY seq DESC"""
RECENT = "SELECT key, since, text, cleared_at FROM incidents ORDER BY seq DESC LIMIT ?"


class Freeze(Struct, frozen=True, kw_only=True):
    """A scope in which the bot does nothing at GitHub or on a host."""

    scope: str  #: Empty for everything, `project:NAME` or `session:ID`.
    by: str
    at: datetime


class Incident(Struct, frozen=True, kw_only=True):
    """A fault that concerns more than one session, e.g. unreachable agents."""

    key: str  #: Its cause, e.g. `many-lost`. Current incidents have different keys.
    since: datetime
    text: str  #: For people: what is wrong, where, and the remedy.
    cleared_at: datetime | None = None


class FreezesTable(StoreTable):
    """Scopes that people froze."""

    def add(self, scope: str, by: str) -> bool:
        """Freeze a scope (see `Freeze`) and wake its sessions; False if it is frozen already."""
        now = self._db.clock()
        return self._changed(
            _FREEZE, (scope, by, now.timestamp()), scope, by, HistoryKind.FREEZE, now
        )

    def remove(self, scope: str, by: str) -> bool:
        """Unfreeze a scope and wake its sessions; False if it was not frozen.

        A session stays frozen while another scope that contains it is.
        """
        return self._changed(_UNFREEZE, (scope,), scope, by, HistoryKind.UNFREEZE, self._db.clock())

    def all(self) -> list[Freeze]:
        """All freezes."""
        with self._db.read() as connection:
            return [
                Freeze(scope=row["scope"], by=row["actor"], at=from_timestamp(row["at"]))
                for row in connection.execute(FREEZES)
            ]

    def _changed(
        self,
        statement: str,
        values: tuple[str | float, ...],
        scope: str,
        by: str,
        kind: HistoryKind,
        now: datetime,
    ) -> bool:
        def work(connection: sqlite3.Connection) -> list[str] | None:
            if not connection.execute(statement, values).rowcount:
                return None
            woken = wake_scope(connection, scope, now)
            for session in woken:
                add_history(connection, session, kind, by, {"scope": scope}, now)
            return woken

        woken = self._db.write(work)
        self._db.announce(woken or ())
        return woken is not None


class IncidentsTable(StoreTable):
    """Incidents of the whole bot, open and closed."""

    def report(self, key: str, text: str, now: datetime) -> bool:
        """Open an incident; return True if it is new. Repeating the same text writes nothing."""
        with self._db.read() as connection:
            current = connection.execute(_OPEN, (key,)).fetchone()
            if current is not None and current["text"] == text:
                return False

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(_SET_TEXT, (text, key)).rowcount:
                return False
            connection.execute(_REPORT, (key, now.timestamp(), text))
            return True

        return self._db.write(work)

    def clear(self, key: str, now: datetime) -> bool:
        """Close an incident; return False, with nothing written, if it is not open."""
        with self._db.read() as connection:
            if connection.execute(_OPEN, (key,)).fetchone() is None:
                return False
        values = (now.timestamp(), key)
        return self._db.write(lambda connection: connection.execute(_CLEAR, values).rowcount == 1)

    def current(self) -> list[Incident]:
        """Return the open incidents, newest first."""
        return self._incidents(CURRENT)

    def recent(self, limit: int = 100) -> list[Incident]:
        """Return the last incidents, open or closed, newest first."""
        return self._incidents(RECENT, limit)

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


def freezes_by_scope(connection: sqlite3.Connection) -> dict[str, Frozen]:
    """All freezes by scope, as facts."""
    return {
        row["scope"]: Frozen(
            scope=row["scope"].partition(":")[0] or "all",
            by=row["actor"],
            at=from_timestamp(row["at"]),
        )
        for row in connection.execute(FREEZES)
    }


def widest_freeze(freezes: dict[str, Frozen], project: str, session: str) -> Frozen | None:
    """The widest freeze that applies to a session."""
    scopes = ("", f"project:{project}", f"session:{session}")
    return next((freezes[scope] for scope in scopes if scope in freezes), None)
