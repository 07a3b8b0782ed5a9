"""Signals: the enumerations that facts are reduced to, and the conditions of all rules.

There are few enough combinations to test all of them. `lifecycle.judge.reduce` computes the signals
from the facts, applying thresholds and weighing evidence.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from lifecycle.model.status import Merge, Review
from lifecycle.read.availability import Availability


class Stage(StrEnum):
    """How far a session has come."""

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
    """Whether a session's runtime and workspace are still held, once it is over."""

    HELD = "held"
    RELEASING = "releasing"
    RELEASED = "released"


class Attention(StrEnum):
    """Whether people have to look."""

    NONE = "none"
    ESCALATED = "escalated"
    STUCK = "stuck"


class Output(StrEnum):
    """The state of the agent's work."""

    NOTHING = "nothing"
    UNPUSHED = "unpushed"
    PUSHED = "pushed"
    DIRTY = "dirty"  #: All commits are pushed, and something is not committed.
    FOREIGN = "foreign"  #: GitHub's branch has commits of others that the workspace lacks.


class PullStage(StrEnum):
    """Whether there is a pull request to judge."""

    NONE = "none"
    DRAFT = "draft"
    OPEN = "open"


class Ci(StrEnum):
    """The combined state of the checks, considering their age and which are required."""

    FAILING = "failing"  #: Some counted check failed and nothing runs any more.
    SETTLING = "settling"  #: Some counted check failed and others still run.
    HELD = "held"  #: Cancelled, stale, or waiting for an action of a person.
    PENDING = "pending"
    UNSETTLED = "unsettled"  #: No checks yet, so soon after the push that some may come.
    PASSING = "passing"
    NONE = "none"  #: No checks, long enough after the push, and none are expected.


class Signals(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The signals of one session at one instant."""

    stage: Stage
    hold: Hold = Hold.HELD
    availability: Availability = Availability.NONE
    attention: Attention = Attention.NONE
    output: Output = Output.NOTHING
    pull: PullStage = PullStage.NONE
    stacked: bool = False  #: Whether its base is the branch of another one that is open.
    ci: Ci = Ci.NONE
    review: Review = Review.NONE
    merge: Merge = Merge.UNKNOWN


#: How many combinations of signals a table's cache holds; a running bot meets a few hundred.
REMEMBERED: Final = 4096

# -- conditions, as the tables use them ------------------------------------------------------------

When = Callable[[Signals], bool]


def stage(*words: Stage) -> When:
    """Return a condition: the stage is one of these. The functions below do the same."""
    return lambda s: s.stage in words


def hold(*words: Hold) -> When:
    return lambda s: s.hold in words


def availability(*words: Availability) -> When:
    return lambda s: s.availability in words


def attention(*words: Attention) -> When:
    return lambda s: s.attention in words


def output(*words: Output) -> When:
    return lambda s: s.output in words


def pull(*words: PullStage) -> When:
    return lambda s: s.pull in words


def stacked(s: Signals) -> bool:
    return s.stacked


def alone(s: Signals) -> bool:
    return not s.stacked


def ci(*words: Ci) -> When:
    return lambda s: s.ci in words


def review(*words: Review) -> When:
    return lambda s: s.review in words


def merge(*words: Merge) -> When:
    return lambda s: s.merge in words


def both(one: When, *more: When) -> When:
    """Whether all of these hold."""
    if not more:
        return one
    rest = both(*more)
    return lambda s: one(s) and rest(s)
