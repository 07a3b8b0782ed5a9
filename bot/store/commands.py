"""Stores people's commands with their outcomes, and who to notify of missing write access."""

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import product
from string import ascii_lowercase

from msgspec import Struct
from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.history import add_history, wake
from bot.store.outbox import add_repository_actions
from bot.store.refreshes import add_refreshes
from bot.store.rows import Row, RowDecoder, columns
from bot.store.values import HistoryKind, NewCommand, RefreshRequest
from lifecycle.model.accounts import is_local
from lifecycle.model.actions import Action
from lifecycle.model.candidates import Requested, Spawn
from lifecycle.model.facts import Command
from lifecycle.model.names import agent_of, mode_of

_ADD = """INSERT INTO commands
        (key, repository, number, kind, actor, at, text, comment, resume, spawn, addressee)
    VALUES (:key, :repository, :number, :kind, :actor, :at, :text, :comment, :resume, :spawn,
        :addressee)
    ON CONFLICT (key) DO NOTHING"""
_COMMANDS = """key, repository, number, kind, actor, at, text, comment, resume, spawn, addressee
    FROM commands"""
#: The session ids from `:first` to `:last`, in text order, that are in use already: by sessions
#: that exist or were requested, or by deleted sessions whose usage is kept.
NAMED = """SELECT id FROM sessions WHERE id BETWEEN :first AND :last
    UNION SELECT session FROM ledger WHERE session BETWEEN :first AND :last
    UNION SELECT spawn ->> 'session' FROM commands
        WHERE spawn IS NOT NULL AND spawn ->> 'session' BETWEEN :first AND :last"""
NEW = f"SELECT {_COMMANDS} WHERE state = 'new' ORDER BY at, rowid"
AUTHORIZED = f"""SELECT {_COMMANDS} WHERE repository = ? AND number = ? AND state = 'authorized'
    ORDER BY at, rowid"""
ONE = f"SELECT {_COMMANDS} WHERE key = ?"
OUTCOME = "SELECT refusal FROM commands WHERE key = ? AND state IN ('granted', 'refused')"
SESSION = "SELECT session FROM commands WHERE key = ?"
REQUESTED = """SELECT 1 FROM commands
    WHERE spawn ->> 'session' = ? AND spawn IS NOT NULL AND state IN ('new', 'authorized')"""
REFUSED_SPAWN = """SELECT refusal FROM commands
    WHERE spawn ->> 'session' = ?1 AND spawn IS NOT NULL AND state = 'refused'
        AND NOT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)"""
_GRANT = """UPDATE commands SET state = 'granted', session = ?, head = ?, at = ?
    WHERE key = ? AND state IN ('new', 'authorized') RETURNING key, kind, actor, text"""
_ADD_GRANTED = """INSERT INTO commands
        (key, repository, number, kind, actor, at, text, head, state, session)
    SELECT :key, repository, :number, :kind, :actor, :at, :text, :head, 'granted', id
    FROM sessions WHERE id = :session ON CONFLICT (key) DO NOTHING
    RETURNING key, kind, actor, text"""
_REFUSE = """UPDATE commands SET state = 'refused', refusal = ?
    WHERE key = ? AND state IN ('new', 'authorized') RETURNING repository"""
_AUTHORIZE = "UPDATE commands SET state = 'authorized' WHERE key = ? AND state = 'new'"
UNNOTIFIED = """SELECT repository, issue, login, number FROM outsiders
    WHERE notified_at IS NULL ORDER BY at"""
_ADD_OUTSIDER = """INSERT INTO outsiders (repository, issue, login, number, at)
    VALUES (:repository, :issue, lower(:login), :number, :at) ON CONFLICT DO NOTHING"""
_MARK_NOTIFIED = (
    "UPDATE outsiders SET notified_at = ? WHERE repository = ? AND issue = ? AND login = ?"
)
KNOWN_OUTSIDER = "SELECT 1 FROM outsiders WHERE repository = ? AND issue = ? AND login = lower(?)"


class Outsider(Struct, frozen=True, kw_only=True):
    """A person without write access who labelled an issue, commented or reviewed a pull request."""

    repository: str
    issue: int  #: The session's issue or the labelled one; if there is none, equal to `number`.
    login: str
    number: int  #: The issue or pull request where they labelled, reviewed or commented.


