"""Lists of sessions: filtered, sorted and read in pages."""

import re
from collections.abc import Collection, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bot.store.database import StoreTable
from bot.store.rows import encoded, skip_corrupt
from bot.store.sessions import session_decoder
from bot.store.values import Session

SessionScope = Literal["all", "current", "waiting", "ended"]
SessionSort = Literal["-created", "created", "-since", "since"]

#: The pattern of a cursor: the value that a page's last entry is sorted by, and its ID.
CURSOR: Final = "^[0-9]{1,12}[.][0-9]{1,9}:[A-Za-z0-9._-]{1,200}$"

_WAITS = """(status || ' ' || reason IN (SELECT value FROM json_each(:waiting))
    AND (ended IS NULL OR issue ->> 'open'))"""
# What is slow to read comes last: an issue is large.
_CHOSEN = f"""(:projects IS NULL OR project IN (SELECT value FROM json_each(:projects)))
        AND (:project = '' OR project = :project)
        AND (:agent = '' OR :agent IN (agent_name, agent_type, agent_name || ' ' || agent_type))
        AND (:person = '' OR lower(requester) = lower(:person))
        AND (:statuses = '[]' OR status IN (SELECT value FROM json_each(:statuses)))
        AND CASE :scope
            WHEN 'current' THEN ended IS NULL OR {_WAITS}
            WHEN 'waiting' THEN {_WAITS}
            WHEN 'ended' THEN ended IS NOT NULL
            ELSE 1 END
        AND (:search = '' OR lower(id || ' ' || branch || ' ' || (issue ->> 'title'))
                LIKE lower(:pattern) ESCAPE '!'
            OR number = :number
            OR EXISTS (SELECT 1 FROM session_pulls
                WHERE session = sessions.id AND session_pulls.number = :number))"""
# The cursor is the place of the last session of a page: the value it is sorted by, and its id.
_PAGE = """SELECT id, status, {waits} AS waits, {column} AS place FROM sessions
    WHERE {chosen}
        AND (:after IS NULL OR {column} {beyond} :after OR {column} = :after AND id {beyond} :last)
    ORDER BY {column} {order}, id {order} LIMIT :limit"""
_SORTS: Final = {
    f"{sign}{column}": _PAGE.format(
        waits=_WAITS, column=column, chosen=_CHOSEN, beyond=beyond, order=order
    )
    for column in ("created", "since")
    for sign, beyond, order in (("-", "<", "DESC"), ("", ">", "ASC"))
}
REQUESTERS = """SELECT DISTINCT requester FROM sessions WHERE requester <> ''
        AND (?1 IS NULL OR project IN (SELECT value FROM json_each(?1)))
    ORDER BY lower(requester) LIMIT ?2"""
LISTED = "SELECT * FROM sessions WHERE id IN (SELECT value FROM json_each(?))"


class SessionQuery(Struct, frozen=True, kw_only=True):
    """Which sessions to list, and how. An empty text or empty `statuses` selects all sessions."""

    #: The projects to choose from. None for all projects, including those no longer configured.
    projects: tuple[str, ...] | None = None
    project: str = ""
    agent: str = ""  #: The name of an agent, or an agent type.
    statuses: tuple[str, ...] = ()
    person: str = ""  #: The login of the requester; upper and lower case are the same.
    #: A part of the ID, the title or the branch, or the number of an issue or a pull request.
    search: str = ""
    #: `current` sessions have not ended or wait for a person; `waiting` ones wait for a person.
    scope: SessionScope = "all"
    sort: SessionSort = "-created"  #: With `-`: descending. `since`: when the status changed.
    cursor: str = ""  #: The previous page's cursor (see `CURSOR`); empty for the first page.
    limit: int = 50


class SessionPage(Struct, frozen=True):
    """A page of sessions."""

    sessions: list[Session]
    cursor: str  #: Selects the next page in `SessionQuery`; if empty, this is the last page.


class SessionPlace(Struct, frozen=True, kw_only=True):
    """A session's position in a sorted list."""

    id: str
    status: str
    waits: bool  #: Whether it waits for a person.
    place: float  #: The time that the list is sorted by, in seconds since 1970.

    @property
    def cursor(self) -> str:
        """The cursor of a page that ends with this session."""
        return f"{self.place!r}:{self.id}"

    def is_after(self, cursor: str, sort: SessionSort) -> bool:
        """Whether the session comes after the page with this cursor; True for an empty cursor."""
        value, last = _place(cursor)
        mine = (self.place, self.id)
        return value is None or (mine < (value, last) if sort[0] == "-" else mine > (value, last))


class SessionListTable(StoreTable):
    """Pages of sessions."""

    def page(self, query: SessionQuery, waiting: Collection[str] = ()) -> SessionPage:
        """Return a page of sessions. Those with corrupt rows are logged and omitted.

        `waiting` lists the states, as `STATUS REASON`, in which a session waits for a person.
        """
        places = self.places(replace(query, limit=query.limit + 1), waiting)
        listed = places[: query.limit]
        cursor = listed[-1].cursor if len(places) > query.limit else ""
        return SessionPage(self.read([one.id for one in listed]), cursor)

    def places(self, query: SessionQuery, waiting: Collection[str] = ()) -> list[SessionPlace]:
        """Return IDs and sort keys of the sessions on a page, without loading the sessions.

        A negative limit reads all sessions that `query` selects.
        """
        after, last = _place(query.cursor)
        values = {**_values(query, waiting), "after": after, "last": last}
        return [
            SessionPlace(
                id=row["id"], status=row["status"], waits=bool(row["waits"]), place=row["place"]
            )
            for row in self._all(_SORTS[query.sort], values)
        ]

    def read(self, ids: Sequence[str]) -> list[Session]:
        """Return these sessions in this order.

        Leaves out sessions that are unknown or have corrupt rows.
        """
        places = {name: place for place, name in enumerate(ids)}
        with self._db.read() as connection:
            rows = connection.execute(LISTED, (encoded(ids),)).fetchall()
            rows.sort(key=lambda row: places[row["id"]])
            return list(skip_corrupt(session_decoder(connection, rows), rows))

    def requesters(self, most: int, projects: Collection[str] | None = None) -> list[str]:
        """Return the first `most` people, by name, who requested sessions of these projects.

        `projects` is None for all projects.
        """
        among = None if projects is None else encoded(projects)
        return [row["requester"] for row in self._all(REQUESTERS, (among, most))]


def _values(query: SessionQuery, waiting: Collection[str]) -> dict[str, object]:
    escaped = re.sub("[!%_]", r"!\g<0>", query.search)
    number = re.fullmatch(r"#?(\d{1,9})", query.search)
    return {
        **msgspec.structs.asdict(query),
        "projects": None if query.projects is None else encoded(query.projects),
        "statuses": encoded(query.statuses),
        "pattern": f"%{escaped}%",
        "number": int(number[1]) if number else None,
        "waiting": encoded(sorted(waiting)),
    }


def _place(cursor: str) -> tuple[float | None, str]:
    value, _, last = cursor.partition(":")
    return (float(value), last) if cursor else (None, "")
