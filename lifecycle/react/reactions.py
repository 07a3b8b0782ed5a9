"""The table that turns a status into actions. Every status has a row.

A row's condition sees the signals alone; what it yields is keyed by its cause, so a cause that was
answered once is not answered again.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.judge.rules import has_pull, ready
from lifecycle.judge.signals import (
    REMEMBERED,
    Ci,
    Output,
    PullStage,
    Signals,
    Stage,
    When,
    availability,
    both,
    ci,
    merge,
    output,
    pull,
    stage,
)
from lifecycle.model.status import TERMINAL, Merge, Status
from lifecycle.react.drafts import ask_reviewers, make_ready
from lifecycle.react.messages import (
    address_review,
    forward,
    refuse,
    remind,
    repair,
    resolve_conflict,
    reword,
)
from lifecycle.react.notices import (
    acknowledge,
    add_attention_label,
    notify_of_handover,
    notify_people,
    post_outcome,
    post_review_result,
    post_summary,
    remove_attention_label,
    reply,
    warn,
)
from lifecycle.react.pull_requests import (
    land,
    merge_remote,
    open_pull,
    publish,
    rerun,
    take_out_of_queue,
    tidy,
    update,
    update_asked,
)
from lifecycle.react.reports import report, report_pull
from lifecycle.react.runs import (
    hand_over,
    park,
    pause,
    release,
    release_later,
    restart,
    restart_on_command,
    resume,
    start,
    stop,
)
from lifecycle.react.self_review import self_review
from lifecycle.read.availability import Availability

S = Status


class Reaction(NamedTuple):
    """One row: in which statuses and under which signals it acts, and how."""

    name: str
    statuses: frozenset[Status]
    when: When
    then: Callable[[Judged], Wanted]
    each: bool = False  #: Whether it is asked of each open pull request.
    people: bool = False  #: Whether it needs anything from or for people: `Judged.people`.


ON_PULL: Final = frozenset(
    {S.PR_OPEN, S.CI_FAILED, S.REVIEW_PENDING, S.CHANGES_REQUESTED, S.APPROVED, S.MERGEABLE}
)
UNDER_WAY: Final = ON_PULL | {S.WORKING, S.NEEDS_INPUT, S.STUCK}
STOPPED: Final = frozenset({S.KILLED, S.TERMINATED, S.ERRORED, S.DONE})
EVERY: Final = frozenset(Status)
#: People have to look.
CALLING: Final = frozenset({S.NEEDS_INPUT, S.STUCK})


def always(_: Signals) -> bool:
    return True


#: The agent can be given something to do: it finished its turn, or ended by itself.
at_rest = availability(Availability.IDLE, Availability.EXITED)
#: A person's own words may go to an agent that asks.
hears_people = availability(
    Availability.IDLE, Availability.EXITED, Availability.WAITING, Availability.INTERRUPTED
)
#: The agent has nothing to do, and no check runs.
waits_on_people = both(
    availability(Availability.IDLE, Availability.EXITED, Availability.WAITING),
    ci(Ci.FAILING, Ci.HELD, Ci.PASSING, Ci.NONE),
)
#: There is something to review.
to_review = both(pull(PullStage.OPEN), ci(Ci.PASSING, Ci.NONE))
can_publish = both(at_rest, output(Output.UNPUSHED))
can_open = both(pull(PullStage.NONE), output(Output.PUSHED, Output.DIRTY))
#: At rest with nothing left to push: what is said now is about what people see.
can_hear = both(at_rest, output(Output.NOTHING, Output.PUSHED, Output.DIRTY))
#: What GitHub may resolve by an update; otherwise the agent.
stale = merge(Merge.CONFLICT, Merge.BEHIND)
#: GitHub lands it as soon as the queue's own checks pass.
queued = merge(Merge.QUEUED)
#: `cleanup` alone says neither: whatever is over reads as it while it is given back.
merged = stage(Stage.MERGED)
stopped = stage(Stage.KILLED, Stage.TERMINATED, Stage.ERRORED, Stage.DONE)

REACTIONS: Final = (
    Reaction("start", frozenset({S.SPAWNING}), always, start),
    Reaction("acknowledge", EVERY, always, acknowledge, people=True),
    Reaction("hand_over", UNDER_WAY, always, hand_over, people=True),
    Reaction("restart_on_command", UNDER_WAY, always, restart_on_command, people=True),
    Reaction("restart", UNDER_WAY, availability(Availability.CRASHED), restart),
    Reaction("forward", UNDER_WAY, hears_people, forward, people=True),
    Reaction("refuse", UNDER_WAY, always, refuse, people=True),
    Reaction(
        "resume", UNDER_WAY, availability(Availability.EXITED, Availability.INTERRUPTED), resume
    ),
    Reaction("publish", UNDER_WAY, can_publish, publish),
    Reaction("reword", UNDER_WAY, can_publish, reword),
    Reaction("open_pull", UNDER_WAY, can_open, open_pull),
    Reaction("make_ready", ON_PULL, both(at_rest, pull(PullStage.DRAFT)), make_ready, each=True),
    Reaction("ask_reviewers", ON_PULL, to_review, ask_reviewers, each=True, people=True),
    Reaction("remind", UNDER_WAY, both(at_rest, output(Output.DIRTY)), remind),
    Reaction("self_review", UNDER_WAY, both(at_rest, can_open), self_review),
    Reaction(
        "merge_remote", UNDER_WAY, both(at_rest, output(Output.FOREIGN)), merge_remote, each=True
    ),
    Reaction("rerun", UNDER_WAY, ci(Ci.FAILING, Ci.HELD), rerun, each=True),
    Reaction("repair", UNDER_WAY, both(can_hear, ci(Ci.FAILING)), repair, each=True),
    Reaction("address_review", UNDER_WAY, can_hear, address_review, each=True, people=True),
    Reaction("update", UNDER_WAY, both(can_hear, merge(Merge.BEHIND)), update, each=True),
    Reaction("update_asked", UNDER_WAY, can_hear, update_asked, each=True, people=True),
    Reaction("resolve_conflict", UNDER_WAY, both(can_hear, stale), resolve_conflict, each=True),
    Reaction("post_review_result", UNDER_WAY, at_rest, post_review_result, people=True),
    Reaction("reply", UNDER_WAY, has_pull, reply, each=True, people=True),
    Reaction("notify_of_handover", UNDER_WAY, has_pull, notify_of_handover, each=True, people=True),
    Reaction("notify_people", CALLING | {S.PAUSED, S.QUEUED}, always, notify_people),
    Reaction("add_attention_label", CALLING, always, add_attention_label),
    Reaction(
        "remove_attention_label", EVERY - CALLING, always, remove_attention_label, people=True
    ),
    Reaction("warn", UNDER_WAY, always, warn, people=True),
    Reaction("park", UNDER_WAY - {S.WORKING, S.STUCK}, waits_on_people, park),
    Reaction("pause", frozenset({S.PAUSED}), always, pause),
    Reaction("land", ON_PULL, ready, land, each=True),
    Reaction("take_out_of_queue", UNDER_WAY, queued, take_out_of_queue, each=True, people=True),
    Reaction("tidy", frozenset({S.MERGED, S.CLEANUP}), merged, tidy),
    Reaction("release", frozenset({S.MERGED}), always, release),
    Reaction("stop", STOPPED, always, stop),
    Reaction("release_later", STOPPED, always, release_later),
    Reaction("post_outcome", STOPPED | {S.CLEANUP}, stopped, post_outcome),
    Reaction("post_summary", TERMINAL, always, post_summary),
    Reaction("report", EVERY, always, report),
    Reaction("report_pull", EVERY, always, report_pull, each=True),
)

#: The rows of each status, in their order.
BY_STATUS: Final = {
    status: tuple(row for row in REACTIONS if status in row.statuses) for status in Status
}


@lru_cache(maxsize=REMEMBERED)
def reactions_to(status: Status, signals: Signals, people: bool) -> tuple[Reaction, ...]:
    """The rows that may ask for something under these signals, in their order.

    `people`: as `Judged.people`.
    """
    rows = BY_STATUS[status]
    return tuple(row for row in rows if row.when(signals) and (people or not row.people))