_command = RowDecoder(NewCommand, "commands", "key")
_outsider = RowDecoder(Outsider, "outsiders", "login")


class CommandsTable(StoreTable):
    """People's commands, each in the state `new`, `authorized`, `granted` or `refused`.

    Only `start` and `adopt` have the state `authorized`, until their issue or pull request has been
    read. A granted command has become a fact of a session.
    """

    def new(self) -> list[NewCommand]:
        """Return the commands to authorize, oldest first."""
        return list(map(_command, self._all(NEW)))

    def add(self, command: NewCommand) -> None:
        """Add a command that did not come with a webhook delivery.

        Does nothing if its key is stored already.
        """
        self._execute(_ADD, columns(command))

    def add_spawn(self, command: NewCommand, project: str) -> NewCommand:
        """Add a start command for a new session, and choose the session's id.

        The id of a session for an issue is `widgets-12`, then `widgets-12b`; without an issue
        `widgets-p1`, then `widgets-p2`; for a chat `widgets-c1`, then `widgets-c2`. If the key of
        the command is stored already, adds nothing. Returns the stored command, whose `spawn` has
        the id.
        """

        def work(connection: sqlite3.Connection) -> NewCommand:
            known = connection.execute(ONE, (command.key,)).fetchone()
            if known is not None:
                return _command(known)
            spawn = command.spawn or Spawn(session="")
            session = _next_id(connection, project, command.number, "c" if spawn.chat else "p")
            spawn = replace(spawn, session=session)
            connection.execute(_ADD, columns(replace(command, spawn=spawn)))
            return _command(connection.execute(ONE, (command.key,)).fetchone())

        return self._db.write(work)

    def get(self, key: str) -> NewCommand | None:
        """Return the command with this key, in any state, or None."""
        row = self._first(ONE, (key,))
        return None if row is None else _command(row)

    def outcome(self, key: str) -> str | None:
        """Return why a command was refused; empty if it was granted, None while undecided.

        A command that opened a session is also stored as refused, so that it opens no other one;
        the text is then `SESSION_OPENED`. For an unknown command, returns None.
        """
        row = self._first(OUTCOME, (key,))
        return None if row is None else str(row["refusal"])

    def session_of(self, key: str) -> str:
        """Return the session to which a command was granted; empty if there is none."""
        row = self._first(SESSION, (key,))
        return "" if row is None else str(row["session"] or "")

    def requested(self, session: str) -> bool:
        """Whether there is a pending start command that is to open a session with this id."""
        return self._first(REQUESTED, (session,)) is not None

    def not_opened(self, session: str) -> str:
        """Return why a requested session was not opened; empty if it exists or was not refused."""
        row = self._first(REFUSED_SPAWN, (session,))
        return str(row["refusal"]) if row else ""

    def grant(self, key: str, session: str, now: datetime, head: str = "") -> None:
        """Make a command a fact of a session and wake the session.

        `head` is the commit to which the command is bound, or empty. The command's time becomes
        `now`, so that it can be compared with the times of other facts. Does nothing if the command
        was granted or refused before.
        """
        values = (session, head, now.timestamp(), key)
        self._change(
            lambda connection: _granted(
                connection, session, connection.execute(_GRANT, values), now
            )
        )

    def add_granted(self, session: str, command: Command) -> bool:
        """Add a command of an authorized person to a session and wake the session.

        Returns False, with nothing written, if the command's key is stored already or the session
        is unknown.
        """
        values, now = {**columns(command), "session": session}, command.at
        changed = self._change(
            lambda connection: _granted(
                connection, session, connection.execute(_ADD_GRANTED, values), now
            )
        )
        return bool(changed)

    def authorize(self, command: NewCommand, now: datetime, replies: Sequence[Action] = ()) -> None:
        """Authorize a `start` or `adopt`, and request a refresh of its issue or pull request.

        The command waits until that has been read. Then it opens a session, or is granted or
        refused. `replies` are added to the outbox in the same transaction. Does nothing if the
        command is not new.
        """
        subject = f"issue:{command.number}"
        refresh = RefreshRequest(repository=command.repository, subject=subject)

        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(_AUTHORIZE, (command.key,)).rowcount:
                add_refreshes(connection, [refresh], now)
                add_repository_actions(connection, command.repository, replies, now)

        self._db.write(work)

    def authorized(self, repository: str, number: int) -> list[NewCommand]:
        """Return the commands that wait until this issue or pull request is read, oldest first."""
        return list(map(_command, self._all(AUTHORIZED, (repository, number))))

    def refuse(self, key: str, why: str, replies: Sequence[Action] = ()) -> None:
        """Refuse a command and add the replies to the outbox, in one transaction.

        Does nothing if the command was granted or refused before.
        """
        now = self._db.clock()

        def work(connection: sqlite3.Connection) -> None:
            for refused in connection.execute(_REFUSE, (why, key)).fetchall():
                add_repository_actions(connection, refused["repository"], replies, now)

        self._db.write(work)


