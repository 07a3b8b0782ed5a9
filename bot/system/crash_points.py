"""The steps between recording an effect and having it behind us, each a place where a crash may be.

They are announced so that they can be logged, and so that a test can end the process at every one.
"""

import logging
from collections.abc import Callable
from enum import StrEnum

log = logging.getLogger(__name__)


class Step(StrEnum):
    """Where an effect stands when the step is announced."""

    DELIVERED = "delivered"  #: A webhook is committed, its answer not yet sent.
    SORTED = "sorted"  #: A delivery was turned into touches and commands, in one commit.
    OBSERVED = "observed"  #: New facts are committed.
    RECORDED = "recorded"  #: A decision is committed with its actions.
    TAKEN = "taken"  #: An action is about to be done.
    DONE = "done"  #: An action was done and is not yet marked.
    MARKED = "marked"  #: An action is marked as done.


#: Is told of every step with what it is about.
CrashPoint = Callable[[Step, str], None]


def log_crash_point(step: Step, about: str) -> None:
    """The journal of every day: the log, where it was asked for."""
    log.debug("%s %s", step, about)
