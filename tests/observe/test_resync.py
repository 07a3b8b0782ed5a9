"""The resync: fingerprints of everything, full reads of what changed, within the rate limit."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.github.errors import Refused, TryLater
from bot.github.fingerprints import Fingerprint
from bot.github.reader import FINGERPRINT_BATCH
from bot.github.snapshots import PointBudget
from bot.store import Observation
from lifecycle.model.status import Merge
from tests.harness.observers import REPOSITORY, Bench


@pytest.fixture
def quiet(bench: Bench) -> Bench:
    """A session with a pull request that was fingerprinted and read."""
    bench.pushed("a1")
    bench.pull(merge=Merge.CLEAN)
    bench.labelled()
    bench.reads()
    bench.github.seen = {12: fingerprint(bench), 34: fingerprint(bench)}
    bench.scenario.clock.passes(60)
    bench.resync.run()
    assert bench.waiting() == ["issue:12", "pull:34"]
    reads_all(bench)
    return bench


def fingerprint(bench: Bench, state: str = "OPEN") -> Fingerprint:
    return Fingerprint(state=state, updated_at=bench.scenario.clock())


def reads_all(bench: Bench) -> None:
    bench.issues.read_requested()
    bench.pulls.read_requested()
    assert bench.waiting() == []


def test_an_unchanged_fingerprint_leads_to_no_read(quiet: Bench) -> None:
    for _ in range(3):
        quiet.scenario.clock.passes(300)
        quiet.resync.run()
    assert quiet.waiting() == []
    assert quiet.github.fingerprinted == [(12, 34)] * 4


def test_only_changed_fingerprints_lead_to_reads(quiet: Bench) -> None:
    quiet.github.seen[34] = fingerprint(quiet, "a check failed")
    quiet.resync.run()
    assert quiet.waiting() == ["pull:34"]


def test_a_failed_read_is_repeated_by_the_next_resync(quiet: Bench) -> None:
    quiet.scenario.clock.passes(60)
    quiet.github.seen[34] = fingerprint(quiet, "a check failed")
    pull = quiet.github.pulls[34]
    quiet.github.pulls[34] = TryLater("down")
    quiet.scenario.clock.passes(60)
    for _ in range(2):
        quiet.resync.run()
        quiet.pulls.read_requested()
        assert quiet.waiting() == ["pull:34"]
    quiet.github.pulls[34] = pull
    quiet.scenario.clock.passes(60)
    reads_all(quiet)
    quiet.resync.run()
    assert quiet.waiting() == []


def test_a_read_from_before_a_fingerprint_does_not_confirm_it(quiet: Bench) -> None:
    """If the pull request changes between the two, only the fingerprint shows the change."""
    read = quiet.github.pull
    quiet.github.seen[34] = fingerprint(quiet, "a check failed")
    quiet.scenario.clock.passes(60)

    def meanwhile(repository: str, number: int) -> Any:
        assert quiet.refresh_budget.has_changed((repository, number), quiet.github.seen[number])
        return read(repository, number)

    quiet.github.pull = meanwhile  # type: ignore[method-assign]
    quiet.refreshes("pull:34")
    reads_all(quiet)
    quiet.resync.run()
    assert quiet.waiting() == ["pull:34"]


@pytest.mark.parametrize("ahead", [0, 600])
def test_a_change_in_the_current_second_is_read_twice(quiet: Bench, ahead: float) -> None:
    changed = fingerprint(quiet, "a comment")
    quiet.github.seen[34], quiet.github.behind = changed, timedelta(seconds=ahead)
    quiet.scenario.clock.passes(ahead)
    for _ in range(2):
        quiet.resync.run()
        assert quiet.waiting() == ["pull:34"]
        quiet.scenario.clock.passes(2)
        reads_all(quiet)
    quiet.scenario.clock.passes(60)
    quiet.resync.run()
    reads_all(quiet)
    quiet.resync.run()
    assert quiet.waiting() == []


def test_everything_is_read_in_full_at_times(quiet: Bench) -> None:
    quiet.scenario.clock.passes(4 * 3600)
    quiet.resync.run()
    assert quiet.waiting() == ["issue:12", "pull:34"]


def test_an_item_without_a_fingerprint_is_read(quiet: Bench) -> None:
    quiet.github.seen[34] = None
    quiet.resync.run()
    assert quiet.waiting() == ["pull:34"]


def test_one_failing_item_does_not_affect_the_others(bench: Bench) -> None:
    for number in range(1, 101):
        bench.labelled(number)
        bench.github.seen[number] = fingerprint(bench)
    bench.github.seen[17] = TryLater("GitHub answered 502.")
    bench.resync.run()
    assert len(bench.waiting()) == 100
    assert (17,) in bench.github.fingerprinted
    assert len(bench.github.fingerprinted) <= 14


@pytest.mark.parametrize(
    ("failure", "asked"),
    [
        (TryLater("down"), 8),
        (Refused("no access", 403), 8),
        (TryLater("limited", Bench), 1),  # type: ignore[arg-type]
    ],
)
def test_when_github_fails_resync_gives_up_early_and_changes_nothing(
    bench: Bench, failure: Exception, asked: int
) -> None:
    for number in range(1, 2 * FINGERPRINT_BATCH + 1):
        bench.labelled(number)
        bench.github.seen[number] = failure
    bench.resync.run()
    assert len(bench.github.fingerprinted) == asked
    assert len(bench.waiting()) <= 1


def test_an_unavailable_list_of_issues_does_not_stop_the_resync(
    quiet: Bench,
) -> None:
    quiet.github.refuses = {REPOSITORY}
    quiet.github.seen[34] = fingerprint(quiet, "a check failed")
    quiet.resync.run()
    assert quiet.waiting() == ["pull:34"]
    assert [listed[0] for listed in quiet.github.listed[-2:]] == [REPOSITORY, "acme/gears"]
    (session,) = quiet.store.sessions.all()
    assert session.issue.labelled


def test_fingerprints_read_before_the_rate_limit_are_used(bench: Bench) -> None:
    for number in range(1, 2 * FINGERPRINT_BATCH + 1):
        bench.labelled(number)
    limit = TryLater("limited", bench.scenario.clock() + timedelta(minutes=9))
    bench.github.seen |= dict.fromkeys(range(100, 101), limit)
    bench.resync.run()
    assert 0 < len(bench.waiting()) < 2 * FINGERPRINT_BATCH


def test_many_refreshes_are_spread_over_the_remaining_rate_limit(bench: Bench) -> None:
    now = bench.scenario.clock()
    bench.github.left = PointBudget(
        cost=1, limit=100, remaining=65, reset_at=now + timedelta(hours=1)
    )
    for number in range(1, 101):
        bench.labelled(number)
    bench.resync.run()
    assert len(bench.waiting()) == 40, "what may be spared"
    assert len(bench.store.refreshes.due(now, ("issue:",))) == 21
    soon = bench.store.refreshes.due(now + timedelta(minutes=15), ("issue:",))
    assert len(soon) == 31


def test_the_last_points_are_reserved_for_known_changes(quiet: Bench) -> None:
    now = quiet.scenario.clock()
    quiet.github.left = PointBudget(
        cost=1, limit=100, remaining=25, reset_at=now + timedelta(hours=1)
    )
    quiet.github.seen[34] = fingerprint(quiet, "a check failed")
    before = [*quiet.github.fingerprinted], [*quiet.github.listed]
    quiet.resync.run()
    assert quiet.waiting() == []
    assert (quiet.github.fingerprinted, quiet.github.listed) == before
    quiet.refreshes("pull:34")
    quiet.scenario.clock.passes(60)
    reads_all(quiet)


def test_the_branch_of_a_session_without_a_pull_request_is_refreshed(bench: Bench) -> None:
    bench.pushed("a1")
    bench.scenario.session(13)  # It has not run, so it has no pull request.
    bench.resync.run()
    assert bench.waiting() == ["branch:mergewright/12-it-breaks", "issue:12", "issue:13"]


def test_a_blocked_issue_is_read_at_every_resync(quiet: Bench) -> None:
    session = quiet.store.sessions.get("widgets-12")
    waiting = replace(session.issue, blocked_by=("#7",))
    quiet.store.observations.record(
        [Observation(session="widgets-12", issue=waiting)], quiet.scenario.clock()
    )
    quiet.resync.run()
    assert quiet.waiting() == ["issue:12"]


def test_fingerprints_of_ended_sessions_are_forgotten(quiet: Bench) -> None:
    quiet.github.issues.clear()
    assert quiet.refresh_budget._known.keys() == {(REPOSITORY, 12), (REPOSITORY, 34)}
    quiet.store.sessions.live = list
    quiet.resync.run()
    assert quiet.refresh_budget._known == {}
