"""Rows of the sessions' tables as values."""

from collections.abc import Mapping, Sequence

import msgspec

from bot.store.rows import Row, decoded, from_timestamp, from_timestamp_or_none
from bot.store.usage import spending
from bot.store.values import LiveSession, Session
from lifecycle.model.facts import Agent, Command, Ended, Issue, Pull, Work

_agent = msgspec.json.Decoder(Agent)
_work = msgspec.json.Decoder(Work)
_issue = msgspec.json.Decoder(Issue)
_pulls = msgspec.json.Decoder(tuple[Pull, ...])
_ended = msgspec.json.Decoder(Ended)
_blockers = msgspec.json.Decoder(tuple[str, ...])


def agent_of(row: Row) -> Agent:
    """The column `agent`. Raises `BadRow`, as all of these."""
    return decoded(_agent, row, "sessions", "id", "agent")


def work_of(row: Row) -> Work:
    """The column `work`."""
    return decoded(_work, row, "sessions", "id", "work")


def issue_of(row: Row) -> Issue:
    """The column `issue`."""
    return decoded(_issue, row, "sessions", "id", "issue")


def pulls_of(row: Row) -> tuple[Pull, ...]:
    """The column `pulls`."""
    return decoded(_pulls, row, "sessions", "id", "pulls")


def ended_of(row: Row) -> Ended | None:
    """The column `ended`."""
    return None if row["ended"] is None else decoded(_ended, row, "sessions", "id", "ended")


def blockers_of(row: Row) -> tuple[str, ...]:
    """The column `blockers`."""
    return decoded(_blockers, row, "sessions", "id", "blockers")


def session_of(
    row: Row, commands: tuple[Command, ...], used: Sequence[Row], metadata: Mapping[str, str]
) -> Session:
    """A whole row of `sessions`, with what other tables have of it."""
    return Session(
        id=row["id"],
        project=row["project"],
        repository=row["repository"],
        created=from_timestamp(row["created"]),
        issue=issue_of(row),
        requester=row["requester"],
        agent_type=row["agent_type"],
        agent_name=row["agent_name"],
        branch=row["branch"],
        run=row["run"],
        slot=bool(row["slot"]),
        wants_slot=bool(row["wants_slot"]),
        wanted_since=from_timestamp_or_none(row["wanted_since"]),
        waits=row["waits"],
        priority=row["priority"],
        restored_at=from_timestamp_or_none(row["restored_at"]),
        spent=spending(used, row["first_run"]),
        spent_ever=spending(used),
        metadata=metadata,
        agent=agent_of(row),
        work=work_of(row),
        pulls=pulls_of(row),
        commands=commands,
        ended=ended_of(row),
        status=row["status"],
        since=from_timestamp(row["since"]),
        because=row["because"],
        reason=row["reason"],
        blockers=blockers_of(row),
        decided_at=from_timestamp_or_none(row["decided_at"]),
        due=from_timestamp_or_none(row["due"]),
        version=row["version"],
    )


def live_of(row: Row) -> LiveSession:
    """The columns a sweep asks for."""
    return LiveSession(
        id=row["id"],
        project=row["project"],
        repository=row["repository"],
        number=row["number"],
        branch=row["branch"],
        agent_type=row["agent_type"],
        run=row["run"],
        status=row["status"],
        agent=agent_of(row),
        work=work_of(row),
        pulls=tuple(msgspec.json.decode(row["numbers"], type=list[int])),
        blocked=row["blocked"] > 0,
    )


def command_of(row: Row) -> Command:
    """A granted row of `commands`."""
    return Command(
        key=row["key"],
        kind=row["kind"],
        actor=row["actor"],
        at=from_timestamp(row["at"]),
        text=row["text"],
        head=row["head"],
        comment=row["comment"],
    )
