"""Messages that were sent and await their receipt, in every combination."""

from collections.abc import Callable
from datetime import timedelta
from functools import cache
from itertools import takewhile
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.decide import Decision, decide
from lifecycle.model import keys
from lifecycle.model.actions import SendMessage
from lifecycle.model.facts import Command, Facts, Failure, Sent
from lifecycle.model.key import Key, parse
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity, Probe, Reason
from lifecycle.read.availability import Availability
from tests.lifecycle.future import continues, future, notifies
from tests.lifecycle.troubles import every_session
from tests.lifecycle.universe import NOW, agent, ago, done, ended, facts

HOUR = timedelta(hours=1)
POLICY = Policy()
AWAITED = Sent(at=ago(3), until=NOW + timedelta(seconds=5))
#: Nobody could look for it since it was expected.
EXPIRED = Sent(at=ago(100), until=ago(POLICY.recent_activity_seconds))
MISSING = Sent(at=ago(20), until=ago(10), missing=True)
#: A person answers what the agent asks.
ANSWERED = facts(
    agent=agent(Activity.WAITING_INPUT, question="May I?"),
    commands=(Command(key="comment:9", kind="answer", actor="alice", at=ago(5), text="yes"),),
)


FAILED = Failure(at=NOW, reason=Reason.ACTION_FAILED, detail="no")
GONE: dict[str, Any] = {"runtime": Probe.DEAD, "program": Probe.DEAD}
PARKED = parse("park:work#1")
#: What may become of a message and of the agent it was for.
FATES: dict[str, Callable[[Facts, Key], Facts]] = {
    "its receipt never comes": lambda one, key: replace(one, sent={key: AWAITED}),
    "it is missing": lambda one, key: replace(one, sent={key: MISSING}),
    "it failed": lambda one, key: replace(one, failures={**one.failures, key: FAILED}),
    "the program exits": lambda one, key: given(one, key, agent=ended(0, 0)),
    "the program crashes": lambda one, key: given(one, key, agent=ended(1, 0)),
    "the program is killed": lambda one, key: given(one, key, agent=ended(None, 0)),
    "tmux is killed": lambda one, key: given(one, key, agent=agent(seconds_ago=0, **GONE)),
    "the bot stops it": lambda one, key: given(one, key, PARKED, agent=ended(None, 0)),
}


def given(session: Facts, *keys: Key, **fields: Any) -> Facts:
    """The same facts after these actions were recorded as done now."""
    return replace(session, done={**session.done, **done(*keys, seconds_ago=0)}, **fields)


@cache
def judged() -> list[tuple[Facts, Decision]]:
    return [(session, decide(session, POLICY, NOW)) for session in every_session()]


def sent(session: Facts, decision: Decision, as_is: Sent) -> Facts:
    """The same facts with one sent message: the decision's first, or else a made-up one."""
    wanted = [action.key for action in decision.actions if isinstance(action, SendMessage)]
    key = wanted[0] if wanted else keys.forward("x").of_run(session.run)
    return replace(session, sent={key: as_is})


@cache
def with_messages() -> list[tuple[Facts, Decision]]:
    """The combinations in which something is sent to the agent."""
    found = [
        (session, decision)
        for session, decision in judged()
        if any(isinstance(action, SendMessage) for action in decision.actions)
    ]
    assert len(found) > 100
    return found


def test_no_message_is_sent_while_another_awaits_its_receipt() -> None:
    waiting = 0
    for session, decision in [*with_messages(), (ANSWERED, decide(ANSWERED, POLICY, NOW))]:
        another = replace(session, sent={keys.forward("x").of_run(session.run): AWAITED})
        later = decide(another, POLICY, NOW)
        assert not [action for action in later.actions if isinstance(action, SendMessage)], session
        waiting += decision.signals.availability is Availability.WAITING
    assert waiting


def test_a_resting_agent_counts_as_active_while_a_message_awaits_its_receipt() -> None:
    for session, decision in judged():
        if decision.signals.availability is Availability.IDLE:
            later = decide(sent(session, decision, AWAITED), POLICY, NOW)
            assert later.signals.availability is Availability.ACTIVE, session


def test_a_missing_message_counts_as_not_sent() -> None:
    """So the reaction that asked for it asks for it again, if its cause is still there."""
    for session, decision in judged():
        assert decide(sent(session, decision, MISSING), POLICY, NOW) == decision, session


def test_the_wait_for_a_receipt_ends_although_probes_fail() -> None:
    for session, decision in with_messages():
        waiting = decide(sent(session, decision, AWAITED), POLICY, NOW)
        latest = AWAITED.until + timedelta(seconds=POLICY.recent_activity_seconds)
        assert waiting.recheck_at, session
        assert waiting.recheck_at <= latest, session
        assert decide(sent(session, decision, EXPIRED), POLICY, NOW) == decision, session


def test_a_receipt_of_an_earlier_run_is_not_awaited() -> None:
    for session, decision in with_messages():
        earlier = replace(session, sent={keys.fix_ci("x", []).of_run(session.run - 1): AWAITED})
        assert decide(earlier, POLICY, NOW) == decision, session


@pytest.mark.parametrize("slot", [True, False])
@pytest.mark.parametrize("fate", FATES)
def test_a_request_that_got_lost_is_repeated_or_a_person_notified_within_an_hour(
    fate: str, slot: bool
) -> None:
    """The bot messages the agent, starts a run, merges the pull request, or notifies people.

    Without a slot, the session cannot start a run; then it is enough that it asks for a slot.
    """
    messages = {}
    for session, decision in with_messages():
        (key, *_) = [one.key for one in decision.actions if isinstance(one, SendMessage)]
        messages[decision.signals, key.kind] = session, key
    assert len(messages) > 100
    for session, key in messages.values():
        after = replace(FATES[fate](session, key), slot=slot)
        soon = takewhile(lambda one: one[0] < NOW + HOUR, future(after, POLICY))
        assert any(is_due(found) for _, found in soon), (session, fate)


def is_due(decision: Decision) -> bool:
    sends = any(isinstance(action, SendMessage) for action in decision.actions)
    return sends or continues(decision) or notifies(decision) or decision.wants_slot
