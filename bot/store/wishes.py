"""What people asked for, from the comment until a session takes it up."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from bot.store.base import Base
from bot.store.history import add_history
from bot.store.rows import Row, moment
from bot.store.sessions import wake
from bot.store.values import Kind, NewWish
from lifecycle.model.facts import Wish

_ADD = """INSERT INTO wishes (key, repository, number, kind, actor, at, text, comment, resume)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""
NEW_WISHES = """SELECT key, repository, number, kind, actor, at, text, comment, resume FROM wishes
    WHERE state = 'new' ORDER BY at, rowid"""
ASKED = """SELECT key, repository, number, kind, actor, at, text, comment, resume FROM wishes
    WHERE key = ?"""
SETTLED = "SELECT why FROM wishes WHERE key = ? AND state <> 'new'"
_GRANT = """UPDATE wishes SET state = 'granted', session = ?, head = ?, at = ?
    WHERE key = ? AND state = 'new' RETURNING key, kind, actor, text"""
_ASK = """INSERT INTO wishes
        (key, repository, number, kind, actor, at, text, head, state, session)
    SELECT :key, repository, number, :kind, :actor, :at, :text, :head, 'granted', id
    FROM sessions WHERE id = :session ON CONFLICT (key) DO NOTHING
    RETURNING key, kind, actor, text"""
_REFUSE = "UPDATE wishes SET state = 'refused', why = ? WHERE key = ? AND state = 'new'"


class Wishes(Base):
    """The table of wishes."""

    def new_wishes(self) -> list[NewWish]:
        """Those nobody has granted or refused, oldest first."""
        with self._read() as connection:
            return [_wish(row) for row in connection.execute(NEW_WISHES)]

    def add_wish(self, wish: NewWish) -> None:
        """Write down what was asked for elsewhere than in a delivery; once for a key."""
        self.write(lambda connection: add_wishes(connection, [wish]))

    def wish(self, key: str) -> NewWish | None:
        """What was asked for under a key, whatever became of it."""
        with self._read() as connection:
            row = connection.execute(ASKED, (key,)).fetchone()
            return None if row is None else _wish(row)

    def settled_wish(self, key: str) -> str | None:
        """Why a wish was set aside, or empty where it was granted; None: it is still new."""
        with self._read() as connection:
            row = connection.execute(SETTLED, (key,)).fetchone()
            return None if row is None else str(row["why"])

    def grant_wish(self, key: str, session: str, now: datetime, head: str = "") -> None:
        """Make a wish a fact of a session, bound to `head` where it is given, and visit it.

        From now on its time is that of the grant, by the clock all other facts are told by. A wish
        that was granted or refused before stays as it is.
        """

        def work(connection: sqlite3.Connection) -> bool:
            granted = connection.execute(_GRANT, (session, head, now.timestamp(), key)).fetchone()
            return _told(connection, session, granted, now)

        if self.write(work):
            self._announce([session])

    def ask(self, session: str, wish: Wish) -> bool:
        """Make a wish a fact of a session whose asker proved his right at the door, and visit it.

        False, with nothing changed, where its key is known.
        """
        values = {
            "key": wish.key,
            "kind": wish.kind,
            "actor": wish.actor,
            "at": wish.at.timestamp(),
            "text": wish.text,
            "head": wish.head,
            "session": session,
        }

        def work(connection: sqlite3.Connection) -> bool:
            return _told(connection, session, connection.execute(_ASK, values).fetchone(), wish.at)

        new = self.write(work)
        if new:
            self._announce([session])
        return new

    def refuse_wish(self, key: str, why: str) -> None:
        """Set a wish aside, with the reason."""
        self.write(lambda connection: connection.execute(_REFUSE, (why, key)))


def add_wishes(connection: sqlite3.Connection, wishes: Iterable[NewWish]) -> None:
    """Write wishes down inside a transaction; one that is known stays as it is."""
    connection.executemany(
        _ADD,
        [
            (
                *(w.key, w.repository, w.number, w.kind, w.actor),
                *(w.at.timestamp(), w.text, w.comment, w.resume),
            )
            for w in wishes
        ],
    )


def _told(connection: sqlite3.Connection, session: str, new: Row | None, now: datetime) -> bool:
    """Inside a transaction: a wish of a session, if it is new, is history, and is visited."""
    if new is None:
        return False
    data = {name: new[name] for name in ("kind", "text", "key")}
    add_history(connection, session, Kind.WISH, new["actor"], data, now)
    wake(connection, session, now)
    return True


def _wish(row: Row) -> NewWish:
    return NewWish(
        key=row["key"],
        repository=row["repository"],
        number=row["number"],
        kind=row["kind"],
        actor=row["actor"],
        at=moment(row["at"]),
        text=row["text"],
        comment=row["comment"],
        resume=row["resume"],
    )
