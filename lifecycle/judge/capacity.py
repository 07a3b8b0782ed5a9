"""Assigns slots to sessions by age and priority, within all limits of concurrency.

There is one queue for all limits, ordered by age. A priority label adds or subtracts a fixed time,
so every session reaches the front eventually. Each limit counts a group of sessions, such as those
of one project. If one group of the session at the front is full, that session reserves free places
in its other groups, so that younger sessions cannot overtake it forever.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct

from lifecycle.model.status import Reason
from lifecycle.read.sentences import person

#: How far a label moves an issue up (or down) the queue, in steps of `Caps.priority_seconds`.
PRIORITIES: Final = {"priority:high": 1, "priority:low": -1}
#: How long a new program may take to reach its full memory use.
_GROWING = timedelta(seconds=60)


class Contender(Struct, frozen=True, kw_only=True):
    """A session that wants a slot, or holds one."""

    session: str
    project: str
    agent_type: str
    agent: str  #: The agent's name; if empty, none is assigned yet.
    requester: str
    since: datetime  #: When it began to wait for the slot, or got it.
    priority: int = 0  #: Steps of `Caps.priority_seconds` towards the front; negative: back.
    awaited: bool = False  #: Whether it needs the slot to carry out a person's command.


class Caps(Struct, frozen=True, kw_only=True):
    """Limits on concurrent sessions; 0 means no limit besides the number of slots."""

    sessions: int = 4
    per_person: int = 0
    reserved: int = 0  #: Slots kept for sessions a person waits for; fewer than `sessions`.
    projects: Mapping[str, int] = {}
    agent_types: Mapping[str, int] = {}
    agents: Mapping[str, int] = {}
    priority_seconds: float = 3600.0  #: The waiting time that one step of priority is worth.
    session_mb: int = 0  #: Free megabytes of memory that a start needs; if 0, not checked.
    reserve_mb: int = 0  #: Free megabytes of memory that must remain after a start.


class Grants(Struct, frozen=True, kw_only=True):
    """The result of assigning slots."""

    granted: tuple[str, ...]  #: The sessions that get a slot, in the order of the queue.
    waits: Mapping[str, str]  #: By session without a slot: why it waits, as a sentence.


class Place(Struct, frozen=True, kw_only=True):
    """A session's position in the queue."""

    session: str
    position: int  #: From 1.
    starts_at: datetime | None  #: Estimated; None if no estimate is possible.


class _Cap(NamedTuple):
    """One limit: which sessions it counts together, how many it allows, and why others wait."""

    group: Callable[[Contender], str | None]  #: The name of a session's group; None if it has none.
    most: Callable[[Caps, str], int]  #: The limit of the group with this name.
    why: str  #: Why a session waits at the limit, with `{name}`, `{person}` and `{most}`.


_LIMIT: Final = "limit: {most}; slots reserved for sessions earlier in the queue are not free"
_CAPS: Final = (
    _Cap(
        lambda one: "",
        lambda caps, _: caps.sessions,
        f"the server has no free session slot ({_LIMIT})",
    ),
    _Cap(
        lambda one: None if one.awaited else "",
        lambda caps, _: caps.sessions - caps.reserved,
        "the server has no free slot for a session that no command requested (limit: {most}; the "
        "other slots are reserved for sessions that got a command such as `tell`)",
    ),
    _Cap(
        lambda one: one.project,
        lambda caps, name: caps.projects.get(name, 0),
        f"the project {{name}} has no free session slot ({_LIMIT})",
    ),
    _Cap(
        lambda one: one.agent_type,
        lambda caps, name: caps.agent_types.get(name, 0),
        f"the agent type {{name}} has no free session slot ({_LIMIT})",
    ),
    _Cap(
        lambda one: one.agent or None,
        lambda caps, name: caps.agents.get(name, 0),
        f"the agent {{name}} has no free session slot ({_LIMIT})",
    ),
    _Cap(
        lambda one: one.requester or None,
        lambda caps, _: caps.per_person,
        f"{{person}} has no free session slot ({_LIMIT})",
    ),
)
NO_MEMORY: Final = "the machine has too little free memory for another session"


class _Group(NamedTuple):
    """The sessions that one limit counts together."""

    cap: int  #: The limit's index in `_CAPS`.
    name: str


