"""People without write access who gave a command: each is notified once for an issue."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.outbox import add_repository_actions
from bot.store.rows import Row
from lifecycle.model.actions import Action

UNNOTIFIED = """SELECT repository, issue, login, number FROM outsiders
    WHERE told IS NULL ORDER BY at"""
_ADD = """INSERT INTO outsiders (repository, issue, login, number, at)
    VALUES (?, ?, lower(?), ?, ?) ON CONFLICT DO NOTHING"""
_SETTLE = "UPDATE outsiders SET told = ? WHERE repository = ? AND issue = ? AND login = ?"
_KNOWN = "SELECT 1 FROM outsiders WHERE repository = ? AND issue = ? AND login = lower(?)"


class Outsider(Struct, frozen=True, kw_only=True):
    """A person without write access who labelled, reviewed or commented."""

    repository: str
    issue: int  #: Of the session, or the one that was labelled.
    login: str
    number: int  #: The issue or pull request where they did it.


class OutsidersTable(StoreTable):
    """The table of outsiders."""

    def add(self, outsider: Outsider, now: datetime) -> None:
        """Record a person, once for an issue. Repeating it writes nothing."""
        one = outsider
        with self._db.read() as connection:
            if connection.execute(_KNOWN, (one.repository, one.issue, one.login)).fetchone():
                return
        values = (one.repository, one.issue, one.login, one.number, now.timestamp())
        self._db.write(lambda connection: connection.execute(_ADD, values))

    def unnotified(self) -> list[Outsider]:
        """People who were recorded and not settled, oldest first."""
        with self._db.read() as connection:
            return [_outsider(row) for row in connection.execute(UNNOTIFIED)]

    def settle(self, one: Outsider, actions: Sequence[Action], now: datetime) -> None:
        """Write down how a person is notified, if at all, in one transaction; never again."""
        values = (now.timestamp(), one.repository, one.issue, one.login)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_SETTLE, values)
            add_repository_actions(connection, one.repository, actions, now)

        self._db.write(work)


def _outsider(row: Row) -> Outsider:
    return Outsider(
        repository=row["repository"],
        issue=row["issue"],
        login=row["login"],
        number=row["number"],
    )
