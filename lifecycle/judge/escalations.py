"""Detects escalations: problems that need a person. Each function detects one kind of problem.

The first sentence of its docstring says when it returns a finding.
"""

from datetime import datetime
from typing import Final

from lifecycle.judge.stalls import Finding, Found, Row, first, since
from lifecycle.judge.waits import checks_disputed, checks_missing
from lifecycle.model import keys
from lifecycle.model.key import Key
from lifecycle.model.status import HELD, Merge, PullState, Reason
from lifecycle.model.text import counted
from lifecycle.model.times import shifted, span
from lifecycle.read import causes
from lifecycle.read.availability import Availability
from lifecycle.read.pulls import landing_key
from lifecycle.read.sentences import clock, names, short
from lifecycle.read.session_view import Recheck, SessionView, earliest

_WAITING, _IDLE, _EXITED = Availability.WAITING, Availability.IDLE, Availability.EXITED
_CLEAN, _OPEN = Merge.CLEAN, PullState.OPEN
#: The most questions of which people are notified within an hour if they answer none: an agent that
#: asks endlessly would use up GitHub's limit of comments, which all sessions share.
_QUESTIONS_PER_HOUR = 10

# -- the agent cannot continue by itself -----------------------------------------------------------


def question(view: SessionView) -> Finding | None:
    """The agent waits for an answer."""
    if view.last_availability is not _WAITING:
        return None
    agent = view.facts.agent
    asked = "the agent asks something in its terminal"
    if agent.question:
        asked = f"the agent asks: {agent.question}"
    key = keys.question(agent.since, agent.run)
    wait = None
    if keys.notice(key) not in view.facts.done:
        wait = view.pace(view.history.unanswered, _QUESTIONS_PER_HOUR)
    # In a chat the question is for the person who talks to the agent, so nobody is notified.
    silent = view.is_chat or wait is not None
    until = wait.at if wait else None
    return Finding(None if silent else key, Reason.AGENT_QUESTION, asked, until)


def paths_held(view: SessionView) -> Finding | None:
    """The commits are not pushed until a person reviews them and gives the command `allow`."""
    head = view.facts.work.head
    held = _given_up(view, keys.push(head))
    if held is None or held.reason not in HELD:
        return None
    what = "changes protected paths and " if held.reason is Reason.PROTECTED_PATHS else ""
    why = f"{short(head)} {what}was not pushed: {held.because}"
    how = f"`/mergewright allow {short(head)}` pushes it anyway"
    return held._replace(key=keys.protected_paths(head), because=f"{why}; {how}")


def push_refused(view: SessionView) -> Finding | None:
    """The commits could not be pushed; if their messages were refused, rewording did not help."""
    cause = causes.commit_messages(view)
    if (
        cause
        and not causes.spent(cause, view.history.first_sent(causes.REWORD), view.policy.ci_repairs)
        and (view.history.last_sent(cause) is None or not view.at_rest)
    ):
        return None
    head = view.facts.work.head
    return _given_up(view, keys.push(head), f"{short(head)} was not pushed")


def left_off_branch(view: SessionView) -> Finding | None:
    """The agent's commits are not on the session's branch, although it was asked to move them."""
    commits, cause = view.facts.work.off_branch, causes.off_branch(view)
    if commits is None or cause is None or not view.at_rest:
        return None
    tries = view.history.first_sent(causes.MOVE)
    if causes.due(view, cause, tries, view.policy.ci_repairs):
        return None
    where = f"branch {commits.branch}" if commits.branch else "a detached HEAD"
    commits_there = f"the agent's commits up to {short(commits.head)}"
    why = f"{commits_there} are on {where} instead of {view.facts.branch}"
    return Finding(keys.off_branch(len(tries)), Reason.OFF_BRANCH, why)


def pushes_used_up(view: SessionView) -> Finding | None:
    """The limit of pushes per hour holds back the unpushed commits."""
    next_at = view.next_push_at if view.at_rest and view.unpushed else None
    if next_at is None:
        return None
    most = view.policy.pushes_per_hour
    why = (
        f"the branch was pushed or updated {counted(most, 'time')} within an hour, the limit "
        f"(`pushes-per-hour`); the next push is at {clock(next_at)}"
    )
    key = keys.pushes_used_up(shifted(next_at, -span(3600)))
    return Finding(key, Reason.PUSHES_USED_UP, why, next_at)


def pull_refused(view: SessionView) -> Finding | None:
    """The pull request could not be opened."""
    if view.pull is not None:
        return None
    what = "the pull request could not be opened"
    return _given_up(view, keys.open_pull(view.facts.branch), what)


def ready_refused(view: SessionView) -> Finding | None:
    """The draft could not be marked as ready for review."""
    pull = view.pull
    if pull is None or pull.state is not _OPEN or not pull.draft:
        return None
    what = f"#{pull.number} could not be marked as ready for review"
    return _given_up(view, keys.make_ready(pull.number), what)


def merge_refused(view: SessionView) -> Finding | None:
    """The current head could not be merged: GitHub or the bot refused, or all attempts failed."""
    pull = view.pull
    if pull is None:
        return None
    return _given_up(view, landing_key(pull), f"#{pull.number} could not be merged")


