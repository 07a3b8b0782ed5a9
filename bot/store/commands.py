"""What people asked for, from the comment until a session takes it up."""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from bot.store.database import StoreTable
from bot.store.history import add_history
from bot.store.outbox import add_repository_actions
from bot.store.refreshes import add_refreshes
from bot.store.rows import Row, from_timestamp
from bot.store.values import HistoryKind, NewCommand, RefreshRequest
from bot.store.wake import wake
from lifecycle.model.actions import Action
from lifecycle.model.facts import Command

_ADD = """INSERT INTO commands (key, repository, number, kind, actor, at, text, comment, resume)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""
NEW_COMMANDS = """SELECT key, repository, number, kind, actor, at, text, comment, resume
    FROM commands WHERE state = 'new' ORDER BY at, rowid"""
ASKED = """SELECT key, repository, number, kind, actor, at, text, comment, resume FROM commands
    WHERE key = ?"""
SETTLED = "SELECT why FROM commands WHERE key = ? AND state IN ('granted', 'refused')"
AUTHORIZED = """SELECT key, repository, number, kind, actor, at, text, comment, resume
    FROM commands WHERE repository = ? AND number = ? AND state = 'authorized' ORDER BY at, rowid"""
_AUTHORIZE = "UPDATE commands SET state = 'authorized' WHERE key = ? AND state = 'new'"
_GRANT = """UPDATE commands SET state = 'granted', session = ?, head = ?, at = ?
    WHERE key = ? AND state IN ('new', 'authorized') RETURNING key, kind, actor, text"""
_ASK = """INSERT INTO commands
        (key, repository, number, kind, actor, at, text, head, state, session)
    SELECT :key, repository, number, :kind, :actor, :at, :text, :head, 'granted', id
    FROM sessions WHERE id = :session ON CONFLICT (key) DO NOTHING
    RETURNING key, kind, actor, text"""
_REFUSE = """UPDATE commands SET state = 'refused', why = ?
    WHERE key = ? AND state IN ('new', 'authorized') RETURNING repository"""


class CommandsTable(StoreTable):
    """The table of commands."""

    def new(self) -> list[NewCommand]:
        """Those nobody has granted or refused, oldest first."""
        with self._db.read() as connection:
            return [_command(row) for row in connection.execute(NEW_COMMANDS)]

    def add(self, command: NewCommand) -> None:
        """Write down what was asked for elsewhere than in a delivery; once for a key."""
        self._db.write(lambda connection: add_commands(connection, [command]))

    def get(self, key: str) -> NewCommand | None:
        """What was asked for under a key, whatever became of it."""
        with self._db.read() as connection:
            row = connection.execute(ASKED, (key,)).fetchone()
            return None if row is None else _command(row)

    def outcome(self, key: str) -> str | None:
        """Why a command was set aside, or empty where it was granted; None: it is still new."""
        with self._db.read() as connection:
            row = connection.execute(SETTLED, (key,)).fetchone()
            return None if row is None else str(row["why"])

    def grant(self, key: str, session: str, now: datetime, head: str = "") -> None:
        """Make a command a fact of a session, bound to `head` if given, and reconcile it.

        From now on its time is that of the grant, by the clock of all other facts. A command that
        was granted or refused before stays as it is.
        """

        def work(connection: sqlite3.Connection) -> bool:
            granted = connection.execute(_GRANT, (session, head, now.timestamp(), key)).fetchone()
            return _told(connection, session, granted, now)

        if self._db.write(work):
            self._db.announce([session])

    def add_granted(self, session: str, command: Command) -> bool:
        """Make a command of an authorized person a fact of a session, and reconcile it.

        False, with nothing changed, where its key is known.
        """
        values = {
            "key": command.key,
            "kind": command.kind,
            "actor": command.actor,
            "at": command.at.timestamp(),
            "text": command.text,
            "head": command.head,
            "session": session,
        }

        def work(connection: sqlite3.Connection) -> bool:
            return _told(
                connection, session, connection.execute(_ASK, values).fetchone(), command.at
            )

        new = self._db.write(work)
        if new:
            self._db.announce([session])
        return new

    def authorize(self, command: NewCommand, now: datetime, replies: Sequence[Action] = ()) -> None:
        """Mark a start command as authorized, and request a refresh of its issue.

        The command waits until its issue was read; then `grant` or `refuse` settles it.
        """
        subject = f"issue:{command.number}"
        refresh = RefreshRequest(repository=command.repository, subject=subject)

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(_AUTHORIZE, (command.key,)).rowcount:
                add_refreshes(connection, [refresh], now)
                add_repository_actions(connection, command.repository, replies, now)

        self._db.write(work)

    def authorized(self, repository: str, number: int) -> list[NewCommand]:
        """Authorized start commands on an issue that wait for it to be read, oldest first."""
        with self._db.read() as connection:
            return [_command(row) for row in connection.execute(AUTHORIZED, (repository, number))]

    def refuse(self, key: str, why: str, replies: Sequence[Action] = ()) -> None:
        """Settle a command without a session, with the reason and the replies, in one transaction.

        A command that was granted or refused before stays as it is and gets no reply.
        """
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            refused = connection.execute(_REFUSE, (why, key)).fetchone()
            if refused is not None:
                add_repository_actions(connection, refused["repository"], replies, now)

        self._db.write(work)


def add_commands(connection: sqlite3.Connection, commands: Iterable[NewCommand]) -> None:
    """Write commands down inside a transaction; one that is known stays as it is."""
    connection.executemany(
        _ADD,
        [
            (
                *(w.key, w.repository, w.number, w.kind, w.actor),
                *(w.at.timestamp(), w.text, w.comment, w.resume),
            )
            for w in commands
        ],
    )


def _told(connection: sqlite3.Connection, session: str, new: Row | None, now: datetime) -> bool:
    """Inside a transaction: a command of a session, if it is new, is history, and is visited."""
    if new is None:
        return False
    data = {name: new[name] for name in ("kind", "text", "key")}
    add_history(connection, session, HistoryKind.COMMAND, new["actor"], data, now)
    wake(connection, session, now)
    return True


def _command(row: Row) -> NewCommand:
    return NewCommand(
        key=row["key"],
        repository=row["repository"],
        number=row["number"],
        kind=row["kind"],
        actor=row["actor"],
        at=from_timestamp(row["at"]),
        text=row["text"],
        comment=row["comment"],
        resume=row["resume"],
    )
