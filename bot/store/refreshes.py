"""Stores refresh requests, and the times up to which the bot has read growing lists."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta

from bot.store.database import StoreTable
from bot.store.rows import RowDecoder, columns, encoded, from_timestamp
from bot.store.values import DueRefresh, RefreshRequest

_REQUEST = """INSERT INTO refreshes (repository, subject, since, due) VALUES (?, ?, ?, ?)
    ON CONFLICT (repository, subject) DO UPDATE
    SET since = excluded.since, requests = refreshes.requests + 1,
        due = CASE WHEN excluded.due < refreshes.due THEN excluded.due ELSE refreshes.due END"""
DUE_REFRESHES = """SELECT repository, subject, since, due, requests FROM refreshes
    WHERE due <= :now AND EXISTS
        (SELECT 1 FROM json_each(:prefixes) AS p
            WHERE substr(subject, 1, length(p.value)) = p.value)
    ORDER BY due, since LIMIT :limit"""
IS_REQUESTED = "SELECT 1 FROM refreshes WHERE repository = ? AND subject = ?"
_REMOVE_REFRESH = """DELETE FROM refreshes
    WHERE repository = :repository AND subject = :subject AND since = :since
        AND requests = :requests"""
_POSTPONE_REFRESH = """UPDATE refreshes SET due = :later
    WHERE repository = :repository AND subject = :subject AND since = :since
        AND requests = :requests"""
CURSOR = "SELECT at FROM cursors WHERE name = ?"
_SET_CURSOR = """INSERT INTO cursors (name, at) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at"""

_refresh = RowDecoder(DueRefresh, "refreshes", "subject")


class RefreshesTable(StoreTable):
    """Requests to read subjects again, which may have changed at GitHub; one row per subject."""

    def request(
        self, refreshes: Iterable[RefreshRequest], now: datetime, *, apart: timedelta = timedelta()
    ) -> None:
        """Request refreshes. The first is due now, and each further refresh is due `apart` later.

        A subject that is requested already keeps the earlier of the two due times.
        """
        rows = list(refreshes)
        if rows:
            self._db.write(lambda connection: add_refreshes(connection, rows, now, apart))

    def due(self, now: datetime, prefixes: tuple[str, ...], limit: int = 200) -> list[DueRefresh]:
        """Return due refreshes whose subject starts with one of `prefixes`, longest due first."""
        values = {"now": now.timestamp(), "prefixes": encoded(prefixes), "limit": limit}
        return list(map(_refresh, self._all(DUE_REFRESHES, values)))

    def is_requested(self, request: RefreshRequest) -> bool:
        """Whether a subject is still to be read, now or later."""
        return self._first(IS_REQUESTED, (request.repository, request.subject)) is not None

    def mark_done(self, refresh: DueRefresh) -> None:
        """Remove a refresh, unless it was requested again since the method `due` returned it."""
        self._execute(_REMOVE_REFRESH, columns(refresh))

    def postpone(self, refresh: DueRefresh, due: datetime) -> None:
        """Postpone a refresh, unless it was requested again since the method `due` returned it."""
        self._execute(_POSTPONE_REFRESH, {**columns(refresh), "later": due.timestamp()})


class CursorsTable(StoreTable):
    """The time up to which each growing list was read.

    Such lists are the deliveries at GitHub and, for each notifier, the ends of sessions.
    """

    def get(self, name: str) -> datetime | None:
        """Return the time up to which a list was read; None if it never was."""
        row = self._first(CURSOR, (name,))
        return None if row is None else from_timestamp(row["at"])

    def set(self, name: str, at: datetime) -> None:
        """Set the time up to which a list was read."""
        self._execute(_SET_CURSOR, (name, at.timestamp()))


def add_refreshes(
    connection: sqlite3.Connection,
    refreshes: Iterable[RefreshRequest],
    now: datetime,
    apart: timedelta = timedelta(),
) -> None:
    """Request refreshes inside a transaction, each due `apart` after the one before it.

    A refresh that was requested before keeps its time if that is earlier.
    """
    rows = [
        (one.repository, one.subject, now.timestamp(), (now + apart * index).timestamp())
        for index, one in enumerate(refreshes)
    ]
    connection.executemany(_REQUEST, rows)
