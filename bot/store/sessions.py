"""Creates, finds and lists sessions, and stores the metadata that people attach to them."""

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from bot.store.database import StoreTable
from bot.store.errors import StoreFailure
from bot.store.history import add_history, wake
from bot.store.rows import Row, RowDecoder, by_session, columns, encoded, skip_corrupt
from bot.store.usage import OF_SESSIONS as USAGE
from bot.store.usage import spending
from bot.store.values import HistoryKind, LiveSession, NewSession, ResourceOwner, Session
from lifecycle.model.facts import Agent, Command, Work

#: The recorded refusal of a command that has opened a session, so that it opens no other one.
SESSION_OPENED = "a session was opened"
_SETTLE_START = f"""UPDATE commands SET state = 'refused', refusal = '{SESSION_OPENED}'
    WHERE key = ? AND state IN ('new', 'authorized')"""
_CREATE = """INSERT INTO sessions (id, project, repository, number, branch, created, requester,
        agent_type, agent_name, permission_mode, origin, budget_usd, priority, since, due,
        wants_slot, wanted_since, agent, work, issue)
    VALUES (:id, :project, :repository, :number, :branch, :created, :requester, :agent_type,
        :agent_name, :permission_mode, :origin, :budget_usd, :priority, :created, :created,
        1, :created, :agent, :work, :issue)
    ON CONFLICT DO NOTHING"""
GRANTED_COMMANDS = """SELECT * FROM commands WHERE session IN (SELECT value FROM json_each(?))
    ORDER BY session, at, rowid"""
#: The newest session that has not ended comes first.
BY_ISSUE = """SELECT id FROM sessions WHERE repository = ? AND number = ?
    ORDER BY ended IS NOT NULL, created DESC, rowid DESC"""
BY_PULL = "SELECT session AS id FROM session_pulls WHERE repository = ? AND number = ?"
BY_BRANCH = "SELECT id FROM sessions WHERE repository = ? AND branch = ?"
BY_SHA = """SELECT session AS id FROM session_pulls WHERE repository = ?1 AND head = ?2
    UNION ALL SELECT id FROM sessions WHERE repository = ?1 AND head = ?2 LIMIT 1"""
BY_SUBJECT = {"issue": BY_ISSUE, "pull": BY_PULL, "branch": BY_BRANCH, "sha": BY_SHA}
#: Takes a JSON list of `[repository, subject, kind, name]`.
OF_SUBJECTS = """WITH wanted AS (SELECT value ->> 0 AS repository, value ->> 1 AS subject,
        value ->> 2 AS kind, value ->> 3 AS name, CAST(value ->> 3 AS INTEGER) AS number
        FROM json_each(?)),
    found AS (SELECT repository, subject, kind,
        (SELECT session FROM session_pulls AS p
            WHERE p.repository = wanted.repository AND p.number = wanted.number) AS by_pull,
        (SELECT id FROM sessions AS s
            WHERE s.repository = wanted.repository AND s.number = wanted.number
            ORDER BY ended IS NOT NULL, created DESC, rowid DESC LIMIT 1) AS by_issue,
        (SELECT id FROM sessions AS s
            WHERE s.repository = wanted.repository AND s.branch = wanted.name) AS by_branch,
        (SELECT id FROM sessions AS s
            WHERE s.repository = wanted.repository AND s.id = wanted.name) AS by_id,
        coalesce((SELECT session FROM session_pulls AS p
            WHERE p.repository = wanted.repository AND p.head = wanted.name LIMIT 1),
            (SELECT id FROM sessions AS s
            WHERE s.repository = wanted.repository AND s.head = wanted.name LIMIT 1)) AS by_sha
        FROM wanted)
    SELECT repository, subject, CASE kind WHEN 'issue' THEN by_issue WHEN 'branch' THEN by_branch
            WHEN 'sha' THEN by_sha WHEN 'number' THEN coalesce(by_pull, by_issue)
            WHEN 'pull' THEN by_pull WHEN 'other' THEN by_pull
            WHEN 'session' THEN by_id END AS session
    FROM found"""
BLOCKED_BY = """SELECT DISTINCT number FROM sessions
    WHERE repository = ? AND ended IS NULL AND run = 0
    AND EXISTS (SELECT 1 FROM json_each(issue, '$.blocked_by') WHERE value = ?)"""
BRANCHES_ONTO = """SELECT DISTINCT branch FROM sessions, json_each(sessions.pulls) AS pull
    WHERE repository = ? AND ended IS NULL
        AND pull.value ->> 'base_branch' = ?
        AND pull.value ->> 'state' = 'open'"""
ONE = "SELECT * FROM sessions WHERE id = ?"
ALL = """SELECT * FROM sessions WHERE :live IS NULL OR (id IN (SELECT id FROM live)) = :live
    ORDER BY created DESC, id DESC"""
DUE = "SELECT id FROM sessions WHERE due <= ? ORDER BY due LIMIT ?"
_POSTPONE = "UPDATE sessions SET due = ? WHERE id = ?"
LIVE_IDS = "SELECT id FROM live ORDER BY id"
VERSION = "SELECT version FROM sessions WHERE id = ?"
LIVE_VERSIONS = """SELECT id, version FROM sessions WHERE id IN (SELECT id FROM live)
    ORDER BY created, id"""
