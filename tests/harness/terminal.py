"""A run in a terminal; a test sets which dialog is open and which messages the agent has read."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from bot.act.results import ActionResult, AwaitingReceipt, Completed, FinalCheck, RetryLater
from bot.model_proxy.prices import Prices
from bot.observe.agents import AgentObserver
from bot.store import Observation
from bot.system.crash_points import log_crash_point
from lifecycle.model import keys
from lifecycle.model.actions import Prompt, SendMessage
from lifecycle.model.facts import Agent, Facts
from lifecycle.model.policy import Policy
from lifecycle.model.status import Activity
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.dialogs import AnswerStep, Dialog, numbered_dialog
from runtimes.base import Seen
from runtimes.host import run_name
from tests.harness.site import Site

CHOICES = ("Yes", "No")
MESSAGE = SendMessage(key=keys.commit_work(0).of_run(1), run=1, prompt=Prompt(name="uncommitted"))


class Terminal:
    """A started run, what is sent to it, and an observer that looks for receipts."""

    def __init__(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.site = site
        site.starts()
        self.name = run_name(site.id, 1)
        self.meanwhile: Callable[[], None] = lambda: None  #: Runs after keys were pressed.
        self.activity, self.since = Activity.READY, site.scenario.clock()
        self.asks = ""
        self.steps: list[AnswerStep | None] = []  #: The remaining steps of an answer.
        self.blinking = False  #: Whether the next read finds a half-drawn screen.
        self.arrived: set[str] = set()  #: Marks of messages that the agent has read.
        monkeypatch.setattr(site.program, "dialog", self._dialog)
        monkeypatch.setattr(site.program, "reader", lambda files: self)
        monkeypatch.setattr(site.runtime, "press", self._pressed(site.runtime.press))
        self._dispatcher = site.dispatcher()
        self._observer = AgentObserver(
            *(site.scenario.store, site.locations, lambda _: Policy(), Prices({})),
            *(site.scenario.clock, log_crash_point, lambda: None),
        )

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """As the reader of an adapter."""
        agent = Agent(activity=self.activity, since=self.since)
        return replace(agent, runtime=seen.runtime, program=seen.program)

    def received(self, mark: str) -> bool:
        """Whether the agent has read the message that contains `mark`."""
        return mark in self.arrived

    @property
    def facts(self) -> Facts:
        found: Facts = self.site.scenario.store.facts.get(self.site.id)
        return found

    @property
    def typed(self) -> list[str]:
        return self.site.runtime.received(self.name)

    def is_seen(self, activity: Activity) -> None:
        """Set the agent's activity and record the observation."""
        self.activity, self.since = activity, self.site.scenario.clock()
        agent = replace(self.site.session.agent, activity=activity, since=self.since)
        seen = Observation(session=self.site.id, run=1, agent=agent)
        self.site.scenario.store.observations.record([seen], self.since)

    def is_ordered(self, message: SendMessage) -> None:
        self.site.scenario.orders(self.site.id, message)

    def is_sent(
        self, message: SendMessage = MESSAGE, check: FinalCheck = lambda: None
    ) -> ActionResult:
        """Put a message into the outbox if it is not there yet, and try once to send it."""
        self.is_ordered(message)
        return self.is_carried_out(check)

    def is_carried_out(self, check: FinalCheck = lambda: None) -> ActionResult:
        store, now = self.site.scenario.store, self.site.scenario.clock
        (due,) = store.outbox.due(now())
        result = self._dispatcher.do(due, check)
        if isinstance(result, AwaitingReceipt):
            store.outbox.mark_sent(due.seq, result.receipt)
        elif isinstance(result, Completed):
            store.outbox.mark_done(due.seq, result.result, now())
        elif isinstance(result, RetryLater):
            store.outbox.mark_retry(due.seq, result.why, now())
        return result

    def crashes_after_sending(self) -> None:
        """Send the due action, and lose its result as in a crash."""
        (due,) = self.site.scenario.store.outbox.due(self.site.scenario.clock())
        assert isinstance(self._dispatcher.do(due, lambda: None), AwaitingReceipt)

    def is_swept(self) -> None:
        self._observer.sweep()

    def is_looked_at(self, times: int = 2) -> None:
        for _ in range(times):
            self._observer.confirm_receipts()

    def is_given_up_waiting_for(self) -> None:
        """Record that the receipt did not arrive in time."""
        self.site.scenario.clock.passes(60)
        self.is_looked_at()

    def answer(self, text: str, seconds_ago: float = 0, command: int = 1) -> SendMessage:
        at = self.site.scenario.clock() - timedelta(seconds=seconds_ago)
        values = {"actor": "ada", "text": text, "question": "May I?", "at": at.isoformat()}
        prompt = Prompt(name="answer", values=values)
        key = keys.forward(f"comment:{command}").of_run(1)
        return SendMessage(key=key, run=1, prompt=prompt)

    def is_answered(self, answer: SendMessage) -> None:
        """Send an answer with all its keystrokes, until the agent has received it."""
        self.is_ordered(answer)
        while answer.key not in self.facts.done:
            result = self.is_carried_out()
            assert isinstance(result, AwaitingReceipt), result
            self.is_looked_at(3)

    def takes_a_step(self) -> None:
        self.steps.pop(0)
        if not self.steps:
            self.goes_on()

    def goes_on(self) -> None:
        self.asks = ""

    def _dialog(self, files: RunFiles, screen: str) -> Dialog:
        if self.blinking or not self.asks:
            self.blinking = False
            return Dialog()
        if self.steps:
            return Dialog(
                id=self.asks, state=str(len(self.steps)), free_text=lambda _: self.steps[0]
            )
        return replace(
            numbered_dialog(self.asks, CHOICES),
            free_text=lambda text: AnswerStep(keys=("3",), text=text),
        )

    def _pressed(self, press: Any) -> Any:
        def pressed(*given: Any) -> None:
            press(*given)
            self.meanwhile()

        return pressed
