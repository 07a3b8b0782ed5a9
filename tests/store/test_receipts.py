"""Messages that were sent, and what is known of their arrival."""

from datetime import timedelta

import pytest

from bot.store import AwaitedReceipt, DueAction, Observation, Receipt, Store
from lifecycle.model import keys
from lifecycle.model.actions import CloseIssue, Prompt, SendMessage
from lifecycle.model.facts import Agent, Sent
from lifecycle.model.status import Activity
from tests.store.conftest import Scenario

KEY, COVERED = keys.fix_ci("x", []).of_run(1), keys.remark("5").of_run(1)
MESSAGE = SendMessage(key=KEY, run=1, prompt=Prompt(name="fix_ci"), covers=(COVERED,))


@pytest.fixture
def name(scenario: Scenario) -> str:
    """A session with a message to send to its first run."""
    name = scenario.session(12)
    scenario.decides(name, MESSAGE)
    return name


def send(scenario: Scenario, due: DueAction) -> Receipt:
    receipt = Receipt(sent=Sent(at=scenario.now, until=scenario.now + timedelta(seconds=8)))
    scenario.store.outbox.mark_sent(due.seq, receipt)
    return receipt


def observe(scenario: Scenario, **seen: tuple[int, ...]) -> None:
    scenario.store.observations.record([Observation(session="widgets-12", **seen)], scenario.now)  # type: ignore[arg-type]


def test_a_message_that_was_sent_is_neither_due_nor_done_before_it_arrived(
    scenario: Scenario, store: Store, name: str
) -> None:
    (due,) = store.outbox.due(scenario.now)
    receipt = send(scenario, due)
    facts = store.facts.get(name)
    assert facts.sent == {MESSAGE.key: receipt.sent}
    assert not facts.pending
    assert not facts.done
    assert store.outbox.due(scenario.now) == []
    assert [entry.state for entry in store.outbox.of(name)] == ["sent"]
    assert store.outbox.awaited() == [
        AwaitedReceipt(
            seq=due.seq, session=name, key=MESSAGE.key, run=1, sent=True, receipt=receipt
        )
    ]


def test_a_message_counts_from_when_it_was_sent_together_with_all_it_covers(
    scenario: Scenario, store: Store, name: str
) -> None:
    (due,) = store.outbox.due(scenario.now)
    send(scenario, due)
    sent_at = scenario.now
    scenario.clock.passes(3)
    agent = Agent(run=1, since=sent_at + timedelta(seconds=1))
    seen = Observation(session=name, run=1, agent=agent, received=(due.seq,))
    store.observations.record([seen], scenario.now)
    done = store.facts.get(name).done
    assert {key: one.at for key, one in done.items()} == {
        MESSAGE.key: sent_at,
        COVERED: sent_at,
    }
    assert store.outbox.awaited() == []
    assert name in store.sessions.due(scenario.now, 9)


def test_a_message_counts_from_its_receipt_if_nothing_is_known_of_the_agent_since(
    scenario: Scenario, store: Store, name: str
) -> None:
    (due,) = store.outbox.due(scenario.now)
    send(scenario, due)
    scenario.clock.passes(3)
    observe(scenario, received=(due.seq,))
    assert store.facts.get(name).done[MESSAGE.key].at == scenario.now


def test_a_message_that_is_missing_is_a_fact_once(
    scenario: Scenario, store: Store, name: str
) -> None:
    (due,) = store.outbox.due(scenario.now)
    send(scenario, due)
    scenario.decides(name)
    observe(scenario, missing=(due.seq,))
    assert store.facts.get(name).sent[MESSAGE.key].missing
    assert name in store.sessions.due(scenario.now, 9)
    scenario.decides(name)
    observe(scenario, missing=(due.seq,))
    assert name not in store.sessions.due(scenario.now, 9)


def test_a_message_that_is_ordered_again_knows_how_often_it_was_sent(
    scenario: Scenario, store: Store, name: str
) -> None:
    (due,) = store.outbox.due(scenario.now)
    receipt = send(scenario, due)
    assert scenario.decides(name, MESSAGE) == [str(MESSAGE.key)]
    (again,) = store.outbox.due(scenario.now)
    assert again.receipt == receipt
    observe(scenario, received=(again.seq,))
    assert store.outbox.due(scenario.now) == [], "it arrived late"


def test_the_next_step_of_an_answer_is_due_at_once(
    scenario: Scenario, store: Store, name: str
) -> None:
    (due,) = store.outbox.due(scenario.now)
    send(scenario, due)
    observe(scenario, advanced=(due.seq,))
    assert [one.seq for one in store.outbox.due(scenario.now)] == [due.seq]


def test_a_message_that_a_crash_left_unrecorded_is_recognised_where_it_arrived(
    scenario: Scenario, store: Store, name: str
) -> None:
    (awaited,) = store.outbox.awaited()
    assert awaited.receipt is None
    agent = Agent(run=1, activity=Activity.ACTIVE)
    seen = Observation(session=name, run=1, agent=agent, received=(awaited.seq,))
    store.observations.record([seen], scenario.now)
    facts = store.facts.get(name)
    assert facts.done[MESSAGE.key].at == scenario.now
    assert facts.agent == agent


def test_only_messages_to_the_current_run_await_a_receipt(
    scenario: Scenario, store: Store, name: str
) -> None:
    scenario.decides(name, CloseIssue(key=keys.close_issue(), number=12))
    assert len(store.outbox.awaited()) == 1
    (due,) = store.outbox.due(scenario.now)
    send(scenario, due)
    scenario.decides(name, run=2)
    assert store.outbox.awaited() == []
