"""Sessions: making, finding and listing them."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from bot.store.database import StoreTable
from bot.store.decode import command_of, live_of, session_of
from bot.store.history import add_history
from bot.store.metadata import metadata_of
from bot.store.rows import Row, by_session, encoded, skip_corrupt
from bot.store.usage import OF_SESSIONS as USAGE
from bot.store.values import HistoryKind, LiveSession, NewSession, Session
from bot.store.wake import wake
from lifecycle.model.facts import Agent, Work

_CREATE = """INSERT INTO sessions (id, project, repository, number, branch, created, requester,
        agent_type, agent_name, priority, since, due, wants_slot, wanted_since, agent, work, issue)
    VALUES (:id, :project, :repository, :number, :branch, :now, :requester,
        :agent_type, :agent_name, :priority, :now, :now, 1, :now, :agent, :work, :issue)
    ON CONFLICT DO NOTHING"""
COMMAND_RULES = """SELECT * FROM commands WHERE session IN (SELECT value FROM json_each(?))
    ORDER BY session, at, rowid"""
OF_ISSUE = "SELECT id FROM sessions WHERE repository = ? AND number = ?"
WAITING_FOR = """SELECT number FROM sessions WHERE repository = ? AND ended IS NULL AND run = 0
    AND EXISTS (SELECT 1 FROM json_each(issue, '$.blocked_by') WHERE value = ?)"""
OF_PULL = "SELECT session AS id FROM session_pulls WHERE repository = ? AND number = ?"
OF_BRANCH = "SELECT id FROM sessions WHERE repository = ? AND branch = ?"
OF_SHA = """SELECT session AS id FROM session_pulls WHERE repository = ?1 AND head = ?2
    UNION ALL SELECT id FROM sessions WHERE repository = ?1 AND head = ?2 LIMIT 1"""
ONTO = """SELECT DISTINCT branch FROM sessions, json_each(sessions.pulls) AS pull
    WHERE repository = ? AND ended IS NULL
        AND json_extract(pull.value, '$.base_branch') = ?
        AND json_extract(pull.value, '$.state') = 'open'"""
DUE_SESSIONS = "SELECT id FROM sessions WHERE due <= ? ORDER BY due LIMIT ?"
_POSTPONE = "UPDATE sessions SET due = ? WHERE id = ?"
ONE = "SELECT * FROM sessions WHERE id = ?"
ALL = """SELECT * FROM sessions WHERE :live IS NULL OR (id IN live) = :live
    ORDER BY created DESC, id DESC"""
LIVE_IDS = "SELECT id FROM live ORDER BY id"
LIVE_VERSIONS = """SELECT id, version FROM sessions WHERE id IN live
    ORDER BY created, id"""
LIVE_ROWS = """SELECT id, project, repository, number, branch, agent_type, run, status, agent,
        work,
        (SELECT json_group_array(p.number) FROM session_pulls AS p WHERE p.session = sessions.id)
            AS numbers,
        coalesce(json_array_length(issue, '$.blocked_by'), 0) AS blocked
    FROM sessions WHERE id IN (SELECT value FROM json_each(?))"""


class SessionsTable(StoreTable):
    """The table of sessions."""

    #: What `live` last read, with what tells whether it still stands. Replaced, never changed.
    _known: Mapping[str, tuple[int, LiveSession]] = MappingProxyType({})

    def create(self, new: NewSession) -> bool:
        """Write a session down, due at once; False where its id, issue or branch has one."""
        values = {
            "id": new.id,
            "project": new.project,
            "repository": new.repository,
            "number": new.issue.number,
            "branch": new.branch,
            "now": new.created.timestamp(),
            "requester": new.requester,
            "agent_type": new.agent_type,
            "agent_name": new.agent_name,
            "priority": new.priority,
            "agent": encoded(Agent(native_id=new.native_id)),
            "work": encoded(Work()),
            "issue": encoded(new.issue),
        }
        told = {"issue": new.issue.number, "title": new.issue.title, "agent": new.agent_type}

        def work(connection: sqlite3.Connection) -> bool:
            if not connection.execute(_CREATE, values).rowcount:
                return False
            add_history(connection, new.id, HistoryKind.CREATED, new.requester, told, new.created)
            return True

        created = self._db.write(work)
        if created:
            self._db.announce([new.id])
        return created

    def get(self, id: str) -> Session | None:
        """One session, or None. Raises `BadRow`."""
        with self._db.read() as connection:
            row = connection.execute(ONE, (id,)).fetchone()
            return None if row is None else _Around(connection, [row]).session(row)

    def all(self, *, live: bool | None = None) -> list[Session]:
        """All sessions, newest first; `live`: only those with (or without) something left to do."""
        with self._db.read() as connection:
            rows = connection.execute(ALL, {"live": live}).fetchall()
            return list(skip_corrupt(_Around(connection, rows).session, rows))

    def live(self) -> list[LiveSession]:
        """What a sweep needs of every session that is not over and done with, oldest first.

        Only what has changed since the last call is read.
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
                for live in skip_corrupt(live_of, changed):
                    known[live.id] = (now[live.id], live)
                known = {name: known[name] for name in now if name in known}
        self._known = known
        return [live for _, live in known.values()]

    def live_ids(self) -> list[str]:
        """The sessions that are not over and done with."""
        with self._db.read() as connection:
            return [row["id"] for row in connection.execute(LIVE_IDS)]

    def of_issue(self, repository: str, number: int) -> str | None:
        """The session that works on an issue."""
        return self._id(OF_ISSUE, repository, number)

    def issues_blocked_by(self, repository: str, number: int) -> list[int]:
        """The issues of the same repository whose sessions wait for this one to be closed."""
        with self._db.read() as connection:
            rows = connection.execute(WAITING_FOR, (repository, f"#{number}"))
            return [row["number"] for row in rows]

    def of_pull(self, repository: str, number: int) -> str | None:
        """The session a pull request belongs to."""
        return self._id(OF_PULL, repository, number)

    def of_branch(self, repository: str, branch: str) -> str | None:
        """The session that works on a branch."""
        return self._id(OF_BRANCH, repository, branch)

    def branches_onto(self, repository: str, base: str) -> list[str]:
        """The branches of sessions with an open pull request that goes onto this branch."""
        with self._db.read() as connection:
            return [row["branch"] for row in connection.execute(ONTO, (repository, base))]

    def of_sha(self, repository: str, sha: str) -> str | None:
        """The session whose pull request or workspace is at a commit."""
        return self._id(OF_SHA, repository, sha)

    def due(self, now: datetime, limit: int = 100) -> list[str]:
        """Sessions to reconcile now, longest overdue first."""
        with self._db.read() as connection:
            rows = connection.execute(DUE_SESSIONS, (now.timestamp(), limit))
            return [row["id"] for row in rows]

    def postpone(self, sessions: Iterable[str], due: datetime) -> None:
        """Reconcile these again at `due`, or as soon as one of their facts changes."""
        values = [(due.timestamp(), session) for session in sessions]
        self._db.write(lambda connection: connection.executemany(_POSTPONE, values))

    def wake(self, session: str) -> None:
        """Reconcile a session now."""
        now = self._db.clock()
        self._db.write(lambda connection: wake(connection, session, now))
        self._db.announce([session])

    def _id(self, query: str, *values: str | int) -> str | None:
        with self._db.read() as connection:
            row = connection.execute(query, values).fetchone()
            return None if row is None else str(row["id"])


class _Around:
    """What other tables have of the sessions that are read together."""

    def __init__(self, connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
        ids = [row["id"] for row in rows]
        among = (encoded(ids),)
        self._commands = by_session(connection.execute(COMMAND_RULES, among))
        self._usage = by_session(connection.execute(USAGE, among))
        self._metadata = metadata_of(connection, ids)

    def session(self, row: Row) -> Session:
        name = row["id"]
        commands = tuple(command_of(command) for command in self._commands.get(name, ()))
        return session_of(row, commands, self._usage.get(name, ()), self._metadata.get(name, {}))
