"""Lists of sessions: filtered, sorted and read in pages."""

import re
from collections.abc import Collection
from typing import Final, Literal

import msgspec
from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import Row, encoded, skip_corrupt
from bot.store.sessions import session_decoder
from bot.store.values import Session

SessionScope = Literal["all", "current", "waiting", "ended"]
SessionSort = Literal["-created", "created", "-since", "since"]

#: A cursor: the value that the last session of a page is sorted by, and its ID.
CURSOR: Final = "^[0-9]{1,12}[.][0-9]{1,9}:[A-Za-z0-9._-]{1,200}$"

_PAGE = """SELECT id, {column} AS place FROM sessions
    WHERE (:project = '' OR project = :project)
        AND (:agent = '' OR :agent IN (agent_name, agent_type))
        AND (:person = '' OR lower(requester) = lower(:person))
        AND (:statuses = '[]' OR status IN (SELECT value FROM json_each(:statuses)))
        AND (:search = '' OR lower(id || ' ' || branch || ' ' || (issue ->> 'title'))
                LIKE lower(:pattern) ESCAPE '!'
            OR EXISTS (SELECT 1 FROM session_pulls
                WHERE session = sessions.id AND session_pulls.number = :number))
        AND CASE :scope
            WHEN 'current' THEN ended IS NULL OR {waits}
            WHEN 'waiting' THEN {waits}
            WHEN 'ended' THEN ended IS NOT NULL
            ELSE 1 END
        AND (:after IS NULL OR {column} {beyond} :after OR {column} = :after AND id {beyond} :last)
    ORDER BY {column} {order}, id {order} LIMIT :limit"""
_WAITS = """((ended IS NULL OR issue ->> 'open')
    AND status || ' ' || reason IN (SELECT value FROM json_each(:waiting)))"""
_SORTS: Final = {
    f"{sign}{column}": _PAGE.format(column=column, waits=_WAITS, beyond=beyond, order=order)
    for column in ("created", "since")
    for sign, beyond, order in (("-", "<", "DESC"), ("", ">", "ASC"))
}
LISTED = "SELECT * FROM sessions WHERE id IN (SELECT value FROM json_each(?))"


class SessionQuery(Struct, frozen=True, kw_only=True):
    """Which sessions to list, and how. An empty field selects all."""

    project: str = ""
    agent: str = ""  #: The name of an agent, or an agent type.
    statuses: tuple[str, ...] = ()
    person: str = ""  #: The login of the requester; upper and lower case are the same.
    search: str = ""  #: A part of the ID, the title or the branch, or `#` and a number.
    #: `current` are those that have not ended or wait for a person, `waiting` wait for a person.
    scope: SessionScope = "all"
    sort: SessionSort = "-created"  #: With `-`: descending. `since`: when the status changed.
    cursor: str = ""  #: Of the page before, as `CURSOR` has it; empty for the first page.
    limit: int = 50


class SessionPage(Struct, frozen=True):
    """A page of sessions."""

    sessions: list[Session]
    cursor: str  #: Of this page, for the next one; empty: there are no more.


class SessionListTable(StoreTable):
    """Pages of sessions."""

    def page(self, query: SessionQuery, waiting: Collection[str] = ()) -> SessionPage:
        """Return a page. `waiting` are `STATUS REASON` of the sessions that wait for a person.

        Unreadable sessions are left out.
        """
        after, last = _place(query.cursor)
        escaped = re.sub("[!%_]", r"!\g<0>", query.search)
        number = re.fullmatch(r"#?(\d{1,9})", query.search)
        values = {
            **msgspec.structs.asdict(query),
            "statuses": encoded(query.statuses),
            "pattern": f"%{escaped}%",
            "number": int(number[1]) if number else None,
            "waiting": encoded(sorted(waiting)),
            "after": after,
            "last": last,
            "limit": query.limit + 1,
        }
        with self._db.read() as connection:
            places = connection.execute(_SORTS[query.sort], values).fetchall()
            listed = places[: query.limit]
            ids = [row["id"] for row in listed]
            rows = connection.execute(LISTED, (encoded(ids),)).fetchall()
            rows.sort(key=lambda row: ids.index(row["id"]))
            sessions = list(skip_corrupt(session_decoder(connection, rows), rows))
        more = len(places) > query.limit
        return SessionPage(sessions, _cursor(listed[-1]) if more else "")


def _cursor(row: Row) -> str:
    return f"{row['place']!r}:{row['id']}"


def _place(cursor: str) -> tuple[float | None, str]:
    value, _, last = cursor.partition(":")
    return (float(value), last) if cursor else (None, "")
