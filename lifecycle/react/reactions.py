"""The table of reactions, which map a status and signals to actions.

Every status has rows. The condition of a row, `when`, reads only the signals. An action's key is
derived from its cause, so that a cause leads to the same action only once.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.judge.rules import has_pull, ready, ready_but_behind
from lifecycle.judge.signals import (
    REMEMBERED,
    Attention,
    Ci,
    Output,
    PullStage,
    Signals,
    Stage,
    When,
    both,
    either,
    one_of,
)
from lifecycle.model.status import TERMINAL, Merge, Status
from lifecycle.react import messages, notices, pull_requests, reports, runs
from lifecycle.read.availability import Availability

S = Status


def always(_: Signals) -> bool:
    return True


class Reaction(NamedTuple):
    """A table row: a function, and the statuses and signals that call for it."""

    statuses: frozenset[Status]
    then: Callable[[Judged], Wanted]  #: Yields the actions.
    when: When = always
    each: bool = False  #: Whether it is called once for each open pull request.
    people: bool = False  #: Whether it may be skipped unless `Judged.people`.

    @property
    def name(self) -> str:
        return self.then.__name__


ON_PULL: Final = frozenset(
    {S.PR_OPEN, S.CI_FAILED, S.REVIEW_PENDING, S.CHANGES_REQUESTED, S.APPROVED, S.MERGEABLE}
)
UNDER_WAY: Final = ON_PULL | {S.WORKING, S.NEEDS_INPUT, S.STUCK}
STOPPED: Final = frozenset({S.KILLED, S.TERMINATED, S.ERRORED, S.DONE})
EVERY: Final = frozenset(Status)
NOT_OVER: Final = EVERY - TERMINAL - {S.CLEANUP}
#: The statuses that the attention label marks.
NEEDS_PEOPLE: Final = frozenset({S.NEEDS_INPUT, S.STUCK})

#: The statuses of whose cause people are notified.
NOTIFIED: Final = NEEDS_PEOPLE | {S.PAUSED, S.QUEUED}

#: The agent can get new work, because its turn or its program has ended.
at_rest = one_of(Availability.IDLE, Availability.EXITED)
#: The agent can get a person's message; an agent with an open question gets only answers.
takes_messages = one_of(
    Availability.IDLE, Availability.EXITED, Availability.WAITING, Availability.INTERRUPTED
)
#: The agent has nothing to do, and either no check is in progress or people were notified of the
#: wait.
waits_on_people = both(
    one_of(Availability.IDLE, Availability.EXITED, Availability.WAITING),
    either(
        one_of(Ci.FAILING, Ci.HELD, Ci.PASSING, Ci.MISSING, Ci.NONE),
        one_of(Attention.ESCALATED),
    ),
)
#: The pull request is no draft, and no check failed or is in progress.
to_review = both(one_of(PullStage.HELD, PullStage.OPEN), one_of(Ci.PASSING, Ci.MISSING, Ci.NONE))
off_branch = both(at_rest, one_of(Output.OFF_BRANCH))
can_publish = both(at_rest, one_of(Output.UNPUSHED))
can_open = both(one_of(PullStage.NONE), one_of(Output.PUSHED, Output.DIRTY))
#: The agent is at rest and nothing is left to push, so feedback concerns the latest commits.
all_pushed = both(at_rest, one_of(Output.NOTHING, Output.PUSHED, Output.DIRTY))
#: The branch conflicts with its base or is behind it; the agent resolves what GitHub cannot update.
stale = one_of(Merge.CONFLICT, Merge.BEHIND)
#: The pull request is in GitHub's merge queue.
queued = one_of(Merge.QUEUED)
#: The session ended with a merge; this holds during `cleanup` too.
merged = one_of(Stage.MERGED)
#: The session ended without a merge; this holds during `cleanup` too.
stopped = one_of(Stage.KILLED, Stage.TERMINATED, Stage.ERRORED, Stage.DONE)

REACTIONS: Final = (
    Reaction(frozenset({S.SPAWNING}), runs.start),
    Reaction(EVERY, notices.acknowledge, people=True),
    Reaction(NOT_OVER, notices.acknowledge_remarks, people=True),
    Reaction(UNDER_WAY, runs.hand_over, people=True),
    Reaction(UNDER_WAY, runs.restart_on_command, people=True),
    Reaction(UNDER_WAY, runs.restart, one_of(Availability.CRASHED)),
    Reaction(UNDER_WAY, messages.forward, takes_messages, people=True),
    Reaction(UNDER_WAY, messages.refuse, people=True),
    Reaction(
        UNDER_WAY,
        runs.resume,
        one_of(Availability.EXITED, Availability.INTERRUPTED, Availability.WAITING),
    ),
    Reaction(UNDER_WAY, pull_requests.adopt, off_branch),
    Reaction(UNDER_WAY, messages.move_commits, off_branch),
    Reaction(UNDER_WAY, pull_requests.publish, can_publish),
    Reaction(UNDER_WAY, messages.reword, can_publish),
    Reaction(UNDER_WAY, pull_requests.open_pull, can_open),
    Reaction(ON_PULL, pull_requests.make_ready, both(at_rest, one_of(PullStage.DRAFT)), each=True),
    Reaction(ON_PULL, pull_requests.ask_reviewers, to_review, each=True, people=True),
    Reaction(UNDER_WAY, messages.remind, both(at_rest, one_of(Output.DIRTY))),
    Reaction(UNDER_WAY, pull_requests.self_review, both(at_rest, can_open)),
    Reaction(
        UNDER_WAY, pull_requests.merge_remote, both(at_rest, one_of(Output.FOREIGN)), each=True
    ),
    Reaction(UNDER_WAY, pull_requests.rerun, one_of(Ci.FAILING, Ci.HELD), each=True),
    Reaction(UNDER_WAY, messages.repair, both(all_pushed, one_of(Ci.FAILING)), each=True),
    Reaction(UNDER_WAY, messages.address_review, all_pushed, each=True, people=True),
    Reaction(UNDER_WAY, pull_requests.update, both(all_pushed, one_of(Merge.BEHIND)), each=True),
    Reaction(UNDER_WAY, pull_requests.update_asked, all_pushed, each=True, people=True),
    Reaction(UNDER_WAY, messages.resolve_conflict, both(all_pushed, stale), each=True),
    Reaction(UNDER_WAY, notices.post_review_result, at_rest, people=True),
    Reaction(UNDER_WAY, notices.reply, has_pull, each=True, people=True),
    Reaction(UNDER_WAY, notices.notify_of_handover, has_pull, each=True, people=True),
    Reaction(NOTIFIED, notices.notify_people),
    Reaction(NEEDS_PEOPLE, notices.add_attention_label),
    Reaction(EVERY - NEEDS_PEOPLE, notices.remove_attention_label, people=True),
    Reaction(UNDER_WAY, notices.warn, people=True),
    Reaction(UNDER_WAY - {S.WORKING, S.STUCK}, runs.park, waits_on_people),
    Reaction(frozenset({S.PAUSED}), runs.pause),
    Reaction(ON_PULL, pull_requests.land, ready, each=True),
    Reaction(ON_PULL, pull_requests.offer, ready_but_behind, each=True),
    Reaction(UNDER_WAY, pull_requests.take_out_of_queue, queued, each=True, people=True),
    Reaction(frozenset({S.MERGED, S.CLEANUP}), pull_requests.tidy, merged),
    Reaction(frozenset({S.MERGED}), runs.release),
    Reaction(STOPPED, runs.stop),
    Reaction(STOPPED, runs.release_later),
    Reaction(STOPPED | {S.CLEANUP}, notices.post_outcome, stopped),
    Reaction(TERMINAL, notices.post_summary),
    Reaction(EVERY, reports.report),
    Reaction(EVERY, reports.report_pull, each=True),
)

#: The rows of each status, in their order.
BY_STATUS: Final = {
    status: tuple(row for row in REACTIONS if status in row.statuses) for status in Status
}


@lru_cache(maxsize=REMEMBERED)
def reactions_to(status: Status, signals: Signals, people: bool) -> tuple[Reaction, ...]:
    """Return the reactions that may yield actions under these signals, in the order of the table.

    `people` is `Judged.people`. If it is False, reactions with `Reaction.people` are omitted.
    """
    rows = BY_STATUS[status]
    return tuple(row for row in rows if row.when(signals) and (people or not row.people))
