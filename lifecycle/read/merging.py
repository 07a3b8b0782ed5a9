"""Says whether the bot may merge a pull request, and whether the policy or a person wants it."""

from lifecycle.model.policy import AutoMerge, Mode
from lifecycle.model.status import Reason
from lifecycle.model.times import shifted, span
from lifecycle.read.session_view import SessionView


def merges(view: SessionView) -> bool:
    """Whether the bot merges the pull request once nothing blocks it."""
    return merge_wanted(view) and not barred(view)


def merge_wanted(view: SessionView) -> bool:
    """Whether the bot is to merge the pull request, by the policy or by a person's `merge` command.

    Always False while the setting `auto-merge` is `off`, which forbids merging even on command.
    Also False after a person's `cancel` command, until the next `merge` command.
    """
    if view.policy.auto_merge is AutoMerge.OFF or view.merge_cancelled:
        return False
    return view.policy.merges_by_itself or view.merge_command is not None


def barred(view: SessionView) -> str:
    """Return why the base branch's rules let only people merge; empty if the bot may merge too.

    With a merge queue the bot may merge, because GitHub then pushes to the base.
    """
    pull = view.pull
    if pull is None or not pull.barred or pull.queue:
        return ""
    if pull.barred == "lock":  # It is read-only for people too.
        who = "only people who may bypass the lock can merge into it"
        return f"the branch {pull.base_branch} is locked: {who}"
    return f"the {pull.barred} of {pull.base_branch} does not let the bot push to it"


def by_hand(view: SessionView) -> bool:
    """Whether the policy or the base branch's rules let only people merge the pull request."""
    return view.policy.auto_merge is AutoMerge.OFF or bool(barred(view))


def awaited_merge(view: SessionView) -> Reason | None:
    """Return why a mergeable pull request waits for a person; None if the bot merges it."""
    if view.policy.auto_merge is AutoMerge.OFF or view.policy.mode is Mode.OBSERVE:
        return Reason.AWAITS_MANUAL_MERGE
    if barred(view):
        return Reason.MERGE_BARRED
    return None if merges(view) else Reason.AWAITS_MERGE


def checks_waived(view: SessionView) -> bool:
    """Whether a person commanded to merge without the pending checks, after they took too long.

    False if GitHub requires one of them.
    """
    pull, command = view.pull, view.merge_command
    since = (pull.pending_since or pull.head_since) if pull is not None else None
    limit = span(view.policy.checks_pending_seconds)
    if command is None or since is None or not limit or command.at < shifted(since, limit):
        return False
    return not any(check.required for check in view.pending_checks)


def missing_checks(view: SessionView) -> tuple[str, ...]:
    """Return the checks that ran for the last merged pull requests, if no check ran here.

    The result is also empty without `Policy.expect_checks`, and after a `merge` command that came
    at least `Policy.settle_seconds` after the push.
    """
    pull, policy = view.pull, view.policy
    if pull is None or view.passes or not pull.checks_expected or not policy.expect_checks:
        return ()
    if view.failed_checks or view.pending_checks or view.held_checks:
        return ()
    command, since = view.merge_command, pull.head_since
    overridden = command and since and command.at >= shifted(since, span(policy.settle_seconds))
    return () if overridden else pull.checks_expected
