"""The outbox: actions are checked, carried out once, recorded, retried with pauses, or fail."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from bot.act.outbox import Attempts
from bot.act.results import ActionResult, Completed, FinalCheck, Rejected, RetryLater
from bot.store import DatedKind, DueAction, Receipt, StoreFull
from bot.store.outbox import add_repository_actions
from lifecycle.model import keys
from lifecycle.model.actions import CloseIssue, Comment, Prompt, SendMessage, Start
from lifecycle.model.facts import Facts, Sent
from lifecycle.model.key import Key, parse
from lifecycle.model.policy import Policy
from lifecycle.model.status import Reason
from tests.harness.outbox import OutboxBench
from tests.world.waiting import PATIENCE, eventually

CLOSE = CloseIssue(key=parse("close_issue"), number=12)


@pytest.fixture
def bench(scenario: Any) -> Iterator[OutboxBench]:
    made = OutboxBench(scenario)
    scenario.orders(scenario.session(), CLOSE)
    yield made
    made.workers.shutdown()


def facts(bench: OutboxBench) -> Facts:
    found: Facts = bench.scenario.store.facts.get("widgets-12")
    return found


def test_an_action_is_carried_out_recorded_and_announced(bench: OutboxBench) -> None:
    assert bench.drains() == 1
    assert CLOSE.key in facts(bench).done
    eventually(lambda: bench.wakes == 1, "word is given")
    assert bench.drains() == 0


def test_an_action_under_way_is_not_handed_out_again(bench: OutboxBench) -> None:
    go_on = threading.Event()
    bench.doing = lambda due, check: (go_on.wait(PATIENCE), Completed())[1]
    assert bench.outbox.drain() == 1
    assert bench.outbox.drain() == 0
    assert not bench.outbox.rest(0)
    go_on.set()
    assert bench.outbox.rest(5)
    assert bench.did == [CLOSE.key]


def test_no_more_actions_are_handed_out_than_workers_are_idle(bench: OutboxBench) -> None:
    go_on = threading.Event()
    bench.doing = lambda due, check: (go_on.wait(PATIENCE), Completed())[1]
    for number in range(13, 13 + 2 * bench.outbox.parallel):
        bench.scenario.orders(bench.scenario.session(number), CLOSE)
    assert [bench.outbox.drain() for _ in range(2)] == [bench.outbox.parallel, 0]
    go_on.set()
    assert bench.outbox.rest(5)
    assert bench.drains() == bench.outbox.parallel


def test_an_action_that_ends_while_due_actions_are_read_is_not_repeated(
    bench: OutboxBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    bench.doing = lambda due, check: (go_on.wait(PATIENCE), Completed())[1]
    bench.outbox.drain()
    due_actions = bench.scenario.store.outbox.due

    def slowly(now: Any) -> list[DueAction]:
        found: list[DueAction] = due_actions(now)
        go_on.set()
        assert bench.outbox.rest(5)
        return found

    monkeypatch.setattr(bench.scenario.store.outbox, "due", slowly)
    assert bench.outbox.drain() == 0
    assert bench.did == [CLOSE.key]


def test_a_bot_without_the_lease_does_nothing_and_does_not_spin(bench: OutboxBench) -> None:
    bench.may_act = False
    bench.drains()
    assert bench.did == []
    assert bench.wakes == 0
    assert CLOSE.key in facts(bench).pending


def test_nothing_takes_effect_while_results_cannot_be_recorded(
    bench: OutboxBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise StoreFull("no space is left")

    with monkeypatch.context() as patch:
        patch.setattr(bench.scenario.store.db, "write", full)
        patch.setattr("bot.store.database._RECENT_SECONDS", -1.0)
        bench.drains()
    assert bench.did == []
    assert bench.wakes == 0
    bench.drains()
    assert bench.did == [CLOSE.key]


def test_an_action_whose_result_was_not_recorded_is_repeated_after_a_pause(
    bench: OutboxBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(bench.scenario.store.outbox, "mark_done", broken)
        bench.drains()
    assert bench.drains() == 0
    bench.scenario.clock.passes(2)
    assert bench.drains() == 1
    assert CLOSE.key in facts(bench).done


@pytest.mark.parametrize("during_preparation", [False, True])
def test_an_unwanted_action_that_took_effect_before_a_crash_is_recorded_as_done(
    bench: OutboxBench, during_preparation: bool
) -> None:
    def prepares(due: DueAction, check: FinalCheck) -> ActionResult:
        bench.wanted = False
        return check() or Completed(result="pushed twice")

    bench.wanted, bench.doing = during_preparation, prepares
    bench.was_done = lambda due: Completed(result="pushed")  # type: ignore[method-assign]
    bench.drains()
    assert facts(bench).done[CLOSE.key].result == "pushed"


def test_a_message_that_is_not_sent_again_may_still_arrive(bench: OutboxBench) -> None:
    message = SendMessage(key=parse("fix_ci:x#1"), run=1, prompt=Prompt(name="fix_ci"))
    bench.drains()
    bench.scenario.orders("widgets-12", message)
    now = bench.scenario.clock()
    (due,) = bench.scenario.store.outbox.due(now)
    receipt = Receipt(sent=Sent(at=now, until=now, missing=True))
    bench.scenario.store.outbox.note(due.seq, receipt)
    bench.wanted = False
    bench.drains()
    assert facts(bench).sent == {message.key: receipt.sent}
    assert bench.drains() == 0


def test_an_action_whose_cause_ends_in_preparation_has_no_effect(
    bench: OutboxBench,
) -> None:
    effects: list[Key] = []

    def slowly(due: DueAction, check: FinalCheck) -> ActionResult:
        bench.wanted = False
        if stopped := check():
            return stopped
        effects.append(due.action.key)
        return Completed()

    bench.doing = slowly
    bench.drains()
    assert bench.did == [CLOSE.key]
    assert effects == []
    assert CLOSE.key not in facts(bench).pending | facts(bench).done.keys()


def test_a_bot_that_loses_the_lease_during_preparation_has_no_effect(bench: OutboxBench) -> None:
    def slowly(due: DueAction, check: FinalCheck) -> ActionResult:
        bench.may_act = False
        return check() or Completed()

    bench.doing = slowly
    bench.drains()
    assert CLOSE.key in facts(bench).pending


def test_a_frozen_action_waits_and_is_carried_out_soon_after_the_freeze(bench: OutboxBench) -> None:
    assert bench.scenario.store.freezes.add("", by="alice")
    bench.wanted = False  # Nothing is wanted during a freeze, which must not withdraw the action.
    for _ in range(5):
        assert bench.drains() == 1
        assert bench.drains() == 0
        bench.scenario.clock.passes(2)
    assert bench.did == []
    assert facts(bench).failures == {}
    assert CLOSE.key in facts(bench).pending
    bench.wanted = True
    bench.scenario.store.freezes.remove("", by="alice")
    assert bench.drains() == 1
    assert bench.did == [CLOSE.key]


def test_a_freeze_during_the_preparation_of_an_action_holds_it(bench: OutboxBench) -> None:
    effects: list[Key] = []

    def slowly(due: DueAction, check: FinalCheck) -> ActionResult:
        bench.scenario.store.freezes.add("", by="alice")
        if stopped := check():
            return stopped
        effects.append(due.action.key)
        return Completed()

    bench.doing = slowly
    bench.drains()
    assert effects == []
    assert CLOSE.key in facts(bench).pending


def test_a_failing_action_is_retried_with_growing_pauses_and_then_fails(
    bench: OutboxBench,
) -> None:
    def fails(due: DueAction, check: FinalCheck) -> ActionResult:
        return RetryLater("not now")

    bench.doing = fails
    for pause in (2, 4):
        assert bench.drains() == 1
        bench.scenario.clock.passes(pause - 1)
        assert bench.drains() == 0
        bench.scenario.clock.passes(1)
    assert bench.drains() == 1
    assert "tried 3 times" in facts(bench).failures[CLOSE.key].detail


def test_actions_survive_an_outage_of_an_hour(bench: OutboxBench) -> None:
    def fails(due: DueAction, check: FinalCheck) -> ActionResult:
        return RetryLater("GitHub answered 502", outage=True)

    bench.doing, begun = fails, bench.scenario.clock()
    while not facts(bench).failures:
        assert bench.drains() == 1
        bench.scenario.clock.passes(300)
    assert "GitHub answered 502" in facts(bench).failures[CLOSE.key].detail
    assert bench.scenario.clock() - begun > timedelta(hours=1)


def test_a_wait_that_github_asks_for_is_no_failed_attempt(bench: OutboxBench) -> None:
    def limited(due: DueAction, check: FinalCheck) -> ActionResult:
        return RetryLater(
            "the rate limit is used up", bench.scenario.clock() + timedelta(minutes=9)
        )

    bench.doing = limited
    for _ in range(5):
        assert bench.drains() == 1
        bench.scenario.clock.passes(539)
        assert bench.drains() == 0
        bench.scenario.clock.passes(1)
    (waiting,) = bench.scenario.store.outbox.of("widgets-12")
    assert (waiting.state, waiting.attempts, waiting.error) == (
        "due",
        0,
        "the rate limit is used up",
    )


def test_a_failing_start_is_retried_with_growing_pauses_and_fails_with_its_reason(
    bench: OutboxBench,
) -> None:
    def fails(due: DueAction, check: FinalCheck) -> ActionResult:
        return RetryLater("the tmux server does not answer")

    bench.drains()
    bench.scenario.orders(
        "widgets-12", Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="x"))
    )
    bench.doing, waits = fails, list[float]()
    for _ in range(2):
        assert bench.drains() == 1
        later = [
            each.next_at for each in bench.scenario.store.outbox.of("widgets-12") if each.next_at
        ]
        waits.append((later[0] - bench.scenario.clock()).total_seconds())
        assert bench.drains() == 0, "not before"
        bench.scenario.clock.passes(waits[-1])
    assert waits[1] == 2 * waits[0] > 0
    bench.drains()
    failure = facts(bench).failures[parse("start:first#1")]
    assert failure.reason is Reason.SPAWN_FAILED
    assert failure.detail == "the tmux server does not answer (tried 3 times)"
    bench.scenario.clock.passes(86_400)
    assert bench.drains() == 0, "never again by itself"


@pytest.mark.parametrize(
    ("own_reason", "reason"),
    [(None, Reason.SPAWN_FAILED), (Reason.BRANCH_GONE, Reason.BRANCH_GONE)],
)
def test_a_rejected_start_fails_at_once_with_its_own_reason_or_the_one_of_all_starts(
    bench: OutboxBench, own_reason: Reason | None, reason: Reason
) -> None:
    def refuses(due: DueAction, check: FinalCheck) -> ActionResult:
        return Rejected("the branch is gone", own_reason)

    bench.drains()
    bench.scenario.orders(
        "widgets-12", Start(key=parse("start:first#2"), run=2, prompt=Prompt(name="x"))
    )
    bench.doing = refuses
    bench.drains()
    failure = facts(bench).failures[parse("start:first#2")]
    assert failure.reason is reason
    assert failure.detail == "the branch is gone"


def test_a_start_has_three_attempts_by_default(bench: OutboxBench) -> None:
    attempts = Attempts(most=8, first_seconds=1, starts=lambda _: Policy().start_tries)
    bench.outbox = bench.with_attempts(attempts)
    start = Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    bench.scenario.orders(bench.scenario.session(13), start)

    def doing(due: DueAction, check: FinalCheck) -> ActionResult:
        raise ValueError("broken")

    bench.doing = doing
    for _ in range(5):
        bench.drains()
        bench.scenario.clock.passes(600)
    assert bench.did.count(start.key) == 3
    assert bench.scenario.store.facts.get("widgets-13").failures.keys() == {start.key}


def without_session(bench: OutboxBench, comment: str = "7") -> Key:
    """Order a reply that belongs to no session."""
    bench.drains()
    bench.did.clear()
    key = keys.reply_without_session("no_session", comment)
    answer = Comment(key=key, number=13, topic="no_session", values={})
    now = bench.scenario.clock()
    for _ in range(2):
        bench.scenario.store.db.write(
            lambda connection: add_repository_actions(connection, "acme/widgets", [answer], now)
        )
    return answer.key


def test_an_action_without_a_session_is_carried_out_once(bench: OutboxBench) -> None:
    key = without_session(bench)
    bench.wanted = False  # Only actions of sessions are judged.
    assert (bench.drains(), bench.drains(), bench.did) == (1, 0, [key])


def test_an_action_without_a_session_waits_for_the_lease(bench: OutboxBench) -> None:
    key = without_session(bench)
    bench.may_act = False
    bench.drains()
    assert bench.did == []
    bench.may_act = True
    bench.drains()
    assert bench.did == [key]


def test_an_action_without_a_session_is_withdrawn_from_a_silenced_repository(
    bench: OutboxBench,
) -> None:
    without_session(bench)
    bench.silenced = True
    bench.drains()
    bench.silenced = False
    assert (bench.drains(), bench.did) == (0, [])


def test_a_failed_action_without_a_session_is_an_incident_until_another_succeeds(
    bench: OutboxBench,
) -> None:
    incidents = bench.scenario.store.incidents
    bench.doing = lambda due, check: Rejected("GitHub answered 403")
    without_session(bench)
    bench.drains()
    (incident,) = incidents.current()
    assert "acme/widgets: a reply on #13 could not be posted: GitHub answered 403" in incident.text
    bench.doing = lambda due, check: Completed()
    without_session(bench, comment="8")
    bench.drains()
    assert incidents.current() == []


def test_an_action_without_a_session_is_retried_and_forgotten_with_old_deliveries(
    bench: OutboxBench,
) -> None:
    key = without_session(bench)
    bench.doing = lambda due, check: RetryLater("an outage")
    bench.drains()
    bench.doing = lambda due, check: Completed()
    assert bench.drains() == 0
    bench.scenario.clock.passes(2)
    assert (bench.drains(), bench.did) == (1, [key, key])
    bench.scenario.store.expiry.delete_dated(DatedKind.ACTIONS, bench.scenario.clock())
    without_session(bench)
    assert bench.drains() == 0
    bench.scenario.clock.passes(1)
    bench.scenario.store.expiry.delete_dated(DatedKind.ACTIONS, bench.scenario.clock())
    without_session(bench)
    assert bench.drains() == 1
