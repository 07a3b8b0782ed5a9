"""What a project came to, where the last of its sessions has ended."""

import sqlite3
from collections import Counter
from datetime import datetime

import msgspec

from bot.store.decode import ended_of
from bot.store.rows import Row, decoded, encoded
from bot.store.wake import wake

OPEN = """SELECT 1 FROM sessions WHERE ended IS NULL
    AND project = (SELECT project FROM sessions WHERE id = ?) LIMIT 1"""
OF_PROJECT = """SELECT id, ended, finished FROM sessions
    WHERE project = (SELECT project FROM sessions WHERE id = ?)"""
_FINISHED = "UPDATE sessions SET finished = ? WHERE id = ?"

_counts = msgspec.json.Decoder(dict[str, int])


def mark_project_finished(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside the transaction that ends a session: whether it was the last, and of how many.

    Counted are those that ended since the time before when all were finished.
    """
    counts: Counter[str] = Counter()
    if connection.execute(OPEN, (session,)).fetchone() is None:
        rows = connection.execute(OF_PROJECT, (session,)).fetchall()
        ends = {row["id"]: ended for row in rows if (ended := ended_of(row))}
        last = [ends[row["id"]].at for row in rows if row["id"] != session and finished_of(row)]
        since = max(last, default=None)
        counts.update(
            ended.status.value for ended in ends.values() if since is None or ended.at > since
        )
    connection.execute(_FINISHED, (encoded(counts), session))
    if counts:
        wake(connection, session, now)


def finished_of(row: Row) -> dict[str, int]:
    """How many sessions ended how, where this one was the last; empty where it was not."""
    return decoded(_counts, row, "sessions", "id", "finished")
