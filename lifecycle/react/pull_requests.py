"""Pushes the work, opens and updates its pull request, merges it and cleans up."""

from typing import Final

from lifecycle.judge.judge import Judged, Wanted
from lifecycle.judge.rules import ready_but_behind
from lifecycle.judge.signals import Ci
from lifecycle.model import actions as do
from lifecycle.model import keys
from lifecycle.model.facts import Pull
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.policy import AutoMerge, MergeMethod
from lifecycle.model.status import Merge, Origin
from lifecycle.react.messages import message
from lifecycle.read.causes import spent
from lifecycle.read.merging import barred, by_hand, merges
from lifecycle.read.pulls import landing_key
from lifecycle.read.restores import allowed
from lifecycle.read.session_view import Recheck, SessionView


def publish(judged: Judged) -> Wanted:
    """Push commits within the limit of pushes per hour; a person's `allow` waives some checks."""
    facts, policy = judged.view.facts, judged.view.policy
    head = facts.work.head
    if next_at := judged.view.next_push_at:
        yield Recheck(next_at)
        return
    if allowed(facts, head):
        yield do.Publish(key=keys.push(head), head=head, sign=policy.sign_commits)
        return
    yield do.Publish(
        key=keys.push(head),
        head=head,
        protected=policy.protected_paths,
        checked=True,
        max_file_mb=policy.max_file_mb,
        commit_authors=policy.commit_authors,
        sign=policy.sign_commits,
    )


def adopt(judged: Judged) -> Wanted:
    """Move the session's branch to the checked-out commits, if these build on the branch."""
    work = judged.view.facts.work
    commits = work.off_branch
    if commits is not None and commits.adoptable:
        yield do.AdoptCommits(key=keys.adopt(commits.head), head=commits.head, onto=work.head)


def merge_remote(judged: Judged) -> Wanted:
    """Merge remote commits into the workspace; if they conflict, ask the agent to merge them."""
    view, pull, work = judged.view, judged.view.pull, judged.view.facts.work
    if pull is None or not view.has_remote_commits:
        return
    key = keys.merge_remote(pull.head)
    if key in view.facts.done:
        values = {"head": pull.head, "pull": str(pull.number)}
        prompt = do.Prompt(name="merge_branch", values=values)
        yield from message(judged, keys.merge_branch(pull.head), prompt)
    elif work.dirty is False:
        yield do.MergeRemote(key=key, head=pull.head, into=work.head)


def update(judged: Judged) -> Wanted:
    """Have GitHub update a branch that is behind its base, on command or before its merge.

    Every update starts all checks again, so a branch that is not to be merged now, such as one
    without a review, is updated only on command. Updates count towards the limit of pushes per
    hour, which holds back updates without a command.
    """
    view, pull, command = judged.view, judged.view.pull, judged.view.command("update")
    if pull is None or not view.current:
        return
    asked = command is not None and not view.history.updated_since(command.at)
    if not asked and not (ready_but_behind(judged.signals) and merges(view)):
        return
    if not asked and (next_at := view.next_push_at):
        yield Recheck(next_at)
        return
    key = keys.update_branch(pull.base, pull.head)
    yield do.UpdateBranch(key=key, number=pull.number, head=pull.head)


def offer(judged: Judged) -> Wanted:
    """Announce a pull request that is ready but behind its base, if the bot does not merge it."""
    view, pull = judged.view, judged.view.pull
    if pull is not None and not merges(view):
        yield _announced(judged, pull, "ready_behind")


def _announced(judged: Judged, pull: Pull, topic: str) -> do.Comment:
    """Return the comment that says that the pull request is ready and who may merge it.

    `topic`: the comment's topic if the bot may merge. If only people may, `_by_hand` is appended.
    """
    view, key = judged.view, keys.ready_to_merge(pull.head)
    if not by_hand(view):
        return judged.comment(key, topic, sha=pull.head)
    # With `off`, the bot would not merge without the rule either.
    why = "" if view.policy.auto_merge is AutoMerge.OFF else barred(view)
    return judged.comment(key, f"{topic}_by_hand", sha=pull.head, why=why)


def update_asked(judged: Judged) -> Wanted:
    """Carry out the command `update` if GitHub does not report the branch as behind its base.

    For a branch that is reported as behind, the function `update` carries out the command.
    """
    view, pull, command = judged.view, judged.view.pull, judged.view.command("update")
    if pull is None or command is None or view.history.updated_since(command.at):
        return
    if view.current and pull.merge is not Merge.BEHIND:
        key = keys.update_on_command(command.key, pull.head)
        yield do.UpdateBranch(key=key, number=pull.number, head=pull.head)


def rerun(judged: Judged) -> Wanted:
    """Rerun cancelled checks and flaky failures once per head, unless other checks need a fix."""
    view, pull = judged.view, judged.view.pull
    if pull is not None and view.rerunning:
        runs = tuple(check.run_id for check in view.rerunnable_checks if check.run_id is not None)
        yield do.Rerun(key=keys.rerun(pull.head), number=pull.number, runs=runs)


def open_pull(judged: Judged) -> Wanted:
    """Open the pull request of pushed commits, after the self-review if the policy wants one."""
    view, facts = judged.view, judged.view.facts
    if view.pushed and not awaited(view):
        key = keys.open_pull(facts.branch)
        opened = do.OpenPull(key=key, head=facts.work.head, draft=view.policy.draft)
        yield review_wait(view) or opened


