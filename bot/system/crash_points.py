"""Named points in the bot's work, just before or after an effect or a commit, for crash tests.

The bot calls a function at each point. The function logs the point or, in a test, kills the
process.
"""

import logging
from collections.abc import Callable
from enum import StrEnum

log = logging.getLogger(__name__)


class CrashPoint(StrEnum):
    """A point in the processing of a delivery, observation, decision, action or notification."""

    DELIVERED = "delivered"  #: A webhook is committed; its response is not sent yet.
    SORTED = "sorted"  #: A delivery became refresh requests and commands, in one transaction.
    OBSERVED = "observed"  #: New facts are committed.
    RECORDED = "recorded"  #: A decision is committed with its actions.
    TAKEN = "taken"  #: An action or a notification is about to be done or sent.
    DONE = "done"  #: It was done or sent, and is not marked as such yet.
    MARKED = "marked"  #: It is marked as done or sent.


#: Called at each point with its subject, such as the id of a session or the key of an action.
AtCrashPoint = Callable[[CrashPoint, str], None]


def log_crash_point(point: CrashPoint, about: str) -> None:
    """Log a point and its subject at debug level. Crash tests use another function instead."""
    log.debug("%s %s", point, about)
