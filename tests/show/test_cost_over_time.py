"""A session's cost over time, by model and with its budgets."""

import pytest

from bot.show.cost_over_time import cost_over_time
from bot.show.session_summary import BudgetUsage
from bot.store import UsageStep

MINUTE, HOUR, DAY = 60, 3600, 86_400
BEGAN = 20_000 * DAY


def step(at: int, cost: float, model: str = "big") -> UsageStep:
    return UsageStep(model=model, at=BEGAN + at, cost_usd=cost, tokens=10, unpriced=0)


def budget(name: str, limit: float, spent: float) -> BudgetUsage:
    return BudgetUsage(name=name, spent=spent, limit=limit, says=f"the {name} budget")


def test_a_session_that_used_no_model_has_no_chart() -> None:
    assert cost_over_time([], [], 0.0) is None


def test_columns_add_up_and_the_most_expensive_model_is_at_the_bottom() -> None:
    steps = [step(0, 1.0, "small"), step(0, 1.0), step(20 * MINUTE, 2.0)]
    found = cost_over_time(steps, [], 4.0)
    assert found is not None
    assert [(one.name, one.tone, one.cost_usd) for one in found.models] == [
        ("big", "busy", 3.0),
        ("small", "landed", 1.0),
    ]
    heights = [(one.tone, one.height * found.plot.top / 100) for one in found.plot.bars]
    assert heights == [
        *(("busy", 1.0), ("landed", 1.0)),
        *(("busy", 1.0), ("landed", 1.0)),
        *(("busy", 3.0), ("landed", 1.0)),
    ]
    assert (found.ends - found.begins).total_seconds() == 30 * MINUTE


def test_a_budget_in_reach_has_a_line_where_its_cost_would_be_used_up() -> None:
    budgets = [
        budget("session", limit=5.0, spent=1.0),  # 1 of 2 dollars were spent before a restore.
        budget("issue", limit=40.0, spent=2.0),
        budget("day", limit=3.0, spent=2.0),
    ]
    found = cost_over_time([step(0, 2.0)], budgets, 2.0)
    assert found is not None
    assert (found.lines, found.above) == (("the session budget",), ("the issue budget",))
    (mark,) = found.plot.marks
    assert (found.plot.top, mark.y) == (10.0, 40.0)


@pytest.mark.parametrize("days", [0, 1, 7, 30, 60, 400, 1000])
def test_a_long_session_has_at_most_about_sixty_columns(days: int) -> None:
    found = cost_over_time([step(0, 1.0), step(days * DAY, 1.0)], [], 2.0)
    assert found is not None
    assert len(found.plot.bars) <= 62
    last = found.plot.bars[-1]
    assert last.height * found.plot.top / 100 == 2.0


def test_models_beyond_the_fourth_share_a_colour() -> None:
    found = cost_over_time([step(0, 9.0 - n, f"model-{n}") for n in range(6)], [], 39.0)
    assert found is not None
    assert [one.tone for one in found.models[3:]] == ["warn", "other", "other"]
    assert found.plot.bars[-1].height * found.plot.top / 100 == pytest.approx(9.0)