LIVE_ROWS = """SELECT id, project, repository, number, branch, agent_type, run, status, agent,
        work,
        (SELECT json_group_array(p.number) FROM session_pulls AS p WHERE p.session = sessions.id)
            AS pulls,
        coalesce(json_array_length(issue, '$.blocked_by'), 0) AS blocked
    FROM sessions WHERE id IN (SELECT value FROM json_each(?))"""
_OWNER = """id, project, branch, agent_type, run, ended, id IN (SELECT id FROM live) AS live,
        number > 0 AND coalesce(issue ->> 'open', 1) AND coalesce(issue ->> 'labelled', 1)
            AS requested
    FROM sessions"""
OWNERS = f"SELECT {_OWNER} ORDER BY id"
OWNER = f"SELECT {_OWNER} WHERE id = ?"
METADATA = """SELECT session, key, value FROM metadata
    WHERE session IN (SELECT value FROM json_each(?)) ORDER BY session, key"""
_SET_METADATA = """INSERT INTO metadata (session, key, value) VALUES (?, ?, ?)
    ON CONFLICT (session, key) DO UPDATE SET value = excluded.value"""
_REMOVE_METADATA = "DELETE FROM metadata WHERE session = ? AND key = ?"


_session = RowDecoder(Session, "sessions")
_live = RowDecoder(LiveSession, "sessions")
_owner = RowDecoder(ResourceOwner, "sessions")
_command = RowDecoder(Command, "commands", "key")


