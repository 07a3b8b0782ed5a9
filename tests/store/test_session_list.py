"""Lists of sessions: filters, order and pages."""

import re
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from bot.store import CURSOR, Observation, SessionQuery, SessionSort, Store
from lifecycle.model.facts import Ended, Issue, Pull
from lifecycle.model.status import Reason, Status
from tests.store.conftest import Clock, Scenario


def ids(store: Store, *waiting: str, **query: object) -> list[str]:
    page = store.session_list.page(SessionQuery(**query), waiting)  # type: ignore[arg-type]
    return [session.id.removeprefix("widgets-") for session in page.sessions]


def pages(store: Store, **query: object) -> Iterator[list[str]]:
    cursor = ""
    while True:
        wanted = SessionQuery(**query, cursor=cursor)  # type: ignore[arg-type]
        page = store.session_list.page(wanted)
        yield [session.id.removeprefix("widgets-") for session in page.sessions]
        if not (cursor := page.cursor):
            return
        assert re.search(CURSOR, cursor)


@pytest.mark.parametrize(("sort", "expected"), [("-created", "54321"), ("created", "12345")])
def test_pages_follow_each_other(
    scenario: Scenario, store: Store, clock: Clock, sort: str, expected: str
) -> None:
    for number in range(1, 6):
        scenario.session(number)
        clock.passes(number % 2)  # Some are created at the same time.
    found = list(pages(store, sort=sort, limit=2))
    assert [len(page) for page in found] == [2, 2, 1]
    assert "".join(map("".join, found)) == expected
    assert list(pages(store, sort=sort, limit=5)) == [list(expected)]


def test_a_new_session_does_not_shift_the_pages(
    scenario: Scenario, store: Store, clock: Clock
) -> None:
    for number in (1, 2, 3):
        scenario.session(number)
        clock.passes(1)
    first = store.session_list.page(SessionQuery(limit=2))
    scenario.session(4)
    second = store.session_list.page(SessionQuery(limit=2, cursor=first.cursor))
    assert [session.id for session in second.sessions] == ["widgets-1"]


def test_sessions_are_sorted_by_the_time_of_their_status(
    scenario: Scenario, store: Store, clock: Clock
) -> None:
    for number in (1, 2):
        scenario.session(number)
    clock.passes(1)
    scenario.decides("widgets-1", status="stuck")
    assert ids(store, sort="-since") == ["1", "2"]
    assert ids(store, sort="since") == ["2", "1"]


def test_filters_are_combined(scenario: Scenario, store: Store) -> None:
    for number, changes in enumerate(
        (
            {},
            {"project": "gears"},
            {"requester": "Bob"},
            {"agent_name": "ada", "agent_type": "codex"},
        ),
        1,
    ):
        created = replace(scenario.new_session(number), **changes)
        store.sessions.create(created)
    scenario.decides("widgets-4", status="stuck")
    assert ids(store, project="gears") == ["2"]
    assert ids(store, person="BOB") == ["3"]
    for agent in ("ada", "codex", "ada codex"):
        assert ids(store, agent=agent) == ["4"]
    assert ids(store, agent="ada claude") == []
    assert ids(store, agent="codex", statuses=("stuck", "working")) == ["4"]
    assert ids(store, agent="codex", statuses=("working",)) == []


def test_a_search_looks_at_id_title_branch_and_number(scenario: Scenario, store: Store) -> None:
    for number, title in ((12, "100% wrong"), (13, "Über_all"), (14, "x")):
        new = replace(scenario.new_session(number), issue=Issue(number=number, title=title))
        store.sessions.create(new)
    pull = Observation(session="widgets-14", pulls=(Pull(number=340, head="cafe"),))
    store.observations.record([pull], scenario.now)
    assert ids(store, search="WIDGETS-12") == ["12"]
    assert ids(store, search="mergewright/14-") == ["14"]
    assert ids(store, search="0% W") == ["12"]
    assert ids(store, search="Über_") == ["13"]
    assert ids(store, search="r_a") == ["13"], "a wildcard is a letter like any other"
    assert ids(store, search="#340") == ["14"]
    assert ids(store, search="#12") == ["12"]


