"""When a pull request is read: once for many refreshes, again while it may change."""

import pytest
from msgspec.structs import replace

from bot.github.errors import TryLater
from bot.store import Observation
from lifecycle.model.status import Merge, PullState
from tests.harness.observers import BRANCH, REPOSITORY, Bench


def test_a_pull_request_without_a_session_is_read_once(bench: Bench) -> None:
    bench.pull()
    bench.refreshes("pull:34")
    bench.pulls.read_requested()
    known = bench.github.pulls[34]
    bench.github.pulls[34] = TryLater("it was asked for again")
    bench.refreshes("pull:34")
    bench.pulls.read_requested()
    assert bench.waiting() == []
    bench.github.pulls[34] = known
    bench.pushed("a1")
    assert [found.number for found in bench.reads()] == [34]


def test_a_new_pull_request_is_read_once_and_a_merged_one_not_again(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(state=PullState.OPEN, merge=Merge.CLEAN)
    assert [found.number for found in bench.reads()] == [34]
    assert bench.github.pulls_read == [34]
    bench.pull(state=PullState.MERGED)
    assert [found.state for found in bench.reads()] == [PullState.MERGED]
    bench.refreshes("pull:34", f"branch:{BRANCH}", "sha:a1")
    bench.scenario.clock.passes(60)
    assert bench.pulls.read_requested() == 0
    assert bench.github.pulls_read == [34, 34]
    assert bench.waiting() == []


def test_a_check_of_a_push_without_a_pull_request_costs_no_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = bench.pushed("a1")
    work = replace(bench.store.sessions.get(name).work, head="a1")
    seen = Observation(session=name, work=work)
    bench.store.observations.record([seen], bench.scenario.clock())
    assert bench.store.sessions.of_subject(REPOSITORY, "sha:a1") == name
    monkeypatch.setattr(bench.github, "pulls_of", lambda *_: pytest.fail("it was searched for"))
    bench.refreshes("sha:a1")
    assert bench.pulls.read_requested() == 0
    assert bench.waiting() == []


def test_refreshes_within_a_second_share_one_read(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(merge=Merge.CLEAN)
    bench.refreshes("pull:34")
    bench.pulls.read_requested()
    assert bench.store.sessions.get("widgets-12").pulls
    bench.refreshes("pull:34", "sha:a1")
    for _ in range(2):
        bench.scenario.clock.passes(0.4)
        assert bench.pulls.read_requested() == 0
    bench.scenario.clock.passes(0.3)
    assert bench.pulls.read_requested() == 1
    assert bench.waiting() == []


def test_old_read_times_are_forgotten(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(merge=Merge.CLEAN)
    bench.reads()
    bench.scenario.clock.passes(120)
    bench.pulls.read_requested()
    assert bench.pulls._read_at == {}


def test_a_moved_base_refreshes_the_pull_requests_onto_it(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(base_branch="main", merge=Merge.CLEAN)
    bench.reads()
    bench.refreshes("branch:main", "branch:other")
    bench.pulls.read_requested()
    assert bench.waiting() == ["branch:mergewright/12-it-breaks"]


def test_a_moved_base_does_not_refresh_closed_pull_requests(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(base_branch="main", state=PullState.CLOSED)
    bench.reads()
    bench.refreshes("branch:main")
    bench.pulls.read_requested()
    assert bench.waiting() == []


def test_unknown_mergeability_is_read_again_with_growing_pauses(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(merge=Merge.UNKNOWN)
    bench.refreshes("pull:34")
    for pause in (2, 4, 8, 16, 32, 60, 60):
        assert bench.pulls.read_requested() == 1
        bench.scenario.clock.passes(pause - 1)
        assert bench.pulls.read_requested() == 0
        bench.scenario.clock.passes(1)
    bench.pull(merge=Merge.CLEAN)
    assert bench.pulls.read_requested() == 1
    assert bench.waiting() == []


def test_unknown_mergeability_of_a_closed_pull_request_is_not_read_again(bench: Bench) -> None:
    bench.pushed("a1")
    bench.pull(merge=Merge.UNKNOWN, state=PullState.CLOSED)
    assert bench.reads() != ()
    assert bench.waiting() == []