def land(judged: Judged) -> Wanted:
    """Merge or queue the judged commit by policy or on command; otherwise announce it as ready."""
    view, pull = judged.view, judged.view.pull
    if pull is None:
        return
    policy, command = view.policy, view.merge_command
    if not merges(view):
        yield _announced(judged, pull, "ready")
        return
    by = command.actor if command and not policy.merges_by_itself else ""
    if pull.queue:
        yield do.Enqueue(
            key=landing_key(pull),
            number=pull.number,
            sha=pull.head,
            base=pull.base_branch,
            by=by,
        )
    else:
        named = command.text if command else ""
        yield do.MergePull(
            key=landing_key(pull),
            number=pull.number,
            sha=pull.head,
            base=pull.base_branch,
            method=MergeMethod(named) if named else policy.merge_method,
            asked=bool(named),
            by=by,
        )


def take_out_of_queue(judged: Judged) -> Wanted:
    """Remove a pull request from the merge queue if the bot added it and a person cancels."""
    view, pull = judged.view, judged.view.pull
    if pull is None or pull.merge is not Merge.QUEUED or not view.merge_cancelled:
        return
    queued = landing_key(pull)
    if queued in view.facts.done:
        yield do.Dequeue(key=keys.dequeue(queued), number=pull.number)


def tidy(judged: Judged) -> Wanted:
    """Delete the merged branch, and close the issue if it is still open.

    The policy can turn off either step (`delete_branch`, `close_issue`). The branch of an adopted
    pull request is always kept.
    """
    view, pull, policy = judged.view, judged.view.pull, judged.view.policy
    if pull is None:
        return
    if policy.delete_branch and view.facts.origin is not Origin.PULL:
        key = keys.delete_branch(view.facts.branch)
        base = pull.base_branch
        yield do.DeleteBranch(key=key, branch=view.facts.branch, sha=pull.head, base=base)
    issue = view.facts.issue
    if policy.close_issue and issue.number and issue.open:
        yield do.CloseIssue(key=keys.close_issue(), number=issue.number)


def make_ready(judged: Judged) -> Wanted:
    """If `Policy.draft` is set, mark a draft as ready once checks pass, unless people undid that.

    Many workflows skip drafts, so a draft on which no check ran is made ready too. An adopted draft
    is left as the person made it.
    """
    view, pull = judged.view, judged.view.pull
    if pull is None or not view.policy.draft or not view.current:
        return
    if view.facts.origin is Origin.PULL and pull.branch == view.facts.branch:
        return
    wait = None
    if judged.signals.ci not in (Ci.PASSING, Ci.NONE, Ci.MISSING):
        if not pull.checks_complete or pull.head_since is None:
            return
        if any(check.reported for check in pull.checks):
            return
        # Checks are expected and none has begun: wait some time for one to begin.
        wait = view.wait(pull.head_since, view.policy.settle_seconds)
    yield wait or do.MakeReady(key=keys.make_ready(pull.number), number=pull.number)


def ask_reviewers(judged: Judged) -> Wanted:
    """Request the configured reviews once for each pull request, when checks pass or none ran.

    If GitHub refuses the request, people are warned.
    """
    pull, reviewers, facts = judged.view.pull, judged.view.policy.reviewers, judged.view.facts
    if pull is None or not reviewers:
        return
    key = keys.request_review(pull.number)
    yield do.RequestReview(key=key, number=pull.number, reviewers=reviewers)
    if refused := facts.failures.get(key):
        because = (
            f"the review could not be requested from {', '.join(reviewers)}: request it on GitHub,"
            f" and check the setting `policy.reviewers`. The error: {refused.detail}"
        )
        yield judged.comment(keys.warning(key), "warning", session=facts.session, because=because)


_SELF_REVIEW: Final = frozenset({KeyKind.SELF_REVIEW})


def self_review(judged: Judged) -> Wanted:
    """Ask the agent to review its own change once before the pull request is opened."""
    view, policy = judged.view, judged.view.policy
    if policy.self_review and view.pushed and (cause := _cause(view)):
        values = {"base": view.facts.work.base, "head": view.facts.work.head}
        yield from message(judged, cause, do.Prompt(name="self_review", values=values))


def awaited(view: SessionView) -> bool:
    """Whether the self-review is still to be requested; False if the request cannot be sent."""
    cause = _cause(view) if view.policy.self_review else None
    return cause is not None and cause.of_run(view.facts.run) not in view.facts.failures


def review_wait(view: SessionView) -> Recheck | None:
    """Return the wait for the self-review's end; None if it ended, is late or was not requested."""
    policy = view.policy
    if not policy.self_review or view.at_rest or _cause(view):
        return None
    asked = max(view.history.first_sent(_SELF_REVIEW).values())
    return view.wait(asked, policy.self_review_seconds)


def _cause(view: SessionView) -> Key | None:
    """Return the key of the self-review to request for the current commit; None if none is due.

    A self-review is due if none was ever requested, for this or another commit. It is also due if
    the request for the current commit was lost with the agent's run.
    """
    cause = keys.self_review(view.facts.work.head)
    asked = view.history.last_sent(cause) is not None
    return None if asked or spent(cause, view.history.first_sent(_SELF_REVIEW), 1) else cause
