"""Mark sessions as changed, so that they are reconciled now."""

import sqlite3
from datetime import datetime

_SET_DUE = "SET version = version + 1, due = min(coalesce(due, :now), :now)"
_ONE = f"UPDATE sessions {_SET_DUE} WHERE id = :id"
_SCOPE = f"""UPDATE sessions {_SET_DUE} WHERE id IN live
        AND (:scope = '' OR 'project:' || project = :scope OR 'session:' || id = :scope)
    RETURNING id"""
_REPOSITORY = (
    f"UPDATE sessions {_SET_DUE} WHERE id IN live AND repository = :repository RETURNING id"
)
_SIBLINGS = f"""UPDATE sessions {_SET_DUE} WHERE ended IS NULL AND id <> :id
    AND repository = (SELECT repository FROM sessions WHERE id = :id)"""  # noqa: S608 - our text


def wake(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside a transaction: a fact of this session changed."""
    connection.execute(_ONE, {"id": session, "now": now.timestamp()})


def wake_scope(connection: sqlite3.Connection, scope: str, now: datetime) -> list[str]:
    """Inside a transaction: the freeze of a scope changed. Returns the live sessions in it."""
    rows = connection.execute(_SCOPE, {"scope": scope, "now": now.timestamp()}).fetchall()
    return [row["id"] for row in rows]


def wake_repository(connection: sqlite3.Connection, repository: str, now: datetime) -> list[str]:
    """Inside a transaction: a fact of this repository changed. Returns its live sessions."""
    values = {"repository": repository, "now": now.timestamp()}
    return [row["id"] for row in connection.execute(_REPOSITORY, values).fetchall()]


def wake_siblings(connection: sqlite3.Connection, session: str, now: datetime) -> None:
    """Inside a transaction: this session changed a fact of the others of its repository."""
    connection.execute(_SIBLINGS, {"id": session, "now": now.timestamp()})
