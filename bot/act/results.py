"""The results of an action: a closed set of values that the outbox acts on.

`bot.act.dispatch` translates the exceptions of libraries (GitHub, git, runtimes, the file system)
into these results. The outbox retries after any other exception.
"""

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from bot.store import Observation, Receipt, RefreshRequest
from lifecycle.model.status import Reason


class Completed(Struct, frozen=True, kw_only=True):
    """The action is done: it took effect, now or before a crash, or needs no effect any more."""

    result: str = ""  #: For the history, such as the number of the pull request that was opened.
    observed: Observation | None = None  #: Facts that are known because of the action.
    refreshes: tuple[RefreshRequest, ...] = ()  #: What to read from GitHub now.


class AwaitingReceipt(Struct, frozen=True):
    """A message or a step of an answer was sent; the action is done once it has arrived."""

    receipt: Receipt


class RetryLater(Struct, frozen=True):
    """The action could not be carried out now, and another attempt may succeed."""

    why: str
    #: When it may succeed. The attempt is then not counted. If None, after the usual backoff.
    at: datetime | None = None
    #: Whether the action gets more attempts than usual, because GitHub did not answer its request,
    #: or its project is not configured. The attempt is not counted if GitHub answers no other
    #: request either.
    outage: bool = False


class Rejected(Struct, frozen=True):
    """The action cannot be carried out, and merely repeating it would not change that."""

    why: str
    reason: Reason | None = None  #: If None, the usual reason for its kind of action.


class Withdrawn(Struct, frozen=True):
    """The action is not wanted now, e.g. because its cause is gone. It may be ordered again."""

    why: str
    observed: Observation | None = None  #: Facts that make it unwanted.


class Held(Struct, frozen=True):
    """A person froze the session, its project or everything. The action waits."""


class LeaseLost(Struct, frozen=True):
    """This bot may not act: it does not hold the lease, or its database cannot be written."""


#: Why an action must not take effect now.
Stopped = Withdrawn | Held | LeaseLost
ActionResult = Completed | AwaitingReceipt | RetryLater | Rejected | Stopped

#: Judges an action once more, right before its effect. Returns None if it may take effect.
FinalCheck = Callable[[], Stopped | None]
