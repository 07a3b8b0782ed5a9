"""What people and their tools want to remember about a session; nothing here reads it."""

import sqlite3
from collections.abc import Mapping

from bot.store.database import StoreTable
from bot.store.errors import StoreFailure
from bot.store.rows import encoded

METADATA = """SELECT session, key, value FROM metadata
    WHERE session IN (SELECT value FROM json_each(?)) ORDER BY session, key"""
_SET = """INSERT INTO metadata (session, key, value) VALUES (?, ?, ?)
    ON CONFLICT (session, key) DO UPDATE SET value = excluded.value"""
_REMOVE = "DELETE FROM metadata WHERE session = ? AND key = ?"


class MetadataTable(StoreTable):
    """The table of metadata."""

    def of(self, session: str) -> dict[str, str]:
        """What is remembered about a session."""
        with self._db.read() as connection:
            return metadata_of(connection, [session]).get(session, {})

    def set(self, session: str, values: Mapping[str, str]) -> None:
        """Remember these; an empty value forgets its key. Raises `StoreFailure`: no session."""
        kept = [(session, key, value) for key, value in values.items() if value]
        gone = [(session, key) for key, value in values.items() if not value]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_SET, kept)
            connection.executemany(_REMOVE, gone)

        try:
            self._db.write(work)
        except sqlite3.IntegrityError as error:
            raise StoreFailure(
                f"there is no session {session!r}: `mergewright ls` lists them"
            ) from error
        self._db.announce([session])


def metadata_of(connection: sqlite3.Connection, sessions: list[str]) -> dict[str, dict[str, str]]:
    """What is remembered about each of many."""
    found: dict[str, dict[str, str]] = {}
    for row in connection.execute(METADATA, (encoded(sessions),)):
        found.setdefault(row["session"], {})[row["key"]] = row["value"]
    return found
