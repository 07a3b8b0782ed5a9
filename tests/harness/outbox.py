"""An outbox over a real store, with effects that a test sets."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from bot.act.dispatch import ActionDispatcher
from bot.act.outages import Outages
from bot.act.outbox import Attempts, Outbox
from bot.act.results import ActionResult, Completed, FinalCheck
from bot.store import DueAction
from bot.system.crash_points import log_crash_point
from lifecycle.judge.pauses import frozen_by
from lifecycle.model.actions import Action
from lifecycle.model.key import Key
from lifecycle.model.policy import Policy


class OutboxBench:
    """An outbox over a real store; a test sets what is wanted and what an effect does."""

    def __init__(self, scenario: Any) -> None:
        self.scenario = scenario
        self.wanted = self.may_act = True
        self.silenced = False
        self.did: list[Key] = []
        self.wakes = 0
        self.doing: Any = lambda due, check: Completed()
        self.workers = ThreadPoolExecutor(4)
        store = scenario.store
        self.github_answers = True
        self.outages = Outages(
            *(store.incidents, store.path.parent, scenario.clock, self.workers),
            lambda: self.github_answers,
        )
        attempts = Attempts(most=3, first_seconds=2, starts=lambda _: Policy().start_tries)
        self.outbox = self.with_attempts(attempts)

    def with_attempts(self, attempts: Attempts) -> Outbox:
        store, dispatcher = self.scenario.store, cast(ActionDispatcher, self)
        return Outbox(
            store.outbox,
            store.incidents,
            self.outages,
            store.writable,
            self.still_wanted,
            lambda _: self.silenced,
            dispatcher,
            self.workers,
            attempts,
            self.scenario.clock,
            log_crash_point,
            lambda: self.may_act,
            self.woken,
        )

    def still_wanted(self, session: str, action: Action) -> bool | None:
        frozen = frozen_by(self.scenario.store.facts.get(session)) is not None
        return None if frozen else self.wanted

    def was_done(self, due: DueAction) -> Completed | None:
        return None

    def do(self, due: DueAction, check: FinalCheck) -> ActionResult:
        self.did.append(due.action.key)
        outcome: ActionResult = self.doing(due, check)
        return outcome

    def woken(self) -> None:
        self.wakes += 1

    def drains(self) -> int:
        handed = self.outbox.drain()
        assert self.outbox.rest(5)
        return handed
