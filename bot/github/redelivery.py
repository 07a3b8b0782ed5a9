"""The App's own webhook: what GitHub could not deliver to it, and having it sent once more."""

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from bot.github.calls import ApiClient

DELIVERIES = "app/hook/deliveries"
#: What was refused for what it is would be refused again; these say that nobody could answer.
UNANSWERED = {0, 408, 429}


class DeliveryAttempt(Struct, frozen=True):
    """One attempt to deliver, as GET app/hook/deliveries lists it."""

    id: int
    guid: str  #: What `X-GitHub-Delivery` says, the same in every attempt.
    delivered_at: datetime
    status_code: int


class AppWebhook:
    """The App's webhook. A token has none: those of its repositories are an administrator's.

    Methods raise `TryLater` or `Refused`.
    """

    def __init__(self, calls: ApiClient) -> None:
        self._calls = calls

    @property
    def is_available(self) -> bool:
        """Whether there is one, which is where we are an App."""
        return self._calls.tokens.is_app

    def lost(self, since: datetime) -> Iterator[DeliveryAttempt]:
        """Attempts since then that nobody answered, newest first."""
        for attempt in self._calls.app_pages(DELIVERIES, DeliveryAttempt, {"status": "failure"}):
            if attempt.delivered_at < since:
                return
            if attempt.status_code >= 500 or attempt.status_code in UNANSWERED:
                yield attempt

    def redeliver(self, attempt: DeliveryAttempt) -> None:
        """Have it sent once more, under the same name."""
        self._calls.do_as_app("POST", f"{DELIVERIES}/{attempt.id}/attempts")