def removed_from_queue(view: SessionView) -> Finding | None:
    """The merge queue removed the pull request without a failed check, though it can be merged."""
    out, pull = view.dequeued, view.pull
    if out is None or out.checks or pull is None or pull.merge is not _CLEAN:
        return None
    why = f"GitHub's merge queue removed the pull request: {out.reason or 'no reason given'}"
    return Finding(keys.dequeued(pull.head, out.at), Reason.DEQUEUED, why)


def update_refused(view: SessionView) -> Finding | None:
    """A person commanded `update` of a branch that was not behind its base, and GitHub refused."""
    command = view.command("update")
    if command is None or view.pull is None or view.pull.merge is Merge.CONFLICT:
        return None  # A conflict goes to the agent.
    what = f"#{view.pull.number} could not be updated from its base branch"
    return _given_up(view, keys.update_on_command(command.key, view.pull.head), what)


def branch_refused(view: SessionView) -> Finding | None:
    """Merging the commits of others into the workspace failed, and not because of a conflict."""
    if view.pull is None or not view.has_remote_commits:
        return None
    what = "the commits of others could not be merged into the workspace"
    return _given_up(view, keys.merge_remote(view.pull.head), what)


def message_lost(view: SessionView) -> Finding | None:
    """A message whose cause still exists could not be delivered to the current run."""
    found = (
        causes.ci(view),
        causes.review(view),
        causes.conflict(view),
        causes.remote_commits(view),
        causes.uncommitted(view),
        causes.commit_messages(view),
        causes.off_branch(view),
        *causes.forwarded(view),
    )
    what, run = "a message could not be given to the agent", view.facts.run
    lost = (_given_up(view, cause.of_run(run), what) for cause in found if cause)
    return next(filter(None, lost), None)


def _given_up(view: SessionView, key: Key, what: str = "") -> Finding | None:
    """Return a finding if the action with this key failed. `what` precedes the error's details."""
    failure = view.facts.failures.get(key)
    if failure is None:
        return None
    why = f"{what}: {failure.detail}" if what else failure.detail
    return Finding(keys.action_failed(key), failure.reason, why)


def repairs_exhausted(view: SessionView) -> Finding | None:
    """The checks fail again after all the agent's tries."""
    cause, pull, tries = causes.ci(view), view.pull, causes.repairs(view)
    if not cause or not pull or not causes.spent(cause, tries, view.policy.ci_repairs):
        return None
    tried = f"checks still fail after the agent tried to repair them {counted(len(tries), 'time')}"
    why = tried if tries else "checks fail, and `ci-repairs` is 0"
    why = f"{why}: {names(view.checks_to_fix)}"
    return Finding(keys.repairs_exhausted(pull.head), Reason.REPAIRS_EXHAUSTED, why)


def repair_without_commit(view: SessionView) -> Finding | None:
    """The agent was sent failed checks and ended its turn without a commit."""
    cause = causes.ci(view)
    sent = view.history.last_sent(cause) if cause else None
    if cause is None or sent is None or not view.without_commit_since(sent.at):
        return None
    failed = names(view.checks_to_fix)
    why = f"the agent was sent the failed checks ({failed}) but ended its turn without a commit"
    return Finding(keys.no_result(cause), Reason.REPAIRS_EXHAUSTED, why)


def red_on_base(view: SessionView) -> Finding | None:
    """No check is pending, and all failed ones fail on the base branch too: no fix would help."""
    failed, pull = view.failed_checks, view.pull
    if pull is None or not failed or view.checks_to_fix or view.pending_checks:
        return None
    why = f"all failed checks also fail on {pull.base_branch}: {names(failed)}"
    return Finding(keys.base_red(pull.head, (check.id for check in failed)), Reason.BASE_RED, why)


def checks_held(view: SessionView) -> Finding | Recheck | None:
    """Checks are cancelled, stale or wait for a person, and no other one failed or is pending."""
    held, pull = view.held_checks, view.pull
    if not held or pull is None or view.failed_checks or view.pending_checks:
        return None
    if pull.head_since is None or view.rerunning:
        return None
    if wait := view.wait(pull.head_since, view.policy.settle_seconds):
        return wait
    key = keys.checks_held(pull.head, (check.id for check in held))
    why = f"checks were cancelled, went stale or wait for a person: {names(held)}"
    return Finding(key, Reason.CHECKS_HELD, why)


def rounds_exhausted(view: SessionView) -> Finding | None:
    """New remarks came after the last allowed review round, and nobody approved.

    An approval does not count while somebody else requests changes.
    """
    if not view.unsent_remarks or (view.approved and not view.objectors):
        return None
    cause, rounds = causes.review(view), causes.review_rounds(view)
    if cause is None or not causes.spent(cause, rounds, view.policy.review_rounds):
        return None
    limit = f"{counted(len(rounds), 'round')} of review, the limit (`review-rounds`)"
    why = f"comments or reviews came after {limit}, so the agent did not get them"
    if not rounds:
        why = "comments or reviews came, which the agent does not get: `review-rounds` is 0"
    return Finding(keys.rounds_exhausted(len(rounds)), Reason.REPAIRS_EXHAUSTED, why)


