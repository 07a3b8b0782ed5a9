"""Refreshes, and requests that arrive during a read."""

from bot.store import RefreshRequest, Store
from tests.store.conftest import Scenario

ISSUE = RefreshRequest(repository="acme/widgets", subject="issue:12")
PULL = RefreshRequest(repository="acme/widgets", subject="pull:34")
EVERYTHING = ("issue:", "pull:", "branch:", "sha:")


def test_several_requests_for_one_subject_are_one_refresh(scenario: Scenario, store: Store) -> None:
    for _ in range(3):
        store.refreshes.request([ISSUE, ISSUE], scenario.now)
    assert [t.subject for t in store.refreshes.due(scenario.now, EVERYTHING)] == ["issue:12"]


def test_a_done_refresh_is_removed(scenario: Scenario, store: Store) -> None:
    store.refreshes.request([ISSUE], scenario.now)
    store.refreshes.mark_done(store.refreshes.due(scenario.now, EVERYTHING)[0])
    assert store.refreshes.due(scenario.now, EVERYTHING) == []


def test_a_request_during_the_read_is_not_lost_even_in_the_same_instant(
    scenario: Scenario, store: Store
) -> None:
    store.refreshes.request([ISSUE], scenario.now)
    refresh = store.refreshes.due(scenario.now, EVERYTHING)[0]
    store.refreshes.request([ISSUE], scenario.now)
    store.refreshes.mark_done(refresh)
    assert [t.subject for t in store.refreshes.due(scenario.now, EVERYTHING)] == ["issue:12"]


def test_a_second_request_keeps_the_earlier_due_time(scenario: Scenario, store: Store) -> None:
    first = scenario.now
    store.refreshes.request([ISSUE], first)
    later = scenario.clock.passes(10)
    store.refreshes.request([ISSUE], later)
    (waiting,) = store.refreshes.due(later, EVERYTHING)
    assert (waiting.due, waiting.since) == (first, later)


def test_a_postponed_refresh_waits_until_its_time_or_the_next_request(
    scenario: Scenario, store: Store
) -> None:
    store.refreshes.request([ISSUE, PULL], scenario.now)
    for waiting in store.refreshes.due(scenario.now, EVERYTHING):
        store.refreshes.postpone(waiting, scenario.clock.now.replace(year=2031))
    assert store.refreshes.due(scenario.now, EVERYTHING) == []
    store.refreshes.request([PULL], scenario.now)
    assert [t.subject for t in store.refreshes.due(scenario.now, EVERYTHING)] == ["pull:34"]


def test_a_request_during_a_failed_read_is_not_postponed(scenario: Scenario, store: Store) -> None:
    store.refreshes.request([ISSUE], scenario.now)
    refresh = store.refreshes.due(scenario.now, EVERYTHING)[0]
    store.refreshes.request([ISSUE], scenario.now)
    store.refreshes.postpone(refresh, scenario.clock.now.replace(year=2031))
    assert len(store.refreshes.due(scenario.now, EVERYTHING)) == 1


def test_due_refreshes_are_selected_by_subject_prefix_oldest_first(
    scenario: Scenario, store: Store
) -> None:
    store.refreshes.request([PULL], scenario.now)
    scenario.clock.passes(1)
    store.refreshes.request(
        [ISSUE, RefreshRequest(repository="acme/widgets", subject="pull:3")], scenario.now
    )
    found = store.refreshes.due(scenario.now, ("pull:", "sha:"))
    assert [t.subject for t in found] == ["pull:34", "pull:3"]
    assert store.refreshes.due(scenario.now, ()) == []
    assert len(store.refreshes.due(scenario.now, EVERYTHING, limit=2)) == 2
