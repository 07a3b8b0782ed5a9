"""Notifiers on a store with sessions, a manual clock, and senders that keep what they are given."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from bot.notify.message import Notification, NotSent, Sender
from bot.notify.notifier import Notifications, Notifier
from bot.store import SessionDecision
from bot.system.crash_points import log_crash_point
from bot.system.redaction import Redaction
from config.tables import NotifierSettings
from lifecycle.model.facts import Ended
from lifecycle.model.status import Reason, Status
from tests.harness.fixtures import Scenario, clock, scenario

__all__ = ["clock", "scenario"]

PAGE = "https://bot.example/"
SECRET = "hunter2-of-the-bot"


def settings(**changes: object) -> NotifierSettings:
    """The settings of a notifier: the defaults, but for these."""
    usual: dict[str, object] = {"kind": "apprise", "url": "URL"}
    return NotifierSettings(**{**usual, **changes})  # type: ignore[arg-type]


class AtOnce(Executor):
    """Does work in the calling thread, so that all notifications are sent when the call returns."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with suppress(Exception):
            future.set_result(work(*args, **kwargs))
        return future


class KeepingSender:
    """Keeps messages, or fails."""

    def __init__(self) -> None:
        self.kept: list[Notification] = []
        self.repeated: list[bool] = []
        self.down = ""  #: Why it fails; empty: it does not.
        self.perhaps = False  #: Whether what failed may have arrived.
        self.attempts = 0

    def send(self, message: Notification, *, repeated: bool) -> None:
        self.attempts += 1
        if self.down:
            raise NotSent(self.down, perhaps=self.perhaps)
        self.kept.append(message)
        self.repeated.append(repeated)

    def address(self) -> tuple[str, int] | None:
        return None

    @property
    def types(self) -> list[str]:
        return [message.type for message in self.kept]


class Desk:
    """Notifiers with their sessions."""

    def __init__(self, scenario: Scenario) -> None:
        self.store, self.clock = scenario.store, scenario.clock
        self.scenario = scenario
        self.senders: dict[str, KeepingSender] = {}
        self.notifications = self.starts(team=settings())

    def starts(self, **notifiers: NotifierSettings) -> Notifications:
        """Start the bot, or start it again with other notifiers; returns them."""
        self.senders |= {name: KeepingSender() for name in notifiers if name not in self.senders}
        self.notifications = self.with_senders(
            {name: (one, self.senders[name]) for name, one in notifiers.items()}
        )
        return self.notifications

    def with_senders(self, of: dict[str, tuple[NotifierSettings, Sender]]) -> Notifications:
        return Notifications(
            self.store,
            [Notifier(name, settings, sender) for name, (settings, sender) in of.items()],
            PAGE,
            Redaction([SECRET], common_forms=True),
            2.0,
            self.clock,
            log_crash_point,
            lambda: True,
            AtOnce(),
        )

    @property
    def team(self) -> KeepingSender:
        return self.senders["team"]

    def looks(self, times: int = 3) -> None:
        """Look several times without advancing the clock."""
        for _ in range(times):
            self.notifications.look()

    def later(self, seconds: float) -> None:
        self.clock.passes(seconds)
        self.looks()

    def at(self, text: str) -> None:
        """Set the clock to a time in UTC, and have the notifiers check for messages to send."""
        self.clock.now = datetime.fromisoformat(f"{text}+00:00")
        self.looks()

    def decides(self, session: str, **changes: Any) -> None:
        """Record a decision about a session."""
        usual: dict[str, Any] = {
            "status": "working",
            "reason": Reason.AGENT_AT_WORK,
            "because": "the agent works",
            "run": 1,
        }
        (loaded,) = self.store.facts.load([session])
        decided = SessionDecision(**{**usual, **changes})
        self.store.decisions.record([(loaded, decided)], self.clock())[0].result()

    def needs(
        self,
        session: str,
        cause: str = "base_red:abc:1",
        reason: str = Reason.BASE_RED,
        because: str = "all failed checks also fail on main: unit",
    ) -> None:
        """Have a session need a person."""
        self.decides(session, status="needs_input", reason=reason, because=because, cause=cause)

    def ends(self, session: str, status: Status, reason: Reason, because: str) -> None:
        """Have a session end."""
        ended = Ended(status=status, reason=reason, because=because, at=self.clock())
        self.decides(session, status=status, reason=reason, because=because, ended=ended)


@pytest.fixture
def desk(scenario: Scenario) -> Desk:
    return Desk(scenario)
