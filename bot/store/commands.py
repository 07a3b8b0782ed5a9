"""People's commands until they are granted or refused; and people without write access."""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.history import add_history, wake
from bot.store.outbox import add_repository_actions
from bot.store.refreshes import add_refreshes
from bot.store.rows import Row, from_timestamp
from bot.store.values import HistoryKind, NewCommand, RefreshRequest
from lifecycle.model.actions import Action
from lifecycle.model.facts import Command

_ADD = """INSERT INTO commands (key, repository, number, kind, actor, at, text, comment, resume)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"""
NEW = """SELECT key, repository, number, kind, actor, at, text, comment, resume
    FROM commands WHERE state = 'new' ORDER BY at, rowid"""
ONE = """SELECT key, repository, number, kind, actor, at, text, comment, resume FROM commands
    WHERE key = ?"""
OUTCOME = "SELECT refusal FROM commands WHERE key = ? AND state IN ('granted', 'refused')"
_GRANT = """UPDATE commands SET state = 'granted', session = ?, head = ?, at = ?
    WHERE key = ? AND state IN ('new', 'authorized') RETURNING key, kind, actor, text"""
_ADD_GRANTED = """INSERT INTO commands
        (key, repository, number, kind, actor, at, text, head, state, session)
    SELECT :key, repository, number, :kind, :actor, :at, :text, :head, 'granted', id
    FROM sessions WHERE id = :session ON CONFLICT (key) DO NOTHING
    RETURNING key, kind, actor, text"""
_REFUSE = """UPDATE commands SET state = 'refused', refusal = ?
    WHERE key = ? AND state IN ('new', 'authorized') RETURNING repository"""
AUTHORIZED = """SELECT key, repository, number, kind, actor, at, text, comment, resume
    FROM commands WHERE repository = ? AND number = ? AND state = 'authorized' ORDER BY at, rowid"""
_AUTHORIZE = "UPDATE commands SET state = 'authorized' WHERE key = ? AND state = 'new'"
UNNOTIFIED = """SELECT repository, issue, login, number FROM outsiders
    WHERE notified_at IS NULL ORDER BY at"""
_ADD_OUTSIDER = """INSERT INTO outsiders (repository, issue, login, number, at)
    VALUES (?, ?, lower(?), ?, ?) ON CONFLICT DO NOTHING"""
_MARK_NOTIFIED = (
    "UPDATE outsiders SET notified_at = ? WHERE repository = ? AND issue = ? AND login = ?"
)
KNOWN_OUTSIDER = "SELECT 1 FROM outsiders WHERE repository = ? AND issue = ? AND login = lower(?)"


class Outsider(Struct, frozen=True, kw_only=True):
    """A person without write access who labelled, reviewed or commented."""

    repository: str
    issue: int  #: Of the session, or the one that was labelled.
    login: str
    number: int  #: The issue or pull request where they did it.


class CommandsTable(StoreTable):
    """Commands: new, granted to a session, or refused."""

    def new(self) -> list[NewCommand]:
        """The commands to authorize, oldest first."""
        with self._db.read() as connection:
            return [_command(row) for row in connection.execute(NEW)]

    def add(self, command: NewCommand) -> None:
        """Add a command that did not come with a delivery. Does nothing if its key is known."""
        self._db.write(lambda connection: add_commands(connection, [command]))

    def get(self, key: str) -> NewCommand | None:
        """Return the command with a key, in any state; None if there is none."""
        with self._db.read() as connection:
            row = connection.execute(ONE, (key,)).fetchone()
            return None if row is None else _command(row)

    def outcome(self, key: str) -> str | None:
        """Return why a command was refused; empty if granted, None if it is new or unknown."""
        with self._db.read() as connection:
            row = connection.execute(OUTCOME, (key,)).fetchone()
            return None if row is None else str(row["refusal"])

    def grant(self, key: str, session: str, now: datetime, head: str = "") -> None:
        """Make a command a fact of a session and wake it. `head` limits it to one commit.

        The command's time becomes `now`, the clock of all other facts. Does nothing if the
        command was granted or refused before.
        """

        def work(connection: sqlite3.Connection) -> bool:
            granted = connection.execute(_GRANT, (session, head, now.timestamp(), key)).fetchone()
            return _record_grant(connection, session, granted, now)

        if self._db.write(work):
            self._db.announce([session])

    def add_granted(self, session: str, command: Command) -> bool:
        """Add a command of an authorized person to a session and wake it.

        Returns False, with nothing written, if its key is known.
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
            return _record_grant(
                connection, session, connection.execute(_ADD_GRANTED, values).fetchone(), command.at
            )

        new = self._db.write(work)
        if new:
            self._db.announce([session])
        return new

    def authorize(self, command: NewCommand, now: datetime, replies: Sequence[Action] = ()) -> None:
        """Mark a start command as authorized, and request a refresh of its issue.

        The command waits until its issue is read, and is then granted or refused. `replies`
        are added to the outbox in the same transaction. Does nothing if the command is not new.
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
        """Refuse a command and add the replies to the outbox, in one transaction.

        Does nothing if the command was granted or refused before.
        """
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            refused = connection.execute(_REFUSE, (why, key)).fetchone()
            if refused is not None:
                add_repository_actions(connection, refused["repository"], replies, now)

        self._db.write(work)


class OutsidersTable(StoreTable):
    """People without write access who labelled, reviewed or commented."""

    def add(self, outsider: Outsider, now: datetime) -> None:
        """Record a person, once for an issue. Repeating it writes nothing."""
        one = outsider
        with self._db.read() as connection:
            if connection.execute(
                KNOWN_OUTSIDER, (one.repository, one.issue, one.login)
            ).fetchone():
                return
        values = (one.repository, one.issue, one.login, one.number, now.timestamp())
        self._db.write(lambda connection: connection.execute(_ADD_OUTSIDER, values))

    def unnotified(self) -> list[Outsider]:
        """Return the people who have not been notified, oldest first."""
        with self._db.read() as connection:
            return [_outsider(row) for row in connection.execute(UNNOTIFIED)]

    def settle(self, one: Outsider, actions: Sequence[Action], now: datetime) -> None:
        """Mark a person as notified and add the actions for it, if any, in one transaction."""
        values = (now.timestamp(), one.repository, one.issue, one.login)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_MARK_NOTIFIED, values)
            add_repository_actions(connection, one.repository, actions, now)

        self._db.write(work)


def add_commands(connection: sqlite3.Connection, commands: Iterable[NewCommand]) -> None:
    """Add commands inside a transaction. One with a known key is ignored."""
    connection.executemany(
        _ADD,
        [
            (
                *(one.key, one.repository, one.number, one.kind, one.actor),
                *(one.at.timestamp(), one.text, one.comment, one.resume),
            )
            for one in commands
        ],
    )


def _record_grant(
    connection: sqlite3.Connection, session: str, new: Row | None, now: datetime
) -> bool:
    """Inside a transaction: record a granted command in the history and wake its session."""
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


def _outsider(row: Row) -> Outsider:
    return Outsider(
        repository=row["repository"],
        issue=row["issue"],
        login=row["login"],
        number=row["number"],
    )
