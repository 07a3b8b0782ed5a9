"""An ordered action is judged again before it takes effect, and only if something has changed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from bot.act.dispatch import ActionDispatcher
from bot.act.outages import Outages
from bot.act.outbox import Attempts, Outbox
from bot.act.results import ActionResult, Completed, FinalCheck
from bot.decide import reconciler
from bot.decide.reconciler import Reconciler
from bot.store import DueAction, LoadedSession
from bot.system.crash_points import log_crash_point
from lifecycle.decide import Decision, decide
from lifecycle.model.actions import Action, Comment, PressKeys, Prompt, Start, Stop
from lifecycle.model.facts import Agent, Ended, Facts, Frozen
from lifecycle.model.key import KeyKind, parse
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import CheckState, Reason, Status
from tests.lifecycle.universe import NOW, ago, check, command, facts, published, pull

START = Start(key=parse("start:resume#2"), run=2, prompt=Prompt(name="resume"))
ANSWER = Comment(key=parse("command_applied:comment:pause"), number=12, topic="answer")
POLICY = Policy()
ENDED = Ended(status=Status.KILLED, reason=Reason.MANUALLY_KILLED, because="", at=NOW)
STARTING = facts(run=2, pending=frozenset({START.key}))


def wanted(
    given: Facts, action: Action, policy: Policy = POLICY, *, is_project: bool = True
) -> bool | None:
    loaded = LoadedSession(session="widgets-12", version=1, facts=given)
    store: Any = SimpleNamespace(facts=SimpleNamespace(load=lambda _: [loaded]))
    reconciler = Reconciler(
        *(store, lambda _: policy, lambda: NOW, log_crash_point, lambda: None),
        is_project=lambda _: is_project,
    )
    return reconciler.still_wanted("widgets-12", action)


@pytest.mark.parametrize("kind", ["pause", "stop"])
def test_a_start_is_wanted_until_a_person_holds_or_ends_the_session(kind: str) -> None:
    assert wanted(STARTING, START)
    assert not wanted(replace(STARTING, commands=(command(kind),)), START)


def test_a_start_is_not_wanted_once_its_budget_is_used_up() -> None:
    first = replace(
        facts(run=1, agent=Agent()), done={}, pending=frozenset({parse("start:first#1")})
    )
    start = Start(key=parse("start:first#1"), run=1, prompt=Prompt(name="start"))
    assert wanted(first, start)
    spent = replace(first.spent_today, cost_usd=25.0)
    assert not wanted(replace(first, spent_today=spent), start)


def test_a_reply_to_a_command_is_posted_whatever_has_changed_since() -> None:
    assert wanted(facts(), ANSWER)
    assert not wanted(facts(), replace(ANSWER, topic="attention"))


def test_a_stop_is_wanted_while_its_session_is_paused() -> None:
    stop = Stop(key=parse("park:rest#1"), run=1)
    paused = facts(commands=(command("pause"),), pending=frozenset({stop.key}))
    assert wanted(paused, stop)
    assert not wanted(replace(paused, commands=()), stop)


def test_nothing_of_a_frozen_session_takes_effect() -> None:
    assert wanted(replace(STARTING, frozen=Frozen(scope="all", by="ada", at=ago(1))), START) is None


@pytest.mark.parametrize(("given", "action"), [(STARTING, START), (facts(), ANSWER)])
def test_nothing_takes_effect_once_the_bot_only_observes(given: Facts, action: Action) -> None:
    assert wanted(given, action)
    assert wanted(given, action, Policy(mode=Mode.OBSERVE)) is False


KEYS = PressKeys(key=parse("press_keys:page#1"), run=1, by="ada", at=NOW, count=1, keys=("y",))
RUNNING = facts(run=1)


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        (replace(RUNNING, run=2), POLICY),
        (replace(RUNNING, removed=True), POLICY),
        (replace(RUNNING, ended=ENDED), POLICY),
        (replace(RUNNING, frozen=Frozen(scope="all", by="ada", at=ago(1))), POLICY),
        (replace(RUNNING, commands=(command("freeze"),)), POLICY),
        (RUNNING, Policy(mode=Mode.OBSERVE)),
    ],
)
def test_what_a_person_typed_is_dropped_once_its_run_is_over_or_frozen(
    given: Facts, policy: Policy
) -> None:
    assert wanted(RUNNING, KEYS) is True
    assert wanted(given, KEYS, policy, is_project=not given.removed) is False


# -- number of decisions ---------------------------------------------------------------------------

RED = published(pulls=(pull(checks=(check(CheckState.FAILED, log="boom"),)),))


class RedCheck:
    """A session whose check fails: records that fact, decides, and sends the agent the message."""

    def __init__(self, scenario: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scenario = scenario
        self.red = True
        self.policy = Policy()
        self.recheck_at: datetime | None = None
        self.decisions = 0
        self.meanwhile: Callable[[], object] = lambda: None  #: Just before the message is sent.
        self.sent = 0
        monkeypatch.setattr(reconciler, "decide", self._decide)
        self.reconciler = Reconciler(
            scenario.store, lambda _: self.policy, scenario.clock, log_crash_point, lambda: None
        )
        self.name: str = scenario.session()

    def _decide(self, given: Facts, policy: Policy, now: datetime) -> Decision:
        """Decide as if the check had failed, unless `red` is false.

        Of the stored facts, only the pending actions count.
        """
        self.decisions += 1
        world = replace(RED if self.red else published(), pending=given.pending, done=RED.done)
        decision = decide(world, policy, NOW)
        messages = tuple(a for a in decision.actions if a.key.kind is KeyKind.FIX_CI)
        return replace(decision, actions=messages, recheck_at=self.recheck_at)

    def goes_to_the_agent(self) -> None:
        """Reconcile, and run the outbox."""
        self.reconciler.reconcile([self.name])
        with ThreadPoolExecutor(1) as workers:
            store, dispatcher = self.scenario.store, cast(ActionDispatcher, self)
            outbox = Outbox(
                store.outbox,
                store.incidents,
                Outages(
                    *(store.incidents, store.path.parent, self.scenario.clock, workers),
                    lambda: True,
                ),
                store.writable,
                self.reconciler.still_wanted,
                lambda _: False,
                dispatcher,
                workers,
                Attempts(most=3, first_seconds=1, starts=lambda _: 3),
                self.scenario.clock,
                log_crash_point,
                lambda: True,
                lambda: None,
            )
            assert outbox.drain() == 1
            assert outbox.rest(5)

    def was_done(self, due: DueAction) -> Completed | None:
        return None

    def do(self, due: DueAction, check: FinalCheck) -> ActionResult:
        self.meanwhile()
        if stopped := check():
            return stopped
        self.sent += 1
        return Completed()


@pytest.fixture
def red_check(scenario: Any, monkeypatch: pytest.MonkeyPatch) -> RedCheck:
    return RedCheck(scenario, monkeypatch)


def test_one_decision_brings_a_red_check_to_the_agent(red_check: RedCheck) -> None:
    red_check.goes_to_the_agent()
    assert (red_check.sent, red_check.decisions) == (1, 1)


def test_a_fact_that_changes_before_the_message_is_sent_is_decided_on(red_check: RedCheck) -> None:
    def turns_green() -> None:
        red_check.red = False
        red_check.scenario.store.sessions.wake(red_check.name)

    red_check.meanwhile = turns_green
    red_check.goes_to_the_agent()
    assert (red_check.sent, red_check.decisions) == (0, 2)


def test_a_policy_that_changes_before_the_message_is_sent_is_decided_on(
    red_check: RedCheck,
) -> None:
    red_check.meanwhile = lambda: setattr(red_check, "policy", Policy(mode=Mode.OBSERVE))
    red_check.goes_to_the_agent()
    assert (red_check.sent, red_check.decisions) == (0, 2)


def test_a_freeze_that_comes_before_the_message_is_sent_holds_it(red_check: RedCheck) -> None:
    red_check.meanwhile = lambda: red_check.scenario.store.freezes.add("", by="alice")
    red_check.goes_to_the_agent()
    assert red_check.sent == 0
    assert red_check.scenario.store.facts.get(red_check.name).pending


def test_a_decision_is_valid_until_its_recheck(
    red_check: RedCheck,
) -> None:
    red_check.recheck_at = red_check.scenario.clock() + timedelta(seconds=60)
    red_check.meanwhile = lambda: red_check.scenario.clock.passes(60)
    red_check.goes_to_the_agent()
    assert (red_check.sent, red_check.decisions) == (1, 2)
