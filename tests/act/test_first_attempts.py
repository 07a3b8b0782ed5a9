"""GitHub is searched for an action's effect, unless the action certainly has none yet."""

from collections.abc import Iterator
from typing import Any

import pytest

from bot.act.results import ActionResult, Completed, FinalCheck, Rejected, RetryLater, Withdrawn
from bot.store import DueAction
from lifecycle.model import keys
from lifecycle.model.actions import CloseIssue, Report, StatusSummary
from lifecycle.model.key import parse
from lifecycle.model.status import Status
from tests.harness.outbox import OutboxBench


@pytest.fixture
def bench(scenario: Any) -> Iterator[OutboxBench]:
    made = OutboxBench(scenario)
    scenario.orders(scenario.session(), CloseIssue(key=parse("close_issue"), number=12))
    yield made
    made.workers.shutdown()


def report(number: int, content: str) -> Report:
    key = keys.edit(keys.report(number), 0, content)
    summary = StatusSummary(
        session="widgets-12", agent="ada", branch="b", status=Status.WORKING, because="It works."
    )
    return Report(key=key, number=number, comment=None, summary=summary)


def attempted(bench: OutboxBench, *outcomes: ActionResult) -> list[tuple[str, bool]]:
    """Carry out what is due with these outcomes; the actions, and which were first attempts."""
    seen, left = list[tuple[str, bool]](), list(outcomes)

    def do(due: DueAction, check: FinalCheck) -> ActionResult:
        seen.append((str(due.action.key), due.first))
        return left.pop(0) if left else Completed()

    bench.doing = do
    bench.drains()
    return seen


def test_an_effect_is_looked_for_only_where_an_attempt_may_have_had_it(bench: OutboxBench) -> None:
    name, order = "widgets-12", bench.scenario.orders
    assert attempted(bench) == [("close_issue", False)]  # No process knows what came before it.
    order(name, report(12, "a"))
    bench.outbox.begin()
    assert attempted(bench) == [("report:12:0:a", False)]  # It was due when this bot began.
    order(name, report(34, "a"))
    assert attempted(bench, RetryLater("lost")) == [("report:34:0:a", True)]
    order(name, report(35, "a"))
    assert attempted(bench) == [("report:35:0:a", False)]  # As another one may have an effect.
    bench.scenario.clock.passes(60)
    assert attempted(bench) == [("report:34:0:a", False)]
    order(name, report(36, "a"))
    assert attempted(bench) == [("report:36:0:a", True)]


@pytest.mark.parametrize("outcome", [Withdrawn("its cause is gone"), Rejected("no")])
def test_the_effect_of_an_action_that_was_given_up_is_looked_for(
    bench: OutboxBench, outcome: ActionResult
) -> None:
    bench.drains()
    bench.outbox.begin()
    bench.wanted = False
    bench.scenario.orders("widgets-12", report(34, "a"))
    bench.drains()
    bench.wanted = True
    bench.scenario.orders("widgets-12", report(34, "b"))  # The one before was never attempted.
    assert attempted(bench, outcome) == [("report:34:0:b", True)]
    for process in (bench.outbox, bench.with_attempts(bench.outbox.attempts)):
        bench.outbox = process
        process.begin()
        bench.scenario.orders("widgets-12", report(34, f"c{id(process)}"))
        assert [first for _, first in attempted(bench)] == [False]
