"""Sending messages to an agent at its terminal, and their receipts."""

import pytest

from bot.act.results import AwaitingReceipt, Rejected, RetryLater, Withdrawn
from lifecycle.model import keys
from lifecycle.model.actions import Stop
from lifecycle.model.status import Activity, Reason
from tests.harness.site import Site
from tests.harness.terminal import MESSAGE, Terminal


@pytest.fixture
def terminal(site: Site, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(site, monkeypatch)


def mark(terminal: Terminal) -> str:
    return keys.visible(terminal.site.id, MESSAGE.key)


def test_a_message_is_done_once_the_agent_has_read_it(terminal: Terminal) -> None:
    assert isinstance(terminal.is_sent(), AwaitingReceipt)
    assert len(terminal.typed) == 1
    terminal.is_looked_at()
    assert MESSAGE.key not in terminal.facts.done
    terminal.arrived.add(mark(terminal))
    terminal.is_looked_at(1)
    assert MESSAGE.key in terminal.facts.done


def test_a_message_that_does_not_arrive_is_sent_three_times_and_then_fails(
    terminal: Terminal,
) -> None:
    for attempt in (1, 2, 3):
        assert isinstance(terminal.is_sent(), AwaitingReceipt)
        assert len(terminal.typed) == attempt
        terminal.site.scenario.clock.passes(7)
        terminal.is_looked_at()
        assert not terminal.facts.sent[MESSAGE.key].missing
        terminal.is_given_up_waiting_for()
        assert terminal.facts.sent[MESSAGE.key].missing
    terminal.site.runtime.prints(terminal.name, "one\n\n  two  words\n")
    result = terminal.is_sent()
    assert isinstance(result, Rejected)
    assert f"{mark(terminal)} was sent 3 times and did not reach the agent" in result.why
    assert result.why.endswith("the agent's screen ends with: one | two words")
    assert len(terminal.typed) == 3


def test_a_message_that_failed_is_typed_again_when_a_person_retries(terminal: Terminal) -> None:
    for _ in range(3):
        terminal.is_sent()
        terminal.is_given_up_waiting_for()
    assert isinstance(terminal.is_sent(), Rejected)
    store, now = terminal.site.scenario.store, terminal.site.scenario.clock()
    (due,) = store.outbox.due(now)
    store.outbox.mark_failed(due.seq, Reason.ACTION_FAILED, "it did not show up", now)
    assert isinstance(terminal.is_sent(), AwaitingReceipt)
    assert len(terminal.typed) == 4


def test_a_message_that_arrives_late_is_not_sent_again(terminal: Terminal) -> None:
    terminal.is_sent()
    terminal.is_given_up_waiting_for()
    terminal.is_ordered(MESSAGE)
    terminal.arrived.add(mark(terminal))
    terminal.is_swept()
    assert MESSAGE.key in terminal.facts.done
    assert terminal.site.scenario.store.outbox.due(terminal.site.scenario.clock()) == []


def test_a_message_that_a_crash_left_unrecorded_is_not_pasted_twice(terminal: Terminal) -> None:
    terminal.is_ordered(MESSAGE)
    terminal.crashes_after_sending()
    terminal.is_carried_out()
    assert len(terminal.typed) == 1
    terminal.is_given_up_waiting_for()
    terminal.is_sent()
    assert len(terminal.typed) == 2, "the next attempt has its own key"


def test_a_stop_does_not_wait_for_a_message_that_nobody_reads(terminal: Terminal) -> None:
    terminal.is_sent()
    stop = Stop(key=keys.stop(1), run=1)
    terminal.site.scenario.orders(terminal.site.id, stop)
    (due,) = terminal.site.scenario.store.outbox.due(terminal.site.scenario.clock())
    assert due.action == stop


def test_a_message_waits_for_text_that_somebody_types(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.site.runtime.prints(terminal.name, "one")
    monkeypatch.setattr(
        terminal.site.program, "unsent_text", lambda screen: f"typed below {screen[:3]}"
    )
    result = terminal.is_sent()
    assert isinstance(result, RetryLater)
    assert "holds unsent text" in result.why
    assert result.why.endswith(": typed below one")
    assert terminal.typed == []


def test_a_message_is_not_pasted_into_a_dialog_that_was_observed(terminal: Terminal) -> None:
    terminal.asks = "May I?"
    terminal.is_seen(Activity.WAITING_INPUT)
    assert isinstance(terminal.is_sent(), Withdrawn)
    assert terminal.typed == []


def test_a_message_is_not_pasted_into_a_dialog_that_opened_a_moment_ago(
    terminal: Terminal,
) -> None:
    terminal.asks = "May I?"
    assert isinstance(terminal.is_sent(), RetryLater)
    assert terminal.typed == []
