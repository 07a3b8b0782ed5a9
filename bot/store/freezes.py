"""Where people stopped every effect."""

import sqlite3
from datetime import datetime

from msgspec import Struct

from bot.store.base import Base
from bot.store.history import add_history
from bot.store.rows import moment
from bot.store.values import Kind
from lifecycle.model.facts import Frozen

FREEZES = "SELECT scope, actor, at FROM freezes ORDER BY scope"
_FREEZE = "INSERT INTO freezes (scope, actor, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_THAW = "DELETE FROM freezes WHERE scope = ?"
_WAKE = """UPDATE sessions SET version = version + 1, due = min(coalesce(due, :now), :now)
    WHERE id IN live
        AND (:scope = '' OR 'project:' || project = :scope OR 'session:' || id = :scope)
    RETURNING id"""


class Freeze(Struct, frozen=True, kw_only=True):
    """That every effect of a scope is stopped."""

    scope: str  #: Empty: everything; or `project:NAME`, or `session:ID`.
    by: str
    at: datetime


class Freezes(Base):
    """The table of freezes."""

    def freeze(self, scope: str, by: str) -> bool:
        """Stop every effect of a scope (see `Freeze`); False where it is stopped already."""
        now = self.clock()
        return self._changed(_FREEZE, (scope, by, now.timestamp()), scope, by, Kind.FREEZE, now)

    def unfreeze(self, scope: str, by: str) -> bool:
        """Let effects of a scope out again; False where it was not frozen.

        What another scope holds stays held.
        """
        return self._changed(_THAW, (scope,), scope, by, Kind.UNFREEZE, self.clock())

    def freezes(self) -> list[Freeze]:
        """Every freeze that stands."""
        with self._read() as connection:
            return [
                Freeze(scope=row["scope"], by=row["actor"], at=moment(row["at"]))
                for row in connection.execute(FREEZES)
            ]

    def _changed(
        self,
        statement: str,
        values: tuple[str | float, ...],
        scope: str,
        by: str,
        kind: Kind,
        now: datetime,
    ) -> bool:
        def work(connection: sqlite3.Connection) -> list[str] | None:
            if not connection.execute(statement, values).rowcount:
                return None
            woken = connection.execute(_WAKE, {"scope": scope, "now": now.timestamp()}).fetchall()
            for row in woken:
                add_history(connection, row["id"], kind, by, {"scope": scope}, now)
            return [row["id"] for row in woken]

        woken = self.write(work)
        self._announce(woken or ())
        return woken is not None


def standing(connection: sqlite3.Connection) -> dict[str, Frozen]:
    """The freezes by their scope, as facts say them."""
    return {
        row["scope"]: Frozen(
            scope=row["scope"].partition(":")[0] or "all", by=row["actor"], at=moment(row["at"])
        )
        for row in connection.execute(FREEZES)
    }


def frozen(freezes: dict[str, Frozen], project: str, session: str) -> Frozen | None:
    """The widest freeze that holds a session."""
    scopes = ("", f"project:{project}", f"session:{session}")
    return next((freezes[scope] for scope in scopes if scope in freezes), None)