class SessionsTable(StoreTable):
    """One row per session: its facts, its last decision and when it is reconciled next."""

    #: The last result of `live` by id, with versions. The mapping is replaced, never changed.
    _known: Mapping[str, tuple[int, LiveSession]] = MappingProxyType({})

    def create(self, new: NewSession, command: str = "") -> bool:
        """Create a session that is due at once, and settle the command that requested it.

        `command` is that command's key, or empty if no command requested the session. It gets the
        state `refused`, in which it cannot open a second session. Returns False and writes nothing
        if another session already has the id or the branch.
        """
        values = {
            **columns(new),
            "number": new.issue.number,
            "agent": encoded(Agent(native_id=new.native_id)),
            "work": encoded(Work(base=new.base)),
        }
        data = {"issue": new.issue.number, "title": new.issue.title, "agent": new.agent_type}
        if not new.issue.number:
            data["origin"] = new.origin

        def work(connection: sqlite3.Connection) -> list[str]:
            if not connection.execute(_CREATE, values).rowcount:
                return []
            add_history(connection, new.id, HistoryKind.CREATED, new.requester, data, new.created)
            metadata = [(new.id, key, value) for key, value in new.metadata.items()]
            connection.executemany(_SET_METADATA, metadata)
            connection.execute(_SETTLE_START, (command,))
            return [new.id]

        return bool(self._change(work))

    def get(self, id: str) -> Session | None:
        """Return one session; None if it is unknown. Raises `CorruptRow`."""
        with self._db.read() as connection:
            row = connection.execute(ONE, (id,)).fetchone()
            return None if row is None else session_decoder(connection, [row])(row)

    def all(self, *, live: bool | None = None) -> list[Session]:
        """Return sessions, newest first. Those with corrupt rows are logged and omitted.

        `live` is True for the live sessions (see `live_ids`), False for the others, None for all.
        """
        with self._db.read() as connection:
            rows = connection.execute(ALL, {"live": live}).fetchall()
            return list(skip_corrupt(session_decoder(connection, rows), rows))

    def live(self) -> list[LiveSession]:
        """Return the live sessions (see `live_ids`), which observers read, oldest first.

        Only sessions that changed since the last call are read from the database. Those with
        corrupt rows are logged and omitted.
        """
        with self._db.read() as connection:
            rows = connection.execute(LIVE_VERSIONS).fetchall()
            now = {row["id"]: row["version"] for row in rows}
            known = {
                name: self._known[name]
                for name, version in now.items()
                if name in self._known and self._known[name][0] == version
            }
            if len(known) < len(now):
                changed = connection.execute(LIVE_ROWS, (encoded([*(now.keys() - known.keys())]),))
                for live in skip_corrupt(_live, changed):
                    known[live.id] = (now[live.id], live)
                known = {name: known[name] for name in now if name in known}
        self._known = known
        return [live for _, live in known.values()]

    def live_ids(self) -> list[str]:
        """Return the ids of the live sessions, which are open, hold a slot or have a due action."""
        return [row["id"] for row in self._all(LIVE_IDS)]

    def of_subject(self, repository: str, subject: str) -> str | None:
        """Return the id of the session that a subject (see `RefreshRequest`) concerns, or None.

        That is the session that works on this issue or branch, has this pull request, or whose pull
        request or workspace is at this commit. If an issue has several sessions, the newest that
        has not ended is returned, or else the newest.
        """
        kind, _, name = subject.partition(":")
        row = self._first(BY_SUBJECT[kind], (repository, name)) if kind in BY_SUBJECT else None
        return None if row is None else str(row["id"])

    def of_subjects(self, subjects: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Return the id of the session that each pair of repository and subject concerns, if any.

        A subject is written `issue:12`, `pull:34`, `branch:fix-12`, `sha:` and a commit's hash,
        `other:34` for a pull request whose branch is not known yet, `number:12` for the pull
        request or issue with this number, or `session:widgets-12b` for the session with this id.
        """
        wanted = [
            (repository, subject, *subject.partition(":")[::2])
            for repository, subject in dict.fromkeys(subjects)
        ]
        rows = self._all(OF_SUBJECTS, (encoded(wanted),))
        return {
            (row["repository"], row["subject"]): row["session"] for row in rows if row["session"]
        }

    def of_issue(self, repository: str, number: int) -> list[str]:
        """Return the ids of an issue's sessions: first those not ended, then the ended ones.

        In both groups, the newest comes first.
        """
        return [row["id"] for row in self._all(BY_ISSUE, (repository, number))]

    def issues_blocked_by(self, repository: str, number: int) -> list[int]:
        """Return the issues of the repository whose sessions wait for this issue to be closed."""
        return [row["number"] for row in self._all(BLOCKED_BY, (repository, f"#{number}"))]

    def branches_onto(self, repository: str, base: str) -> list[str]:
        """Return the branches of open sessions with an open pull request into the branch `base`."""
        return [row["branch"] for row in self._all(BRANCHES_ONTO, (repository, base))]

    def version(self, session: str) -> int:
        """Return a session's version (see `Session`); -1 if the session is unknown."""
        row = self._first(VERSION, (session,))
        return int(row["version"]) if row else -1

    def due(self, now: datetime, limit: int = 100) -> list[str]:
        """Return the ids of the sessions to reconcile now, longest overdue first."""
        return [row["id"] for row in self._all(DUE, (now.timestamp(), limit))]

    def postpone(self, sessions: Iterable[str], due: datetime) -> None:
        """Make these sessions due at `due`, or earlier if their facts change."""
        values = [(due.timestamp(), session) for session in sessions]
        self._db.write(lambda connection: connection.executemany(_POSTPONE, values))

    def wake(self, session: str) -> None:
        """Make a session due to be reconciled now."""
        now = self._db.clock()
        self._db.write(lambda connection: wake(connection, session, now))
        self._db.announce([session])

    def owners(self) -> list[ResourceOwner]:
        """Return all sessions, ended or not, as owners of folders and programs, sorted by id."""
        return list(map(_owner, self._all(OWNERS)))

    def owner(self, id: str) -> ResourceOwner | None:
        """Return one session, ended or not, in the form of `owners`; None if it is unknown."""
        row = self._first(OWNER, (id,))
        return None if row is None else _owner(row)


class MetadataTable(StoreTable):
    """Keys and values that people and tools attach to sessions; the bot does not use them."""

    def of(self, session: str) -> dict[str, str]:
        """Return the metadata of a session; empty for an unknown one."""
        with self._db.read() as connection:
            return _metadata(connection, [session]).get(session, {})

    def set(self, session: str, values: Mapping[str, str], by: str) -> None:
        """Set these keys to their values; an empty value removes its key. `by` is for the history.

        Raises `StoreFailure` if there is no such session.
        """
        set_ = [(session, key, value) for key, value in values.items() if value]
        removed = [(session, key) for key, value in values.items() if not value]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_SET_METADATA, set_)
            connection.executemany(_REMOVE_METADATA, removed)
            keys = {"keys": sorted(values)}
            add_history(connection, session, HistoryKind.METADATA, by, keys, self._db.clock())

        try:
            self._db.write(work)
        except sqlite3.IntegrityError as error:
            raise StoreFailure(
                f"there is no session {session!r}: `mergewright ls` lists them"
            ) from error
        self._db.announce([session])


class Related:
    """The commands and the usage of several sessions, all read at once."""

    def __init__(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        among = (encoded(ids),)
        self._commands = by_session(connection.execute(GRANTED_COMMANDS, among))
        self._usage = by_session(connection.execute(USAGE, among))

    def fields(self, row: Row) -> dict[str, Any]:
        """Return the commands and the spending of the session in this row."""
        usage = self._usage.get(row["id"], ())
        return {
            "commands": tuple(map(_command, self._commands.get(row["id"], ()))),
            "spent": spending(usage, row["first_run"]),
            "spent_ever": spending(usage),
        }


def session_decoder(
    connection: sqlite3.Connection, rows: Sequence[Row]
) -> Callable[[Row], Session]:
    """Return a function that builds the `Session` of any of `rows`, with its related rows."""
    ids = [row["id"] for row in rows]
    related, metadata = Related(connection, ids), _metadata(connection, ids)
    return lambda row: _session(row, metadata=metadata.get(row["id"], {}), **related.fields(row))


def _metadata(connection: sqlite3.Connection, sessions: list[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in connection.execute(METADATA, (encoded(sessions),)):
        found.setdefault(row["session"], {})[row["key"]] = row["value"]
    return found
