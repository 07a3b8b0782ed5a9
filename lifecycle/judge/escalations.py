"""What people have to look at: one row a cause, standing as long as it does."""

from datetime import timedelta
from typing import Final

from lifecycle.judge.stalls import Escalation, Row, since
from lifecycle.model import keys
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.status import Merge, PullState, Reason
from lifecycle.read.availability import Availability
from lifecycle.read.merge_queue import landing_key
from lifecycle.read.sentences import clock, names, short
from lifecycle.read.session_view import View, spent

# Looked up once: a member of an enumeration costs a search each time it is named.
_WAITING, _QUIET, _ENDED = Availability.WAITING, Availability.QUIET, Availability.ENDED
_CLEAN, _OPEN = Merge.CLEAN, PullState.OPEN
_REWORD: Final = frozenset({KeyKind.REWORD})

# -- the agent cannot bring it further by itself ---------------------------------------------------


def question(view: View) -> Escalation | None:
    """The agent asks something."""
    if view.stands is not _WAITING:
        return None
    agent = view.facts.agent
    key = keys.question(agent.since, agent.run)
    asked = agent.question or "something at its terminal"
    return Escalation(key, Reason.AGENT_QUESTION, f"the agent asks: {asked}")


def paths_held(view: View) -> Escalation | None:
    """The commits at hand change what a person has to allow first."""
    head = view.facts.work.head
    held = _given_up(view, keys.push(head))
    if held is None or held.reason is not Reason.PROTECTED_PATHS:
        return None
    why = f"{short(head)} changes protected paths and was not pushed: {held.because}"
    how = f"`/mergewright allow {short(head)}` has it pushed all the same"
    return held._replace(key=keys.protected_paths(head), because=f"{why}; {how}")


def push_refused(view: View) -> Escalation | None:
    """The commits at hand could not be pushed, and are not the agent's to reword any more."""
    cause = view.messages_cause
    if (
        cause
        and not spent(cause, view.past.told(_REWORD), view.policy.ci_repairs)
        and (view.past.heard(cause) is None or not view.at_rest)
    ):
        return None
    return _given_up(view, keys.push(view.facts.work.head))


def pushes_used_up(view: View) -> Escalation | None:
    """The commits at hand wait for the next hour."""
    first = view.pushes_full if view.at_rest and view.unpushed else None
    if first is None:
        return None
    most, next_at = view.policy.pushes_per_hour, clock(first + timedelta(hours=1))
    why = f"{most} commits were pushed within an hour; the next goes out at {next_at}"
    return Escalation(keys.pushes_used_up(first), Reason.PUSHES_USED_UP, why)


def pull_refused(view: View) -> Escalation | None:
    """The pull request could not be opened."""
    return _given_up(view, keys.open_pull(view.facts.branch)) if view.pull is None else None


def ready_refused(view: View) -> Escalation | None:
    """GitHub refused to make a draft ready that we opened as one."""
    pull = view.pull
    if pull is None or pull.state is not _OPEN or not pull.draft:
        return None
    return _given_up(view, keys.make_ready(pull.number))


def merge_refused(view: View) -> Escalation | None:
    """GitHub refused to merge this very head."""
    return _given_up(view, landing_key(view.pull)) if view.pull else None


def put_out_of_queue(view: View) -> Escalation | None:
    """The merge queue put it out for a reason that nothing else here tells."""
    out, pull = view.dequeued, view.pull
    if out is None or out.checks or pull is None or pull.merge is not _CLEAN:
        return None
    why = f"GitHub's merge queue put it out: {out.reason or 'it does not say why'}"
    return Escalation(keys.dequeued(pull.head, out.at), Reason.DEQUEUED, why)


def update_refused(view: View) -> Escalation | None:
    """GitHub refused to bring the base into this very head, which a person asked for."""
    command = view.command("update")
    if command is None or view.pull is None or view.pull.merge is Merge.CONFLICT:
        return None  # A conflict goes to the agent.
    return _given_up(view, keys.update_on_command(command.key, view.pull.head))


def branch_refused(view: View) -> Escalation | None:
    """The commits of others could not be brought into the workspace."""
    if view.pull is None or not view.foreign:
        return None
    return _given_up(view, keys.merge_remote(view.pull.head))


def message_lost(view: View) -> Escalation | None:
    """A message that still matters could not be delivered to this run."""
    causes = (
        view.ci_cause,
        view.review_cause,
        view.conflict_cause,
        view.branch_cause if view.foreign else None,
        view.dirty_cause,
        view.messages_cause,
        *view.words_causes,
    )
    lost = (_given_up(view, cause.of_run(view.facts.run)) for cause in causes if cause)
    return next(filter(None, lost), None)


def _given_up(view: View, key: Key) -> Escalation | None:
    failure = view.facts.failures.get(key)
    return Escalation(keys.action_failed(key), failure.reason, failure.detail) if failure else None


def repairs_exhausted(view: View) -> Escalation | None:
    """The checks are red again after all the tries the agent has."""
    cause, pull = view.ci_cause, view.pull
    if not cause or not pull or not spent(cause, view.repairs, view.policy.ci_repairs):
        return None
    return Escalation(
        keys.repairs_exhausted(pull.head),
        Reason.REPAIRS_EXHAUSTED,
        f"checks still fail after {len(view.repairs)} repairs: {names(view.own_failures)}",
    )


