"""Lost webhooks: what GitHub could not deliver while nobody listened is sent once more."""

import logging
from datetime import timedelta

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, Refused
from bot.github.redelivery import Attempt
from bot.store import Store
from bot.system.clock import Clock

log = logging.getLogger(__name__)

#: GitHub keeps deliveries, and sends them again, for three days.
_KEPT = timedelta(days=3)
#: What is younger may still be under way.
_UNDER_WAY = timedelta(minutes=1)
#: What GitHub answers where it keeps a delivery no longer.
_NO_MORE = (404, 422)
_MARK = "deliveries"


class Redelivery:
    """Has an App's lost deliveries sent again; with a token, resync alone finds them."""

    def __init__(self, store: Store, github: GitHub, clock: Clock) -> None:
        self._store = store
        self._github = github
        self._clock = clock

    def ask(self) -> None:
        """Ask for every delivery that was lost since the last time all of them were asked for.

        Safe to repeat: one that has come is kept under its name, and not asked for again.
        """
        if not self._github.hook.is_ours:
            return
        until = self._clock() - _UNDER_WAY
        since = max(self._store.cursors.get(_MARK) or until - _KEPT, until - _KEPT)
        try:
            lost = {one.guid: one for one in self._github.hook.lost(since)}
            for guid in lost.keys() - self._store.deliveries.known(lost):
                if lost[guid].delivered_at < until:
                    self._again(lost[guid])
        except GitHubFailure as failure:
            log.warning("lost deliveries not asked for: %s", failure)
            return
        self._store.cursors.set(_MARK, until)

    def _again(self, attempt: Attempt) -> None:
        """Ask for one. What GitHub has no more must not keep the others from being asked for."""
        try:
            self._github.hook.redeliver(attempt)
        except Refused as refusal:
            if refusal.status not in _NO_MORE:
                raise
            log.warning("delivery %s was lost for good: %s", attempt.guid, refusal)
        else:
            log.info("delivery %s was lost: asked for once more", attempt.guid)
