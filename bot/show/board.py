"""The board: sessions grouped by status, with filters.

Sessions that wait for a person come first.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from bot.show.next_action import NextAction, next_action
from bot.show.session_list import WAITING
from bot.show.session_summary import SessionSummary, summarize
from bot.store import QueuedSession, Session, SessionPlace, SessionQuery, SessionSort, Store
from lifecycle.judge.capacity import Caps
from lifecycle.model.status import Status


class StatusGroup(Struct, frozen=True):
    """Statuses shown together on the board."""

    key: str
    title: str
    statuses: tuple[Status, ...]
    shown: int  #: The most sessions shown while all groups are shown.


#: The groups of the board. Sessions that wait for a person are in the first, whatever their status.
GROUPS: Final = (
    StatusGroup("people", "Needs attention", (Status.NEEDS_INPUT, Status.STUCK), 20),
    StatusGroup(
        "review",
        "In review",
        (Status.MERGEABLE, Status.APPROVED, Status.REVIEW_PENDING, Status.PR_OPEN),
        10,
    ),
    StatusGroup("repair", "Repairing", (Status.CI_FAILED, Status.CHANGES_REQUESTED), 10),
    # Only a chat in which nobody writes is paused and waits for no person.
    StatusGroup("work", "Working", (Status.WORKING, Status.SPAWNING, Status.PAUSED), 10),
    StatusGroup("queued", "Queued", (Status.QUEUED,), 5),
    StatusGroup(
        "over",
        "Finished",
        (
            *(Status.MERGED, Status.DONE, Status.ERRORED, Status.KILLED, Status.TERMINATED),
            Status.CLEANUP,
        ),
        5,
    ),
)
_PEOPLE: Final = GROUPS[0].key
_GROUP_OF: Final[Mapping[str, str]] = {
    status: group.key for group in GROUPS for status in group.statuses
}
DEFAULT_SORT: Final[SessionSort] = "-since"
#: The number of sessions on a page of one group.
_PAGE = 40


class BoardFilter(Struct, frozen=True, kw_only=True):
    """What the board shows. An empty field selects all."""

    group: str = ""  #: The key of the only group to show, in pages; if empty, all groups.
    project: str = ""
    agent: str = ""
    status: str = ""
    person: str = ""  #: The login of the requester.
    search: str = ""  #: As in a `SessionQuery`.
    sort: SessionSort = DEFAULT_SORT
    after: str = ""  #: With a `group`: the cursor of the page before; if empty, the first page.

    @property
    def chosen(self) -> bool:
        """Whether the filter selects by project, agent, status, person or search."""
        return any((self.project, self.agent, self.status, self.person, self.search))


class Card(Struct, frozen=True):
    """A session on the board."""

    row: SessionSummary
    next: NextAction

    @property
    def group(self) -> str:
        """The key of the group that the session is in."""
        return _PEOPLE if self.row.needs_person else _GROUP_OF[self.row.status]


class BoardGroup(Struct, frozen=True, kw_only=True):
    """A group with the sessions that are shown."""

    key: str
    title: str
    count: int  #: The number of its sessions that the filter selects, shown or not.
    cards: tuple[Card, ...]
    cursor: str  #: For the next page; empty on the last page, and if the group is not shown.


class Board(Struct, frozen=True, kw_only=True):
    """The board's groups, with the sessions that a filter selects."""

    filter: BoardFilter
    groups: tuple[BoardGroup, ...]

    @property
    def total(self) -> int:
        """The number of sessions that the filter selects, in all groups."""
        return sum(group.count for group in self.groups)


def card(session: Session, queued: QueuedSession | None = None) -> Card:
    """Return a session in the form of the board. `queued` is its queue entry, if it has one."""
    return Card(summarize(session, queued), next_action(session))


def board(
    store: Store, filter: BoardFilter, caps: Caps, projects: tuple[str, ...] | None = None
) -> Board:
    """Read the board with the sessions that a filter selects.

    Only sessions of `projects` are read; if that is None, those of all projects. `caps`, the limits
    on running sessions, are needed to compute the positions of queued sessions.
    """
    query = SessionQuery(
        projects=projects,
        project=filter.project,
        agent=filter.agent,
        statuses=(filter.status,) if filter.status else (),
        person=filter.person,
        search=filter.search,
        sort=filter.sort,
        limit=-1,
    )
    grouped = by_group(store.session_list.places(query, WAITING))
    shown = {group.key: _shown(group, grouped[group.key], filter) for group in GROUPS}
    sessions = store.session_list.read([one.id for page in shown.values() for one in page.places])
    queued = {one.session: one for one in store.slots.queue(caps)}
    cards = {one.id: card(one, queued.get(one.id)) for one in sessions}
    groups = [
        BoardGroup(
            key=group.key,
            title=group.title,
            count=len(grouped[group.key]),
            cards=tuple(cards[one.id] for one in page.places if one.id in cards),
            cursor=page.cursor,
        )
        for group, page in zip(GROUPS, shown.values(), strict=True)
    ]
    return Board(filter=filter, groups=tuple(groups))


def by_group(places: Iterable[SessionPlace]) -> dict[str, list[SessionPlace]]:
    """Sort sessions into the board's groups. Returns a list for each group's key.

    Each list keeps the order of `places`.
    """
    found: dict[str, list[SessionPlace]] = {group.key: [] for group in GROUPS}
    for one in places:
        found[_PEOPLE if one.waits else _GROUP_OF[one.status]].append(one)
    return found


class _Shown(NamedTuple):
    """The sessions of a group that are shown on the board."""

    places: list[SessionPlace]
    cursor: str  #: As in `BoardGroup`.


def _shown(group: StatusGroup, places: list[SessionPlace], filter: BoardFilter) -> _Shown:
    if filter.group not in ("", group.key):
        return _Shown([], "")
    most = _PAGE if filter.group else group.shown
    if filter.group:
        places = [one for one in places if one.is_after(filter.after, filter.sort)]
    return _Shown(places[:most], places[most - 1].cursor if len(places) > most else "")