def repair_in_vain(view: View) -> Escalation | None:
    """Told of red checks, the agent ended its turn without a commit."""
    cause = view.ci_cause
    told = view.past.heard(cause) if cause else None
    if cause is None or told is None or not view.in_vain(told.at):
        return None
    return Escalation(
        keys.no_result(cause),
        Reason.REPAIRS_EXHAUSTED,
        f"the agent was told of {names(view.own_failures)} and ended its turn without a commit",
    )


def red_on_base(view: View) -> Escalation | None:
    """All that fails is red on the base branch too, so that it is not the agent's to mend."""
    failed, pull = view.failed_checks, view.pull
    if pull is None or not failed or view.own_failures or view.pending_checks:
        return None
    return Escalation(
        keys.base_red(pull.head, (check.id for check in failed)),
        Reason.BASE_RED,
        f"checks fail that are red on {pull.base_branch} too: {names(failed)}",
    )


def checks_held(view: View) -> Escalation | None:
    """Checks were cancelled or ask for an action, and nothing else is left to wait for."""
    held, pull = view.held_checks, view.pull
    if not held or pull is None or view.failed_checks or view.pending_checks:
        return None
    if pull.head_since is None or view.rerunning:
        return None
    if not view.passed(pull.head_since, view.policy.settle_seconds):
        return None
    return Escalation(
        keys.checks_held(pull.head, (check.id for check in held)),
        Reason.CHECKS_HELD,
        f"checks were cancelled or wait for a person: {names(held)}",
    )


def rounds_exhausted(view: View) -> Escalation | None:
    """Reviewers still ask for more after all the rounds the agent has, and none approves."""
    if not view.unheard or (view.approved and not view.objectors):
        return None
    cause = view.review_cause
    if cause is None or not spent(cause, view.rounds, view.policy.review_rounds):
        return None
    return Escalation(
        keys.rounds_exhausted(len(view.rounds)),
        Reason.REPAIRS_EXHAUSTED,
        f"{len(view.rounds)} rounds of review went to the agent; more were asked for",
    )


def review_in_vain(view: View) -> Escalation | None:
    """Requested changes stand, the agent was told and rests, and nothing came of it."""
    if not view.open_threads and not view.objectors:
        return None
    heard = [(told.at, cause) for cause in view.rounds if (told := view.past.heard(cause))]
    if not heard:
        return None
    at, cause = max(heard, key=lambda one: one[0])
    if not view.in_vain(at):
        return None
    if not view.passed(at, view.policy.review_escalation_seconds):
        return None
    return Escalation(
        keys.no_result(cause),
        Reason.REPAIRS_EXHAUSTED,
        "the agent was told of the requested changes and pushed nothing",
    )


def conflict_in_vain(view: View) -> Escalation | None:
    """Told of a conflict, the agent ended its turn without a commit, or tried too often."""
    cause = view.conflict_cause
    if not cause:
        return None
    told = view.past.heard(cause)
    over = spent(cause, view.merges, view.policy.conflict_repairs)
    if not (view.in_vain(told.at) if told else over):
        return None
    return Escalation(
        keys.no_result(cause),
        Reason.REPAIRS_EXHAUSTED,
        "the agent was told that it conflicts with its base, and it still does",
    )


def left_uncommitted(view: View) -> Escalation | None:
    """Reminded of uncommitted work, the agent left it so."""
    if not view.at_rest:
        return None
    cause = view.dirty_cause
    if not cause or view.past.heard(cause) is None:
        return None
    return Escalation(
        keys.no_result(cause),
        Reason.UNCOMMITTED_WORK,
        "the agent left uncommitted work in its workspace after a reminder",
    )


def nothing_to_show(view: View) -> Escalation | None:
    """The agent is finished, and there is neither a commit nor anything else in its workspace."""
    work, agent = view.facts.work, view.facts.agent
    if view.facts.pulls or not work.head or work.head != work.base or work.dirty:
        return None
    if view.stands is _QUIET:
        if not view.passed(since(view), view.policy.idle_seconds):
            return None
    elif view.stands is not _ENDED:
        return None
    words = agent.summary or (agent.exit.tail.strip() if agent.exit else "")
    return Escalation(
        keys.nothing_to_show(view.facts.run),
        Reason.NOTHING_TO_SHOW,
        "the agent finished without a commit" + (f': "{words[-300:]}"' if words else ""),
    )


#: The first that stands is the one people are told of.
ESCALATIONS: Final[tuple[Row, ...]] = (
    question,
    paths_held,
    push_refused,
    pushes_used_up,
    pull_refused,
    branch_refused,
    ready_refused,
    merge_refused,
    put_out_of_queue,
    update_refused,
    message_lost,
    repairs_exhausted,
    repair_in_vain,
    red_on_base,
    checks_held,
    rounds_exhausted,
    review_in_vain,
    conflict_in_vain,
    left_uncommitted,
    nothing_to_show,
)

#: The rows that may stand where nothing is in the way, as at most visits.
UNTROUBLED: Final = tuple(row for row in ESCALATIONS if row in (question, nothing_to_show))


def escalation(view: View) -> Escalation | None:
    """What people have to look at first, in any open pull request."""
    if not view.several:
        return first(ESCALATIONS if view.troubled else UNTROUBLED, view)
    found = (row(one) for row in ESCALATIONS for one in view.several)
    return next(filter(None, found), None)


def first(rows: tuple[Row, ...], view: View) -> Escalation | None:
    """The first cause that stands."""
    for row in rows:
        found = row(view)
        if found is not None:
            return found
    return None
