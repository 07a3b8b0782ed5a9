"""Freezes, which people set, and incidents, which the bot reports."""

import sqlite3
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.history import add_history, wake_scope
from bot.store.rows import RowDecoder
from bot.store.values import HistoryKind
from lifecycle.model.facts import Frozen

FREEZES = "SELECT scope, actor AS by, at FROM freezes ORDER BY scope"
_FREEZE = "INSERT INTO freezes (scope, actor, at) VALUES (:scope, :by, :now) ON CONFLICT DO NOTHING"
_UNFREEZE = "DELETE FROM freezes WHERE scope = :scope"
_OPEN = "SELECT text FROM incidents WHERE key = ? AND cleared_at IS NULL"
_REPORT = "INSERT INTO incidents (key, since, text) VALUES (?, ?, ?)"
_SET_TEXT = "UPDATE incidents SET text = ? WHERE key = ? AND cleared_at IS NULL"
_CLEAR = "UPDATE incidents SET cleared_at = ? WHERE key = ? AND cleared_at IS NULL"
CURRENT = """SELECT key, since, text, cleared_at FROM incidents
    WHERE cleared_at IS NULL ORDER BY seq DESC"""
RECENT = "SELECT key, since, text, cleared_at FROM incidents ORDER BY seq DESC LIMIT ?"


class Freeze(Struct, frozen=True, kw_only=True):
    """A scope in which the bot holds back its actions, at GitHub and on the host."""

    scope: str  #: Empty for everything, `project:NAME` or `session:ID`.
    by: str  #: The person who froze it.
    at: datetime


class Incident(Struct, frozen=True, kw_only=True):
    """A fault of the bot or its surroundings, such as unreachable agents or a full disk."""

    key: str  #: Its cause, e.g. `many-lost`. No two open incidents have the same key.
    since: datetime
    text: str  #: For people: what is wrong, where, and the remedy.
    cleared_at: datetime | None = None  #: When it was closed; if None, it is open.


_freeze = RowDecoder(Freeze, "freezes", "scope")
_incident = RowDecoder(Incident, "incidents", "key")


class FreezesTable(StoreTable):
    """The scopes that people froze, other than by a label."""

    def add(self, scope: str, by: str) -> bool:
        """Freeze a scope (see `Freeze`) and wake its live sessions.

        Returns False if it is frozen already.
        """
        return self._set(_FREEZE, scope, by, HistoryKind.FREEZE)

    def remove(self, scope: str, by: str) -> bool:
        """Unfreeze a scope and wake its live sessions. Returns False if it was not frozen.

        A session stays frozen while another scope that contains it is frozen.
        """
        return self._set(_UNFREEZE, scope, by, HistoryKind.UNFREEZE)

    def all(self) -> list[Freeze]:
        """Return all freezes."""
        return list(map(_freeze, self._all(FREEZES)))

    def _set(self, statement: str, scope: str, by: str, kind: HistoryKind) -> bool:
        now = self._db.clock()
        values = {"scope": scope, "by": by, "now": now.timestamp()}

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
    """Incidents, open and closed."""

    def report(self, key: str, text: str, now: datetime) -> bool:
        """Open an incident, or update the text of the open one. Returns whether it was opened."""
        current = self._first(_OPEN, (key,))
        if current is not None and current["text"] == text:
            return False

        def work(connection: sqlite3.Connection) -> bool:
            if connection.execute(_SET_TEXT, (text, key)).rowcount:
                return False
            connection.execute(_REPORT, (key, now.timestamp(), text))
            return True

        return self._db.write(work)

    def clear(self, key: str, now: datetime) -> bool:
        """Close an incident. Returns False, with nothing written, if it is not open."""
        if self._first(_OPEN, (key,)) is None:
            return False
        return self._execute(_CLEAR, (now.timestamp(), key)) == 1

    def current(self) -> list[Incident]:
        """Return the open incidents, newest first."""
        return list(map(_incident, self._all(CURRENT)))

    def recent(self, limit: int = 100) -> list[Incident]:
        """Return the last incidents, open or closed, newest first."""
        return list(map(_incident, self._all(RECENT, (limit,))))


def freezes_by_scope(connection: sqlite3.Connection) -> dict[str, Frozen]:
    """Return all freezes as facts, by their scope (see `Freeze`)."""
    return {
        one.scope: Frozen(scope=one.scope.partition(":")[0] or "all", by=one.by, at=one.at)
        for one in map(_freeze, connection.execute(FREEZES))
    }


def widest_freeze(freezes: Mapping[str, Frozen], project: str, session: str) -> Frozen | None:
    """Return the widest freeze that applies to a session; None if none of these does."""
    scopes = ("", f"project:{project}", f"session:{session}")
    return next((freezes[scope] for scope in scopes if scope in freezes), None)
