"""States that the readers of all agents share: exited, and waiting for a person."""

from datetime import UTC, datetime

import pytest

from lifecycle.model.facts import Agent, Exit
from lifecycle.model.status import Activity, Probe
from runtimes.agents.shared.reader import exited, waiting
from runtimes.base import Seen

BEFORE = datetime(2026, 11, 21, 11, tzinfo=UTC)
AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
BLOCKED = Agent(
    run=2,
    activity=Activity.BLOCKED,
    since=BEFORE,
    seen=BEFORE,
    evidence="the agent's transcript ends with an error",
    question="Which?",
    error="429",
    limit_until=AT,
    unauthorised=True,
    calling=True,
    summary="Done.",
)


def dead(end: Exit | None) -> Seen:
    return Seen(runtime=Probe.ALIVE, program=Probe.DEAD, exit=end)


@pytest.mark.parametrize(
    ("end", "evidence", "since"),
    [
        (None, "the agent's program is gone", BEFORE),
        (
            Exit(at=AT, lost="another boot"),
            "the agent's program did not end by itself: another boot",
            AT,
        ),
        (Exit(at=AT, signal=9), "the agent's program was ended by signal 9", AT),
        (Exit(at=AT, code=0), "the agent's program exited with 0", AT),
        (Exit(at=AT), "the agent's program vanished", AT),
    ],
)
def test_an_exit_has_its_cause_and_ends_everything_else(
    end: Exit | None, evidence: str, since: datetime
) -> None:
    assert exited(dead(end), BLOCKED) == Agent(
        run=2,
        activity=Activity.EXITED,
        since=since,
        seen=BEFORE,
        evidence=evidence,
        summary="Done.",
        exit=end,
    )


@pytest.mark.parametrize("probe", [Probe.ALIVE, Probe.UNKNOWN])
def test_a_program_that_is_not_known_to_be_dead_has_not_exited(probe: Probe) -> None:
    assert exited(Seen(runtime=Probe.ALIVE, program=probe), BLOCKED) is None


def test_waiting_has_a_bounded_question_and_ends_an_error() -> None:
    assert waiting(BLOCKED, AT, "the agent asks people", "y" * 3000) == Agent(
        run=2,
        activity=Activity.WAITING_INPUT,
        since=AT,
        seen=BEFORE,
        evidence="the agent asks people",
        question="y" * 2000,
        summary="Done.",
    )
