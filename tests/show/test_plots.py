"""Bar charts."""

import pytest

from bot.show.plots import HEIGHT, WIDTH, Column, plot


def test_a_chart_has_a_bar_for_each_value_on_top_of_the_one_before() -> None:
    drawn = plot(
        [
            Column("Monday", (("good", 3.0), ("bad", 1.0))),
            Column("Tuesday", ()),
            Column("Wednesday", (("good", 0.0), ("bad", 2.0))),
            Column("Thursday", (("good", 2.0),)),
        ]
    )
    assert drawn.top == 5
    assert [(one.says, one.tone, one.x, one.y, one.height) for one in drawn.bars] == [
        ("Monday", "good", 25.0, 40.0, 60.0),
        ("Monday", "bad", 25.0, 20.0, 20.0),
        ("Wednesday", "bad", 525.0, 60.0, 40.0),
        ("Thursday", "good", 775.0, 60.0, 40.0),
    ]
    assert {one.width for one in drawn.bars} == {200.0}


def test_a_chart_is_high_enough_for_its_lines() -> None:
    drawn = plot([Column("Monday", (("good", 1.0),))], [("limit", 4.0)])
    assert (drawn.top, [(one.y, one.says) for one in drawn.marks]) == (5, [(20.0, "limit")])


@pytest.mark.parametrize(
    ("value", "top"),
    [(0.0, 1), (0.03, 0.05), (0.1, 0.1), (0.3, 0.5), (1.0, 1), (1.01, 2), (7.0, 10), (730.0, 1000)],
)
def test_the_upper_edge_is_a_round_number(value: float, top: float) -> None:
    drawn = plot([Column("", (("busy", value),))])
    assert drawn.top == pytest.approx(top)
    assert all(0 <= one.y <= HEIGHT and one.x + one.width <= WIDTH for one in drawn.bars)


def test_a_chart_of_nothing_is_empty() -> None:
    assert plot([]).bars == ()
