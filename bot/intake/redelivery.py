"""Requests redelivery of webhooks that GitHub could not deliver.

https://docs.github.com/en/webhooks/using-webhooks/automatically-redelivering-failed-deliveries-for-a-github-app-webhook
"""

import logging
from datetime import timedelta

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused
from bot.github.github_app import DeliveryAttempt
from bot.store import CursorsTable, DeliveriesTable
from bot.system.clock import Clock

log = logging.getLogger(__name__)

#: For how long after a delivery GitHub can repeat it.
_KEPT = timedelta(days=3)
#: A younger delivery may still be on its way.
_IN_FLIGHT = timedelta(minutes=1)
#: GitHub's status codes for a delivery that it no longer stores.
_GONE = (404, 422)
_MARK = "deliveries"


class Redelivery:
    """Requests redelivery of an App's failed webhooks.

    Does nothing if the bot uses a token: then only the resync makes up for lost webhooks.
    """

    def __init__(
        self, deliveries: DeliveriesTable, cursors: CursorsTable, github: GitHub, clock: Clock
    ) -> None:
        self._deliveries = deliveries
        self._cursors = cursors
        self._github = github
        self._clock = clock

    def request_lost(self) -> None:
        """Request redelivery of each webhook that failed since the last complete run.

        Idempotent. Not requested are deliveries that are in the store by now, that the bot refused,
        or that are older than three days.
        """
        if not self._github.hook.is_available:
            return
        until = self._clock() - _IN_FLIGHT
        since = max(self._cursors.get(_MARK) or until - _KEPT, until - _KEPT)
        try:
            lost = {one.guid: one for one in self._github.hook.failed_attempts(since)}
            for guid in lost.keys() - self._deliveries.known(lost):
                if lost[guid].delivered_at < until:
                    self._redeliver(lost[guid])
        except GitHubFailure as failure:
            log.warning("redelivery of lost webhooks not requested: %s", failure)
            return
        self._cursors.set(_MARK, until)

    def _redeliver(self, attempt: DeliveryAttempt) -> None:
        """Request one redelivery. If GitHub no longer has the delivery, log that it is lost."""
        try:
            self._github.hook.redeliver(attempt)
        except Refused as refusal:
            if refusal.status not in _GONE:
                raise
            log.warning("delivery %s is lost: %s", attempt.guid, refusal)
        else:
            log.info("delivery %s requested again", attempt.guid)
