"""Pull requests of which only the number is known."""

from bot.github.snapshots import PointBudget
from tests.harness.observers import REPOSITORY, Bench


def others(bench: Bench, *numbers: int) -> None:
    bench.refreshes(*(f"other:{number}" for number in numbers))
    while bench.pulls.read_requested():
        pass


def test_unknown_pull_requests_are_looked_up_fifty_at_a_time_and_ours_are_read(
    bench: Bench,
) -> None:
    bench.pushed("a1")
    bench.pull()
    others(bench, 34, *range(1000, 1119))
    assert [len(one) for one in bench.github.looked_up] == [50, 50, 20]
    assert bench.waiting() == ["pull:34"]  # Until its mergeability is known.
    (pull,) = bench.store.sessions.get("widgets-12").pulls
    assert pull.number == 34
    others(bench, 1001, 1002)
    assert len(bench.github.looked_up) == 3


def test_unknown_pull_requests_wait_while_points_are_short_or_github_is_down(
    bench: Bench,
) -> None:
    bench.pushed("a1")
    bench.pull()
    now = bench.scenario.clock()
    bench.github.left = PointBudget(cost=1, limit=5000, remaining=1000, reset_at=now)
    others(bench, 1000)
    bench.refreshes("pull:34")
    assert bench.pulls.read_requested() == 1
    assert bench.github.looked_up == []
    bench.github.left = None
    bench.scenario.clock.passes(61)
    bench.github.refuses.add(REPOSITORY)
    bench.pulls.read_requested()
    assert "other:1000" in bench.waiting()
