"""Giving a person's answer to an agent that asks in a dialog."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.act.results import ActionResult, Completed, Held, Rejected, RetryLater, Withdrawn
from bot.store import Observation
from lifecycle.model import keys
from lifecycle.model.actions import Prompt, Tell
from lifecycle.model.key import parse
from lifecycle.model.status import Activity
from lifecycle.react.messages import REFUSED
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.dialogs import AnswerStep, Dialog, numbered_dialog
from runtimes.base import Handle
from tests.bot.site import Site

CHOICES = ("Yes", "No")


@pytest.fixture
def asks(site: Site, monkeypatch: pytest.MonkeyPatch) -> "Asks":
    return Asks(site, monkeypatch)


class Asks:
    """An agent whose screen holds what it asks; nothing on it is nothing asked."""

    def __init__(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site
        site.starts()
        self.handle: Handle = site.locations.handle(site.id, 1)
        self.meanwhile: Callable[[], None] = lambda: None
        monkeypatch.setattr(site.program, "dialog", self._dialog, raising=False)
        monkeypatch.setattr(site.runtime, "press", self._pressed(site.runtime.press))
        monkeypatch.setattr("bot.act.dialogs.time.sleep", lambda _: site.room.clock.passes(3))
        self.shown = "May I?"
        self.steps: list[AnswerStep | None] = []  #: What is left of an answer in several steps.
        self.blinking = False
        self.is_seen(Activity.WAITING_INPUT)

    def is_seen(self, activity: Activity) -> None:
        since = self.site.room.clock()
        agent = replace(self.site.session.agent, activity=activity, since=since)
        self.site.room.store.observations.record(
            [Observation(session=self.site.id, run=1, agent=agent)], since
        )

    def is_answered(self, text: str, tried: int = 0, seconds_ago: float = 0) -> str:
        result = self.answer(text, tried, seconds_ago)
        assert isinstance(result, Completed), result
        return result.result

    def answer(self, text: str, tried: int = 0, seconds_ago: float = 0) -> ActionResult:
        site, tell = self.site, self.tell(text, seconds_ago)
        return site.agents.tell(site.session, tell, tried, lambda: None)

    def tell(self, text: str, seconds_ago: float = 0) -> Tell:
        at = self.site.room.clock() - timedelta(seconds=seconds_ago)
        values = {"actor": "ada", "text": text, "question": "May I?", "at": at.isoformat()}
        return Tell(key=parse("forward:1#1"), run=1, prompt=Prompt(name="answer", values=values))

    @property
    def heard(self) -> list[str]:
        return self.site.runtime.received(self.handle)

    def _dialog(self, files: RunFiles, screen: str) -> Dialog:
        if self.blinking or not self.shown:
            self.blinking = False
            return Dialog()
        if self.steps:
            return Dialog(
                id=self.shown, state=str(len(self.steps)), free_text=lambda _: self.steps[0]
            )
        return replace(
            numbered_dialog(self.shown, CHOICES),
            free_text=lambda text: AnswerStep(keys=("3",), text=text),
        )

    def _pressed(self, press: Any) -> Any:
        def pressed(*given: Any) -> None:
            press(*given)
            self.meanwhile()

        return pressed

    def takes_a_step(self) -> None:
        self.steps.pop(0)
        if not self.steps:
            self.goes_on()

    def goes_on(self) -> None:
        self.shown = ""


def test_a_choice_is_pressed_and_words_of_ones_own_are_typed(asks: Asks) -> None:
    asks.meanwhile = asks.goes_on
    assert asks.is_answered("no") == "it was given"
    assert asks.heard == ["2"]
    asks.shown = "Which?"
    asks.site.room.clock.passes(1)
    tell = replace(asks.tell("The blue one"), key=keys.forward("2").of_run(1))
    asks.site.agents.tell(asks.site.session, tell, 0, lambda: None)
    assert asks.heard == ["2", "3", "The blue one"]


def test_nothing_is_given_where_that_may_not_be_any_more(asks: Asks) -> None:
    result = asks.site.agents.tell(asks.site.session, asks.tell("yes"), 0, Held)
    assert result == Held()
    assert asks.heard == []


def test_an_answer_at_a_port_is_asked_there_and_typed_nowhere(asks: Asks) -> None:
    asks.steps = [AnswerStep(request=asks.takes_a_step)]
    assert asks.is_answered("The blue one") == "it was given"
    assert (asks.steps, asks.heard) == ([], [])


def test_what_was_said_before_it_asked_is_no_answer_to_it(asks: Asks) -> None:
    assert asks.is_answered("yes", seconds_ago=60) == REFUSED
    assert asks.heard == []


def test_what_is_none_of_the_choices_is_refused(
    asks: Asks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        asks.site.program, "dialog", lambda *_: numbered_dialog("May I?", ("Yes", "No"))
    )
    assert asks.is_answered("perhaps") == REFUSED
    assert asks.heard == []


def test_an_answer_that_changes_nothing_is_given_again_to_the_same_dialog_alone(
    asks: Asks,
) -> None:
    assert asks.answer("yes") == RetryLater("it was answered, and asks the same still")
    assert asks.heard == ["1"]
    assert isinstance(asks.answer("yes", tried=1), RetryLater)
    assert asks.heard == ["1", "1"]
    last = asks.answer("yes", tried=2)
    assert last == Rejected("it was answered, and asks the same still, 3 times over")
    assert asks.heard == ["1", "1", "1"]
    asks.shown = "May I do something else?"
    assert asks.is_answered("yes", tried=2) == "it was given"
    assert asks.heard == ["1", "1", "1"]


def test_an_answer_that_a_crash_left_unmarked_is_known_to_have_been_given(asks: Asks) -> None:
    site, tell = asks.site, asks.tell("yes")
    assert site.agents.told(site.session, tell) is None

    def crashes() -> None:
        raise KeyboardInterrupt

    asks.meanwhile = crashes
    with pytest.raises(KeyboardInterrupt):
        asks.is_answered("yes")
    assert site.agents.told(site.session, tell) is None, "it asks the same still"
    asks.goes_on()
    told = site.agents.told(site.session, tell)
    assert told is not None
    assert asks.heard == ["1"]


def test_an_answer_to_what_it_asks_no_more_is_taken_back(asks: Asks) -> None:
    asks.is_seen(Activity.ACTIVE)
    assert isinstance(asks.answer("yes"), Withdrawn)
    assert asks.heard == []


def test_a_dialog_that_is_not_understood_is_left_to_people(asks: Asks) -> None:
    asks.goes_on()
    result = asks.answer("yes")
    assert isinstance(result, RetryLater)
    assert "at its terminal" in result.why
    assert asks.heard == []


def test_a_message_is_not_pasted_into_a_dialog(asks: Asks) -> None:
    tell = Tell(key=keys.commit_work(1).of_run(1), run=1, prompt=Prompt(name="uncommitted"))
    result = asks.site.agents.tell(asks.site.session, tell, 0, lambda: None)
    assert result == Withdrawn("it asks something, and would take the message for the answer")
    assert asks.heard == []


def test_an_answer_in_several_steps_goes_on_where_a_crash_left_it(asks: Asks) -> None:
    site, tell = asks.site, asks.tell("1\n2")
    asks.steps = [AnswerStep(keys=("Down",)), AnswerStep(keys=("Enter",))]

    def crashes() -> None:
        asks.steps.pop(0)
        raise KeyboardInterrupt

    asks.meanwhile = crashes
    with pytest.raises(KeyboardInterrupt):
        site.agents.tell(site.session, tell, 0, lambda: None)
    assert site.agents.told(site.session, tell) is None, "it asks the same, only another step of it"
    asks.meanwhile = asks.takes_a_step
    assert site.agents.tell(site.session, tell, 1, lambda: None) == Completed(result="it was given")
    assert asks.heard == ["Down", "Enter"]


def test_an_answer_of_which_a_step_is_not_taken_is_left_to_people(asks: Asks) -> None:
    asks.steps = [AnswerStep(keys=("1",)), None]
    asks.meanwhile = asks.takes_a_step
    refusal = Rejected("it takes the rest of that answer only at its terminal")
    assert asks.answer("1\n2") == refusal
    assert asks.answer("1\n2") == refusal, "after a crash, too: part of it was taken"
    assert asks.heard == ["1"]


def test_a_screen_that_is_being_drawn_is_not_taken_for_the_end_of_a_dialog(asks: Asks) -> None:
    asks.steps = [AnswerStep(keys=("1",)), AnswerStep(keys=("2",))]

    def blinks() -> None:
        asks.takes_a_step()
        asks.blinking = True

    asks.meanwhile = blinks
    assert asks.is_answered("1\n2") == "it was given"
    assert asks.heard == ["1", "2"]


def test_where_nobody_can_see_what_is_asked_no_answer_is_taken_for_given(asks: Asks) -> None:
    site, tell = asks.site, asks.tell("yes")
    assert isinstance(asks.answer("yes"), RetryLater)
    site.runtime.screens = lambda handles: {}  # type: ignore[method-assign]
    assert site.agents.told(site.session, tell) is None
    assert asks.answer("yes", tried=1) == RetryLater("its terminal cannot be read")
    assert asks.heard == ["1"]