def review_without_commit(view: SessionView) -> Finding | Recheck | None:
    """The agent was sent requested changes and pushed nothing for a while."""
    if not view.open_threads and not view.objectors:
        return None
    last_sent, rounds = view.history.last_sent, causes.review_rounds(view)
    sent = [(message.at, cause) for cause in rounds if (message := last_sent(cause))]
    if not sent:
        return None
    at, cause = max(sent, key=lambda one: one[0])
    # A commit may have been pushed between a message that was lost with its run and its repetition.
    if not view.without_commit_since(at) or view.history.pushed_since(rounds[cause]):
        return None
    if wait := view.wait(at, view.policy.review_escalation_seconds):
        return wait
    why = "the agent has pushed nothing since it was sent the newest comments or reviews"
    return Finding(keys.no_result(cause), Reason.REPAIRS_EXHAUSTED, why)


def conflict_unresolved(view: SessionView) -> Finding | None:
    """The agent did not resolve a conflict with the base branch."""
    cause = causes.conflict(view)
    if not cause:
        return None
    sent = view.history.last_sent(cause)
    over = causes.spent(cause, causes.conflict_repairs(view), view.policy.conflict_repairs)
    if not (view.without_commit_since(sent.at) if sent else over):
        return None
    why = "the conflict with the base branch remains after the agent was asked to resolve it"
    if not sent and not causes.conflict_repairs(view):
        why = "the branch conflicts with its base, and `conflict-repairs` is 0"
    return Finding(keys.no_result(cause), Reason.REPAIRS_EXHAUSTED, why)


def left_uncommitted(view: SessionView) -> Finding | None:
    """The agent left uncommitted work after a reminder."""
    if not view.at_rest:
        return None
    cause = causes.uncommitted(view)
    if not cause or view.history.last_sent(cause) is None:
        return None
    why = "the agent still has uncommitted work, although it was reminded"
    return Finding(keys.no_result(cause), Reason.UNCOMMITTED_WORK, why)


def workspace_unreadable(view: SessionView) -> Finding | Recheck | None:
    """The agent has been at rest for a while, and its workspace cannot be read."""
    failure, agent = view.facts.work.unreadable, view.facts.agent
    if not failure or not view.at_rest:
        return None
    if wait := view.wait(since(view), view.policy.stuck_seconds):
        return wait
    key = keys.stuck(Reason.WORKSPACE_UNREADABLE, agent.since, agent.run)
    return Finding(key, Reason.WORKSPACE_UNREADABLE, f"the workspace cannot be read: {failure}")


def nothing_to_show(view: SessionView) -> Finding | Recheck | None:
    """The agent finished and changed nothing."""
    work, agent = view.facts.work, view.facts.agent
    if view.is_chat or view.facts.pulls or not work.head or work.head != work.base or work.dirty:
        return None
    if work.off_branch is not None or work.unreadable:
        return None
    if view.last_availability is _IDLE:
        if wait := view.wait(since(view), view.policy.idle_seconds):
            return wait
    elif view.last_availability is not _EXITED:
        return None
    words = agent.summary or (agent.exit.tail.strip() if agent.exit else "")
    why = "the agent finished without a commit" + (f': "{words[-300:]}"' if words else "")
    return Finding(keys.nothing_to_show(view.facts.run), Reason.NOTHING_TO_SHOW, why)


#: All rows, the most important first: people are notified of the first finding only.
ESCALATIONS: Final[tuple[Row, ...]] = (
    question,
    paths_held,
    push_refused,
    left_off_branch,
    pushes_used_up,
    pull_refused,
    branch_refused,
    ready_refused,
    merge_refused,
    removed_from_queue,
    update_refused,
    message_lost,
    repairs_exhausted,
    repair_without_commit,
    red_on_base,
    checks_held,
    checks_disputed,
    checks_missing,
    rounds_exhausted,
    review_without_commit,
    conflict_unresolved,
    left_uncommitted,
    workspace_unreadable,
    nothing_to_show,
)

#: The rows that may find something even if `SessionView.may_have_findings` is False.
UNTROUBLED: Final = tuple(row for row in ESCALATIONS if row in (question, nothing_to_show))

#: The rows that may find something in a chat, whose work is not pushed.
IN_CHAT: Final = tuple(row for row in ESCALATIONS if row in (question, message_lost))


def escalation(view: SessionView) -> Found:
    """Return the session's most important escalation, and when time alone may change it.

    Either may be None. If several pull requests are open, all of them are considered.
    """
    if view.is_chat:
        return first(IN_CHAT, view)
    if not view.several:
        if view.may_have_findings():
            return first(ESCALATIONS, view)
        untroubled = view.pull is not None and view.last_availability is not _WAITING
        return (None, None) if untroubled else first(UNTROUBLED, view)
    recheck_at: datetime | None = None
    for row in ESCALATIONS:
        for one in view.several:
            finding, later = first((row,), one)
            recheck_at = earliest(recheck_at, later)
            if finding is not None:
                return finding, recheck_at
    return None, recheck_at