def hand_out(
    waiting: Iterable[Contender],
    holding: Sequence[Contender],
    caps: Caps,
    free_mb: int | None,
    now: datetime,
) -> Grants:
    """Give each free slot to the first session in the queue that may have it.

    `holding`: the sessions with a slot. `free_mb`: the machine's free memory in megabytes, or None
    if it is unknown and sets no limit.
    """
    busy = [_groups(one) for one in holding]
    taken = Counter(chain.from_iterable(busy))
    fitting = _starts_that_fit(holding, caps, free_mb, now)
    granted: list[str] = []
    waits: dict[str, str] = {}
    for one in in_line(waiting, caps):
        groups = _groups(one)
        full = [group for group in groups if (most := _most(group, caps)) and taken[group] >= most]
        if not full and (fitting is None or len(granted) < fitting):
            granted.append(one.session)
            busy.append(groups)
            taken.update(groups)
            continue
        if not waits:
            taken.update(_kept(groups, full, busy))
        waits[one.session] = _why(full[0], caps) if full else NO_MEMORY
    return Grants(granted=tuple(granted), waits=waits)


def in_line(waiting: Iterable[Contender], caps: Caps) -> list[Contender]:
    """Return the queue, next session first, by waiting time plus what the priority adds."""
    step = timedelta(seconds=caps.priority_seconds)
    return sorted(waiting, key=lambda one: (one.since - one.priority * step, one.session))


def places(
    waiting: Iterable[Contender],
    holding: Iterable[Contender],
    caps: Caps,
    usual: Mapping[str, float],
    now: datetime,
) -> list[Place]:
    """Return the queue with an estimated start for each session.

    `holding`: the sessions with a slot. `usual`: for how many seconds a session usually holds its
    slot, by agent type. The estimate considers only the number of slots, not the other limits.
    """

    def ends(one: Contender, began: datetime) -> datetime:
        return began + timedelta(seconds=usual[one.agent_type])

    held = list(holding)
    frees = [now] * max(0, caps.sessions - len(held))
    frees += [max(now, ends(one, one.since)) for one in held if one.agent_type in usual]
    line = []
    for position, one in enumerate(in_line(waiting, caps), 1):
        starts_at = min(frees, default=None)
        if starts_at is not None:
            frees.remove(starts_at)
            frees += [ends(one, starts_at)] if one.agent_type in usual else []
        line.append(Place(session=one.session, position=position, starts_at=starts_at))
    return line


def priority_of(labels: Iterable[str]) -> int:
    """Return how many steps an issue's labels move it up the queue, or down if negative."""
    return sum(PRIORITIES.get(label.lower(), 0) for label in labels)


def reason_of(waits: str) -> Reason:
    """Return the machine-readable reason for a sentence in `Grants.waits`."""
    return Reason.NO_MEMORY if waits == NO_MEMORY else Reason.NO_SLOT


def _groups(one: Contender) -> list[_Group]:
    """Return the groups that a session counts in, at most one for each limit."""
    named = enumerate(cap.group(one) for cap in _CAPS)
    return [_Group(row, name) for row, name in named if name is not None]


def _most(group: _Group, caps: Caps) -> int:
    return _CAPS[group.cap].most(caps, group.name)


def _why(group: _Group, caps: Caps) -> str:
    name, most = group.name, _most(group, caps)
    return _CAPS[group.cap].why.format(name=name, person=person(name), most=most)


def _kept(groups: list[_Group], full: list[_Group], busy: list[list[_Group]]) -> Iterable[_Group]:
    """Return the groups in which the first session that has to wait reserves a free place.

    `groups` are the waiting session's groups, `full` are those without a free place, and `busy` has
    the groups of each session with a slot. The waiting session starts when one of the sessions in
    the full groups ends. A free place of another group need not be reserved for it if each of those
    sessions also has a place in that group, because both places then become free together.
    """
    leaving = [theirs for theirs in busy if any(group in theirs for group in full)]
    free = [group for group in groups if group not in full]
    return [group for group in free if any(group not in theirs for theirs in leaving)]


def _starts_that_fit(
    holding: Iterable[Contender], caps: Caps, free_mb: int | None, now: datetime
) -> int | None:
    """Return how many more programs fit into memory; None if memory sets no limit."""
    if free_mb is None or not caps.session_mb:
        return None
    growing = sum(now - one.since < _GROWING for one in holding)
    return (free_mb - caps.reserve_mb) // caps.session_mb - growing
