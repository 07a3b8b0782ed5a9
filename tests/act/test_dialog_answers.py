"""Giving a person's answer to an agent that asks in a dialog."""

from typing import Any

import pytest

from bot.act.results import AwaitingReceipt, Completed, Held, Rejected, RetryLater, Withdrawn
from lifecycle.model.status import Activity
from lifecycle.react.messages import REFUSED
from runtimes.agents.shared.dialogs import AnswerStep, numbered_dialog
from tests.harness.site import Site
from tests.harness.terminal import Terminal


@pytest.fixture
def terminal(site: Site, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    terminal = Terminal(site, monkeypatch)
    terminal.asks = "May I?"
    terminal.is_seen(Activity.WAITING_INPUT)
    return terminal


def test_a_choice_is_pressed_and_an_answer_in_own_words_is_typed(terminal: Terminal) -> None:
    terminal.meanwhile = terminal.goes_on
    terminal.is_answered(terminal.answer("no"))
    assert terminal.typed == ["2"]
    terminal.asks = "Which?"
    terminal.is_answered(terminal.answer("The blue one", command=2))
    assert terminal.typed == ["2", "3", "The blue one"]


def test_an_answer_is_not_given_while_everything_is_frozen(terminal: Terminal) -> None:
    assert terminal.is_sent(terminal.answer("yes"), Held) == Held()
    assert terminal.typed == []


def test_an_answer_over_http_is_not_typed(terminal: Terminal) -> None:
    terminal.steps = [AnswerStep(request=terminal.takes_a_step)]
    terminal.is_answered(terminal.answer("The blue one"))
    assert (terminal.steps, terminal.typed) == ([], [])


def test_messages_from_before_a_question_do_not_answer_it(terminal: Terminal) -> None:
    result = terminal.is_sent(terminal.answer("yes", seconds_ago=60))
    assert result == Completed(result=REFUSED)
    assert terminal.typed == []


def test_an_answer_that_is_none_of_the_choices_is_refused(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices = numbered_dialog("May I?", ("Yes", "No"))
    monkeypatch.setattr(terminal.site.program, "dialog", lambda *_: choices)
    assert terminal.is_sent(terminal.answer("perhaps")) == Completed(result=REFUSED)
    assert terminal.typed == []


def test_an_answer_without_effect_is_given_three_times_to_the_same_dialog(
    terminal: Terminal,
) -> None:
    answer = terminal.answer("yes")
    for attempt in (1, 2, 3):
        assert isinstance(terminal.is_sent(answer), AwaitingReceipt)
        assert terminal.typed == ["1"] * attempt
        terminal.is_given_up_waiting_for()
        assert terminal.facts.sent[answer.key].missing
    why = "the agent still asks the same question after 3 answers"
    assert terminal.is_sent(answer) == Rejected(why)
    assert terminal.typed == ["1"] * 3


def test_an_answer_that_is_ordered_again_is_given_to_no_other_dialog(terminal: Terminal) -> None:
    answer = terminal.answer("yes")
    terminal.is_sent(answer)
    terminal.is_given_up_waiting_for()
    terminal.asks = "May I do something else?"
    assert terminal.is_sent(answer) == Completed(result="received")
    assert terminal.typed == ["1"]


def test_an_answer_is_refused_if_the_dialog_closes_just_before_it_is_given(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = terminal.site.locations.host.runs
    give = runs.answer

    def too_late(*given: Any) -> bool:
        terminal.asks = "May I do something else?"
        return give(*given)

    monkeypatch.setattr(runs, "answer", too_late)
    assert terminal.is_sent(terminal.answer("yes")) == Completed(result=REFUSED)
    assert terminal.typed == []


def test_an_answer_that_a_crash_left_unrecorded_is_not_given_twice(terminal: Terminal) -> None:
    answer = terminal.answer("yes")
    terminal.is_ordered(answer)
    terminal.crashes_after_sending()
    terminal.is_swept()
    assert answer.key not in terminal.facts.done, "the agent still asks the same"
    assert isinstance(terminal.is_carried_out(), AwaitingReceipt)
    assert terminal.typed == ["1"]


def test_an_answer_that_a_crash_left_unrecorded_is_known_by_the_dialog_being_gone(
    terminal: Terminal,
) -> None:
    answer = terminal.answer("yes")
    terminal.is_ordered(answer)
    terminal.meanwhile = terminal.goes_on
    terminal.crashes_after_sending()
    for _ in range(2):
        terminal.is_swept()
    assert answer.key in terminal.facts.done
    assert terminal.typed == ["1"]


def test_an_answer_is_withdrawn_when_the_agent_does_not_ask_any_more(terminal: Terminal) -> None:
    terminal.is_seen(Activity.ACTIVE)
    assert isinstance(terminal.is_sent(terminal.answer("yes")), Withdrawn)
    assert terminal.typed == []


def test_an_unknown_dialog_is_left_to_people(terminal: Terminal) -> None:
    terminal.goes_on()
    result = terminal.is_sent(terminal.answer("yes"))
    assert isinstance(result, RetryLater)
    assert "at its terminal" in result.why
    assert terminal.typed == []


def test_an_answer_in_several_steps_continues_where_a_crash_left_it(terminal: Terminal) -> None:
    answer = terminal.answer("1\n2")
    terminal.steps = [AnswerStep(keys=("Down",)), AnswerStep(keys=("Enter",))]
    terminal.meanwhile = terminal.takes_a_step
    terminal.is_ordered(answer)
    terminal.crashes_after_sending()
    terminal.is_answered(answer)
    assert terminal.typed == ["Down", "Enter"]


def test_an_answer_whose_next_step_is_not_accepted_is_left_to_people(terminal: Terminal) -> None:
    answer = terminal.answer("1\n2")
    terminal.steps = [AnswerStep(keys=("1",)), None]
    terminal.meanwhile = terminal.takes_a_step
    terminal.is_sent(answer)
    terminal.is_looked_at()
    refusal = Rejected("the rest of this answer can only be given at the agent's terminal")
    assert terminal.is_carried_out() == refusal
    assert terminal.typed == ["1"]


def test_a_screen_that_is_being_drawn_does_not_look_like_the_end_of_a_dialog(
    terminal: Terminal,
) -> None:
    terminal.steps = [AnswerStep(keys=("1",)), AnswerStep(keys=("2",))]

    def blinks() -> None:
        terminal.takes_a_step()
        terminal.blinking = True

    terminal.meanwhile = blinks
    terminal.is_answered(terminal.answer("1\n2"))
    assert terminal.typed == ["1", "2"]


def test_while_the_screen_cannot_be_read_no_answer_counts_as_given(terminal: Terminal) -> None:
    answer = terminal.answer("yes")
    terminal.is_sent(answer)
    unreadable: Any = lambda handles: {}  # noqa: E731
    terminal.site.runtime.screens = unreadable  # type: ignore[method-assign]
    terminal.is_given_up_waiting_for()
    assert answer.key not in terminal.facts.done
    assert terminal.is_sent(answer) == RetryLater("its terminal cannot be read")
    assert terminal.typed == ["1"]
