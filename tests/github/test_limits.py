"""Rate limits, and the interval between writes."""

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
import respx

from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.errors import Limited, TryLater
from bot.github.github_app import DeliveryAttempt
from bot.github.rate_limits import RateLimits
from bot.github.snapshots import PointBudget
from tests.github.conftest import API, GRAPHQL, NOW, REPO
from tests.world.app_key import PRIVATE

RESET = NOW + timedelta(minutes=9)
USED_UP = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(RESET.timestamp()))}
SECONDARY = {"message": "You have exceeded a secondary rate limit."}


class Clock:
    """A clock that only the test advances."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> Any:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limits(clock: Clock) -> RateLimits:
    return RateLimits(clock, 1.0)


def test_nothing_is_sent_during_a_secondary_rate_limit(
    github: GitHub, respx_mock: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", Mock(side_effect=AssertionError("nobody sleeps for it")))
    asked = respx_mock.get(REPO).respond(403, json=SECONDARY, headers={"retry-after": "30"})
    queried = respx_mock.post(GRAPHQL)
    for _ in range(2):
        with pytest.raises(Limited) as limit:
            github.read.repository("acme/widgets")
        assert limit.value.at == NOW + timedelta(seconds=30)
    with pytest.raises(Limited):
        github.read.issue("acme/widgets", 1)
    assert (asked.call_count, queried.call_count) == (1, 0)


def test_a_limit_raised_often_keeps_no_frames_alive(
    limits: RateLimits,
) -> None:
    def depth() -> int:
        with pytest.raises(Limited) as limit, limits.guard("acme", "core"):
            raise Limited("used up", RESET, "core")
        return len(limit.traceback)

    depth()
    assert depth() == depth()


def test_an_exhausted_rest_limit_leaves_graphql_usable(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    exhausted_limit = {**USED_UP, "x-ratelimit-resource": "core"}
    asked = respx_mock.get(REPO).respond(403, json={}, headers=exhausted_limit)
    respx_mock.post(GRAPHQL).respond(json={"data": {"viewer": {"login": "wright"}}})
    for _ in range(2):
        with pytest.raises(Limited):
            github.read.repository("acme/widgets")
    assert github.read.me() == "wright"
    assert asked.call_count == 1


def test_nothing_is_sent_after_the_last_request_of_a_limit(
    github: GitHub, respx_mock: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", Mock(side_effect=AssertionError("nobody sleeps for it")))
    body = {"default_branch": "main", "private": False, "clone_url": ""}
    asked = respx_mock.get(REPO).respond(json=body, headers=USED_UP)
    assert github.read.repository("acme/widgets").default_branch == "main"
    for _ in range(2):
        with pytest.raises(Limited) as limit:
            github.read.repository("acme/widgets")
        assert limit.value.at == RESET
    assert asked.call_count == 1
    respx_mock.post(GRAPHQL).respond(json={"data": {"viewer": {"login": "wright"}}})
    assert github.read.me() == "wright"


def test_exhausted_graphql_points_are_waited_for(
    github: GitHub, respx_mock: respx.MockRouter
) -> None:
    limited = {"errors": [{"type": "RATE_LIMITED", "message": "used up"}]}
    asked = respx_mock.post(GRAPHQL).respond(json=limited, headers=USED_UP)
    respx_mock.get(REPO).respond(json={"default_branch": "main", "private": False, "clone_url": ""})
    for _ in range(2):
        with pytest.raises(Limited) as limit:
            github.read.issue("acme/widgets", 1)
        assert limit.value.at == RESET
    assert github.read.repository("acme/widgets").default_branch == "main"
    assert asked.call_count == 1


def test_a_limit_ends_and_concerns_one_account(limits: RateLimits, clock: Clock) -> None:
    def ask(account: str) -> str:
        with limits.guard(account, "graphql"):
            return "answered"

    with pytest.raises(Limited), limits.guard("acme", "graphql"):
        raise Limited("no more.", RESET)
    with pytest.raises(Limited):
        ask("acme")
    assert ask("globex") == "answered"
    clock.now = RESET
    assert ask("acme") == "answered"


def test_writes_of_one_account_keep_an_interval(
    limits: RateLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for account in ("acme", "acme", "globex", "acme"):
        limits.wait_turn(account, "core")
    assert slept == [0, 1, 0, 2]
    with pytest.raises(TryLater) as later:
        limits.wait_turn("acme", "core")
    assert later.value.at == NOW + timedelta(seconds=3)


def test_a_limit_reached_while_a_write_waits_holds_it_back(
    limits: RateLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(_: float) -> None:
        limits.hold("acme", Limited("no more.", RESET, "core"))

    monkeypatch.setattr(time, "sleep", meanwhile)
    limits.wait_turn("acme", "graphql")
    with pytest.raises(Limited):
        limits.wait_turn("acme", "core")


def test_deferred_writes_come_back_in_order(
    limits: RateLimits, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    for _ in range(3):
        limits.wait_turn("acme", "core")

    def back() -> float:
        with pytest.raises(TryLater) as away:
            limits.wait_turn("acme", "core")
        assert away.value.at is not None
        return (away.value.at - NOW).total_seconds()

    assert [back() for _ in range(3)] == [3, 4, 5]
    times = [back() for _ in range(1000)]
    assert max(times) == 33, "nobody is sent away for long"
    assert max(times.count(at) for at in set(times)) <= 1000 // 30 + 1, "nor are many at once"
    clock.now = NOW + timedelta(minutes=1)
    limits.wait_turn("acme", "core")


def test_only_writes_wait_for_their_turn(
    respx_mock: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[tuple[str, ...]] = []
    monkeypatch.setattr(RateLimits, "wait_turn", lambda _, *whose: turns.append(whose))
    respx_mock.get(REPO).respond(json={"default_branch": "main", "private": False, "clone_url": ""})
    respx_mock.post(GRAPHQL).mock(side_effect=_graphql)
    respx_mock.post(f"{REPO}/issues/comments/5/reactions").respond(201)
    respx_mock.get(f"{REPO}/pulls/1/comments").respond(json=[])
    github = GitHub(API, Credentials(token="s3cret"), clock=lambda: NOW)
    github.read.repository("acme/widgets")
    github.read.me()
    assert turns == []
    github.write.react("acme/widgets", 5, "eyes")
    github.reviews.reply("acme/widgets", 1, ["T_1"], "Done.", "key")
    assert turns == [("", "core"), ("", "graphql")]
    github.close()


def _graphql(request: httpx.Request) -> httpx.Response:
    if json.loads(request.content)["query"].startswith("mutation"):
        reply = {"addPullRequestReviewThreadReply": {"comment": {"id": "C_1"}}}
        return httpx.Response(200, json={"data": reply})
    return httpx.Response(200, json={"data": {"viewer": {"login": "wright"}}})


def test_spare_points_are_spread_until_the_reset() -> None:
    budget = PointBudget(cost=1, limit=5000, remaining=5000, reset_at=NOW + timedelta(hours=1))
    assert budget.spare == 3750
    assert budget.interval(NOW) == timedelta(hours=1) / 3750
    less = PointBudget(cost=2, limit=5000, remaining=1260, reset_at=NOW + timedelta(hours=1))
    assert (less.spare, less.interval(NOW)) == (10, timedelta(minutes=12))
    none = PointBudget(cost=1, limit=5000, remaining=1250, reset_at=NOW + timedelta(hours=1))
    assert (none.spare, none.interval(NOW)) == (0, timedelta(hours=1))


def test_the_point_budget_is_the_last_reported_until_the_reset(
    limits: RateLimits, clock: Clock
) -> None:
    assert limits.budget("acme") is None
    left = PointBudget(cost=1, limit=5000, remaining=9, reset_at=RESET)
    limits.record_points("acme", left)
    assert limits.budget("acme") == left
    clock.now = RESET
    assert limits.budget("acme") is None


def test_the_apps_own_limit_holds_its_requests_and_spaces_its_writes(
    respx_mock: respx.MockRouter, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    credentials = Credentials(app_id="7", private_key=PRIVATE)
    github = GitHub(API, credentials, clock=clock, write_interval_seconds=1.0)
    lost = DeliveryAttempt(id=1, guid="g", delivered_at=NOW, status_code=502)
    asked = respx_mock.post(f"{API}/app/hook/deliveries/1/attempts").respond(202)
    for _ in range(2):
        github.hook.redeliver(lost)
    assert (slept, asked.call_count) == ([0, 1], 2)
    clock.now += timedelta(minutes=1)
    asked.respond(403, json=SECONDARY, headers={"retry-after": "30"})
    waits: list[Callable[[], object]] = [
        lambda: github.hook.redeliver(lost),
        lambda: list(github.hook.failed_attempts(NOW)),
        lambda: github.read.repository("acme/widgets"),
        github.read.me,
    ]
    for wait in waits:
        with pytest.raises(Limited):
            wait()
    assert (asked.call_count, respx_mock.calls.call_count) == (3, 3)
    github.close()


def test_the_app_sends_nothing_after_its_last_request(
    respx_mock: respx.MockRouter, clock: Clock
) -> None:
    github = GitHub(API, Credentials(app_id="7", private_key=PRIVATE), clock=clock)
    respx_mock.get(f"{API}/app/hook/deliveries").respond(json=[], headers=USED_UP)
    assert list(github.hook.failed_attempts(NOW)) == []
    with pytest.raises(Limited) as limit:
        list(github.hook.failed_attempts(NOW))
    assert (limit.value.at, respx_mock.calls.call_count) == (RESET, 1)
    github.close()
