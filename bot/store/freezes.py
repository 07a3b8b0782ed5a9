"""Where people stopped every effect."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.history import add_history
from bot.store.rows import from_timestamp
from bot.store.values import HistoryKind
from bot.store.wake import wake_scope
from lifecycle.model.facts import Frozen

FREEZES = "SELECT scope, actor, at FROM freezes ORDER BY scope"
_FREEZE = "INSERT INTO freezes (scope, actor, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_THAW = "DELETE FROM freezes WHERE scope = ?"


class Freeze(Struct, frozen=True, kw_only=True):
    """That every effect of a scope is stopped."""

    scope: str  #: Empty: everything; or `project:NAME`, or `session:ID`.
    by: str
    at: datetime


class FreezesTable(StoreTable):
    """The table of freezes."""

    def add(self, scope: str, by: str) -> bool:
        """Stop every effect of a scope (see `Freeze`); False where it is stopped already."""
        now = self._db.clock()
        return self._changed(
            _FREEZE, (scope, by, now.timestamp()), scope, by, HistoryKind.FREEZE, now
        )

    def remove(self, scope: str, by: str) -> bool:
        """Let effects of a scope out again; False where it was not frozen.

        What another scope holds stays held.
        """
        return self._changed(_THAW, (scope,), scope, by, HistoryKind.UNFREEZE, self._db.clock())

    def all(self) -> list[Freeze]:
        """Every freeze that stands."""
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


def freezes_by_scope(connection: sqlite3.Connection) -> dict[str, Frozen]:
    """The freezes by their scope, as facts say them."""
    return {
        row["scope"]: Frozen(
            scope=row["scope"].partition(":")[0] or "all",
            by=row["actor"],
            at=from_timestamp(row["at"]),
        )
        for row in connection.execute(FREEZES)
    }


def widest_freeze(freezes: dict[str, Frozen], project: str, session: str) -> Frozen | None:
    """The widest freeze that holds a session."""
    scopes = ("", f"project:{project}", f"session:{session}")
    return next((freezes[scope] for scope in scopes if scope in freezes), None)
