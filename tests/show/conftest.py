"""Fixtures of the test harness that these tests use, and a session that is in no store."""

from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from bot.store import Session
from lifecycle.model.facts import Agent, Issue, Spending, Work
from tests.harness.fixtures import begun, clock, scenario, site

__all__ = ["begun", "clock", "scenario", "site"]

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
_PLAIN = Session(
    id="widgets-12",
    project="widgets",
    repository="acme/widgets",
    created=NOW,
    issue=Issue(number=12, title="Colours are wrong"),
    branch="mergewright/12-colours",
    run=1,
    slot=True,
    wants_slot=False,
    waits="",
    restored_at=None,
    spent=Spending(),
    spent_ever=Spending(),
    metadata={},
    agent=Agent(run=1),
    work=Work(),
    pulls=(),
    commands=(),
    ended=None,
    status="working",
    since=NOW,
    because="the agent is at work",
    reason="agent_at_work",
    blockers=(),
    due=None,
    version=1,
)


def a_session(**fields: Any) -> Session:
    """A session at work, but for these fields."""
    return replace(_PLAIN, **fields)
