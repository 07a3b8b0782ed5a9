"""Who said something that does not count: told once for an issue, and never again."""

from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import Row

UNTOLD = """SELECT repository, issue, login, number FROM outsiders
    WHERE told IS NULL ORDER BY at"""
_TURN_AWAY = """INSERT INTO outsiders (repository, issue, login, number, at)
    VALUES (?, ?, lower(?), ?, ?) ON CONFLICT DO NOTHING"""
_TOLD = "UPDATE outsiders SET told = ? WHERE repository = ? AND issue = ? AND login = ?"
_KNOWN = "SELECT 1 FROM outsiders WHERE repository = ? AND issue = ? AND login = lower(?)"


class Outsider(Struct, frozen=True, kw_only=True):
    """Somebody to be told that their word does not count."""

    repository: str
    issue: int  #: What it was about; told once for it.
    login: str
    number: int  #: Where it was said: the issue, or its pull request.


class OutsidersTable(StoreTable):
    """The table of outsiders."""

    def add(self, outsider: Outsider, now: datetime) -> None:
        """Have somebody told, unless they were before. Asking again writes nothing."""
        one = outsider
        with self._db.read() as connection:
            if connection.execute(_KNOWN, (one.repository, one.issue, one.login)).fetchone():
                return
        values = (one.repository, one.issue, one.login, one.number, now.timestamp())
        self._db.write(lambda connection: connection.execute(_TURN_AWAY, values))

    def unnotified(self) -> list[Outsider]:
        """Those that are still to be told, oldest first."""
        with self._db.read() as connection:
            return [_outsider(row) for row in connection.execute(UNTOLD)]

    def mark_notified(self, one: Outsider, now: datetime) -> None:
        """They were told, or nothing may be said there."""
        values = (now.timestamp(), one.repository, one.issue, one.login)
        self._db.write(lambda connection: connection.execute(_TOLD, values))


def _outsider(row: Row) -> Outsider:
    return Outsider(
        repository=row["repository"],
        issue=row["issue"],
        login=row["login"],
        number=row["number"],
    )
