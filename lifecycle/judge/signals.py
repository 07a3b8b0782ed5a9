"""Signals: a few enumerations to which facts are reduced, and on which all rules are conditions.

The signals have so few combinations that all are tested. The module `lifecycle.judge.judge`
computes the signals: it applies thresholds to the facts and weighs evidence.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeVar, get_type_hints

from msgspec import Struct

from lifecycle.model.status import Merge, Review
from lifecycle.read.availability import Availability


class Stage(StrEnum):
    """How far a session has come. The outcomes have the same values as in `Status`."""

    QUEUED = "queued"
    SPAWNING = "spawning"
    RUNNING = "running"
    PAUSED = "paused"
    MERGED = "merged"
    KILLED = "killed"
    TERMINATED = "terminated"
    ERRORED = "errored"
    DONE = "done"


OVER: Final = frozenset(Stage) - {Stage.QUEUED, Stage.SPAWNING, Stage.RUNNING, Stage.PAUSED}


class Hold(StrEnum):
    """Whether an ended session has given up its program and, if merged, its workspace."""

    HELD = "held"
    RELEASING = "releasing"
    RELEASED = "released"


class Attention(StrEnum):
    """Whether the session needs people."""

    NONE = "none"
    ESCALATED = "escalated"  #: A question, or a problem that needs people: an escalation.
    STUCK = "stuck"  #: The agent is blocked, shows no progress, or its state is unknown.


class Output(StrEnum):
    """The state of the agent's work."""

    NOTHING = "nothing"
    UNPUSHED = "unpushed"
    PUSHED = "pushed"
    #: There are uncommitted changes. Either all commits are pushed, or commits of others have to be
    #: merged before a push.
    DIRTY = "dirty"
    OFF_BRANCH = "off_branch"  #: The agent's commits are not on the session's branch.
    PRIVATE = "private"  #: The work of a chat, which is not pushed.
    FOREIGN = "foreign"  #: GitHub's branch has commits of others that the workspace lacks.


class PullStage(StrEnum):
    """Whether there is a pull request, and whether it is a draft or its merge is held."""

    NONE = "none"
    DRAFT = "draft"
    HELD = "held"  #: Its title or a label blocks the merge.
    OPEN = "open"


class Ci(StrEnum):
    """The combined state of the checks that count: required ones, or all if none is required."""

    FAILING = "failing"  #: At least one failed, and none is pending.
    SETTLING = "settling"  #: At least one failed, and others are pending.
    HELD = "held"  #: Some are cancelled, stale or wait for a person; none failed or is pending.
    PENDING = "pending"  #: Some are pending and not waived, or GitHub's data is incomplete.
    #: For `Policy.settle_seconds`, checks may still start: after a push if none has passed yet, and
    #: after the bot marked a draft as ready.
    UNSETTLED = "unsettled"
    PASSING = "passing"
    MISSING = "missing"  #: None ran, long enough after the push, though some are expected.
    NONE = "none"  #: None passed, long enough after the push, and none is expected or awaited.


class Signals(Struct, frozen=True, kw_only=True, cache_hash=True, gc=False):
    """The signals of one session at one instant."""

    stage: Stage
    hold: Hold = Hold.HELD
    availability: Availability = Availability.NONE
    attention: Attention = Attention.NONE
    output: Output = Output.NOTHING
    pull: PullStage = PullStage.NONE
    stacked: bool = False  #: Whether its base is the branch of another open pull request.
    ci: Ci = Ci.NONE
    review: Review = Review.NONE
    merge: Merge = Merge.UNKNOWN


#: How many combinations of signals a table's cache holds; a running bot meets a few hundred.
REMEMBERED: Final = 4096

# -- conditions, as the tables use them ------------------------------------------------------------

When = Callable[[Signals], bool]
_Word = TypeVar("_Word", Stage, Hold, Availability, Attention, Output, PullStage, Ci, Review, Merge)
#: The signals by the enumeration of their values.
_SIGNALS: Final = {kind: name for name, kind in get_type_hints(Signals).items()}


def one_of(*words: _Word) -> When:
    """Return a condition that is met if a signal has one of these values.

    The enumeration that the values belong to says which signal is meant.
    """
    signal = _SIGNALS[type(words[0])]
    return lambda s: getattr(s, signal) in words


def stacked(s: Signals) -> bool:
    """Whether the pull request's base is the branch of another open pull request."""
    return s.stacked


def either(*conditions: When) -> When:
    """Return a condition that is met if at least one of these conditions is met."""
    return lambda s: any(one(s) for one in conditions)


def both(*conditions: When) -> When:
    """Return a condition that is met if all of these conditions are met."""
    return lambda s: all(one(s) for one in conditions)