class OutsidersTable(StoreTable):
    """People without write access who labelled, reviewed or commented."""

    def add(self, outsider: Outsider, now: datetime) -> None:
        """Record a person, once per issue. Repeated calls write nothing."""
        known = (outsider.repository, outsider.issue, outsider.login)
        if self._first(KNOWN_OUTSIDER, known) is None:
            self._execute(_ADD_OUTSIDER, {**columns(outsider), "at": now.timestamp()})

    def unnotified(self) -> list[Outsider]:
        """Return the people who have no reply yet about their missing access, oldest first."""
        return list(map(_outsider, self._all(UNNOTIFIED)))

    def settle(self, one: Outsider, actions: Sequence[Action], now: datetime) -> None:
        """Mark a person as notified and add the notifying `actions` to the outbox, atomically."""
        values = (now.timestamp(), one.repository, one.issue, one.login)

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_MARK_NOTIFIED, values)
            add_repository_actions(connection, one.repository, actions, now)

        self._db.write(work)


def _next_id(connection: sqlite3.Connection, project: str, number: int, kind: str) -> str:
    """Return an unused session id: for issue `number`, or without an issue if `number` is 0.

    `kind` is the letter in an id without an issue, as `p` in `widgets-p1`. Call this in a
    transaction.
    """
    begins = f"{project}-{number or kind}"
    among = {"first": begins, "last": f"{begins}zz"}
    ends = {str(row["id"]).removeprefix(begins) for row in connection.execute(NAMED, among)}
    if not number:  # The number of a deleted session with usage is not used again.
        return f"{begins}{1 + max((int(end) for end in ends if end.isdecimal()), default=0)}"
    letters = ascii_lowercase[1:]
    suffixes = ("", *letters, *map("".join, product(letters, ascii_lowercase)))
    return f"{begins}{next(suffix for suffix in suffixes if suffix not in ends)}"


def requested_by(command: NewCommand) -> Requested:
    """Convert a `start` or `adopt` command to the trigger of its session."""
    return Requested(
        key=command.key,
        actor=command.actor,
        at=command.at,
        agent=agent_of(command.text),
        permission_mode=mode_of(command.text),
        resume=command.resume,
        is_local=is_local(command.actor),
        spawn=command.spawn,
        adopts=command.kind == "adopt",
    )


def add_commands(connection: sqlite3.Connection, commands: Iterable[NewCommand]) -> None:
    """Add commands inside a transaction. A command whose key is stored already is ignored."""
    connection.executemany(_ADD, map(columns, commands))


def _granted(
    connection: sqlite3.Connection, session: str, granted: Iterable[Row], now: datetime
) -> list[str]:
    """Record a granted command in the history and wake its session, inside a transaction.

    `granted` has the command's row, or no row if no command was granted. Returns the session's id,
    for `on_change`, in a list, which is empty if no command was granted.
    """
    rows = list(granted)  # At most one row, because a key is unique.
    for row in rows:
        data = {name: row[name] for name in ("kind", "text", "key")}
        add_history(connection, session, HistoryKind.COMMAND, row["actor"], data, now)
        wake(connection, session, now)
    return [session for _ in rows]