def test_the_scope_selects_by_end_and_by_who_waits(scenario: Scenario, store: Store) -> None:
    for number in (1, 2, 3, 4):
        scenario.session(number)
    over = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="so", at=scenario.now)
    scenario.decides("widgets-1", status="stuck", reason="no_progress")
    scenario.decides("widgets-2", status="killed", ended=over)
    scenario.decides("widgets-3", status="errored", reason="timeout", ended=over)
    waiting = ("stuck no_progress", "errored timeout")
    assert ids(store, *waiting) == ["4", "3", "2", "1"]
    assert ids(store, *waiting, scope="current") == ["4", "3", "1"]
    assert ids(store, *waiting, scope="waiting") == ["3", "1"]
    assert ids(store, *waiting, scope="ended") == ["3", "2"]
    closed = Observation(session="widgets-3", issue=Issue(number=3, title="x", open=False))
    store.observations.record([closed], scenario.now)
    assert ids(store, *waiting, scope="waiting") == ["1"], "nobody waits for a closed issue"


def test_the_places_of_all_sessions_say_who_waits(scenario: Scenario, store: Store) -> None:
    for number in (1, 2, 3, 4):
        scenario.session(number)
    for number in (1, 2):
        scenario.decides(f"widgets-{number}", status="stuck", reason="no_progress")
    scenario.decides("widgets-3", status="stuck", reason="")

    def places(**query: object) -> list[tuple[str, str, bool]]:
        wanted = SessionQuery(**query, limit=-1)  # type: ignore[arg-type]
        found = store.session_list.places(wanted, ("stuck no_progress",))
        return [(one.id[-1], one.status, one.waits) for one in found]

    assert places(sort="created") == [
        *(("1", "stuck", True), ("2", "stuck", True)),
        *(("3", "stuck", False), ("4", "queued", False)),
    ]
    assert places(search="widgets-2") == [("2", "stuck", True)]
    assert places(statuses=("queued",)) == [("4", "queued", False)]


@pytest.mark.parametrize("sort", ["-created", "created"])
def test_a_place_is_after_the_pages_before_it(
    scenario: Scenario, store: Store, clock: Clock, sort: SessionSort
) -> None:
    for number in range(1, 6):
        scenario.session(number)
        clock.passes(number % 2)  # Some are created at the same time.
    all_ = store.session_list.places(SessionQuery(sort=sort, limit=-1))
    for number, one in enumerate(all_, 1):
        after = store.session_list.places(SessionQuery(sort=sort, limit=-1, cursor=one.cursor))
        assert after == all_[number:]
        assert after == [other for other in all_ if other.is_after(one.cursor, sort)]
    assert all(one.is_after("", sort) for one in all_)


def test_requesters_are_listed_once_by_name(scenario: Scenario, store: Store) -> None:
    for number, requester in enumerate(("zoe", "Bob", "ada", "zoe", ""), 1):
        store.sessions.create(replace(scenario.new_session(number), requester=requester))
    assert store.session_list.requesters(10) == ["ada", "Bob", "zoe"]
    assert store.session_list.requesters(1) == ["ada"]


def test_sessions_and_requesters_of_some_projects_are_chosen(
    scenario: Scenario, store: Store
) -> None:
    for number, project in enumerate(("widgets", "gears", "widgets"), 1):
        new = scenario.new_session(number)
        repository, login = f"acme/{project}", f"{project}-{number}"
        new = replace(new, project=project, repository=repository, requester=login)
        store.sessions.create(new)
    assert sorted(ids(store, projects=("widgets",))) == ["1", "3"]
    assert ids(store, projects=("widgets",), project="gears") == []
    assert sorted(ids(store, projects=("gears", "widgets"))) == ["1", "2", "3"]
    assert ids(store, projects=()) == []
    assert store.session_list.requesters(10, ("gears",)) == ["gears-2"]
    assert store.session_list.requesters(10, ()) == []


@pytest.mark.parametrize("cursor", ["0.0:x", f"{'9' * 12}.{'9' * 9}:{'x' * 200}"])
def test_every_cursor_of_the_documented_form_has_a_page(store: Store, cursor: str) -> None:
    assert re.search(CURSOR, cursor)
    assert store.session_list.page(SessionQuery(cursor=cursor)).sessions == []
