"""Finds the causes of messages to the agent. A cause is a message's key without the run's number.

A function that finds no cause returns None. While `SessionView.handed_to_human` is true, no cause
is found for failed checks, conflicts or reviews; all other causes are found as usual. A try is a
cause whose message was sent to the agent. Tries before a person's last push to the branch do not
count.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from lifecycle.model import keys
from lifecycle.model.facts import Command
from lifecycle.model.key import Key, KeyKind, StartCause
from lifecycle.model.names import MAKES_PULL
from lifecycle.model.status import Merge, Reason
from lifecycle.read.session_view import REQUESTS, SessionView

_BEHIND, _CONFLICT = Merge.BEHIND, Merge.CONFLICT
_CI, _REVIEW = frozenset({KeyKind.FIX_CI}), frozenset({KeyKind.ADDRESS_REVIEW})
_CONFLICTS: Final = frozenset({KeyKind.RESOLVE_CONFLICT})
REWORD: Final = frozenset({KeyKind.REWORD})
MOVE: Final = frozenset({KeyKind.MOVE_COMMITS})
#: Commands whose text is sent to the agent, or that ask it for a review or a pull request.
_FORWARDED: Final = ("tell", "answer", "review", MAKES_PULL)


def ci(view: SessionView) -> Key | None:
    """Return the cause for failed checks of the head, once no check is pending or due for a rerun.

    Returns None if all these checks fail on the base branch, or if the head is not the workspace's.
    """
    if not view.failed_checks or view.pending_checks or view.handed_to_human or not view.current:
        return None
    failed = view.checks_to_fix
    if view.pull is None or not failed or view.rerunning:
        return None
    return keys.fix_ci(view.pull.head, (check.id for check in failed))


def conflict(view: SessionView) -> Key | None:
    """Return the cause if the head conflicts with its base, or GitHub refused to merge the base."""
    pull = view.pull
    if pull is None or view.handed_to_human or not view.current:
        return None
    if pull.merge is _CONFLICT or (
        pull.merge is _BEHIND and keys.update_branch(pull.base, pull.head) in view.facts.failures
    ):
        return keys.resolve_conflict(pull.base, pull.head)
    return None


def remote_commits(view: SessionView) -> Key | None:
    """Return the cause if GitHub's branch has others' commits that the workspace lacks."""
    return keys.merge_branch(view.pull.head) if view.pull and view.has_remote_commits else None


def review(view: SessionView) -> Key | None:
    """Return the cause for remarks that count (`SessionView.counts`) and are not sent yet."""
    if not view.unsent_remarks or view.handed_to_human:
        return None
    return keys.address_review(remark.id for remark in view.unsent_remarks)


def forwarded(view: SessionView) -> dict[Key, Command]:
    """Return the commands that the bot has yet to forward to the agent, keyed by cause."""
    commands = [command for command in view.facts.commands if command.kind in _FORWARDED]
    causes = {keys.forward(command.key): command for command in commands}
    return {cause: one for cause, one in causes.items() if view.history.last_sent(cause) is None}


def uncommitted(view: SessionView) -> Key | None:
    """Return the key of a message about uncommitted work; None if there is no such work.

    The key changes whenever the agent gets another request, and whenever a run fails or is lost.
    """
    if not view.facts.work.dirty:
        return None
    requests = view.history.first_sent(REQUESTS)
    return keys.commit_work(len(requests) + len(view.history.ended_early))


def commit_messages(view: SessionView) -> Key | None:
    """Return the cause for commits that the bot refused to push because of their messages."""
    head = view.facts.work.head
    refused = view.facts.failures.get(keys.push(head))
    worded = refused is not None and refused.reason is Reason.COMMIT_MESSAGES
    return keys.reword(head) if worded else None


def off_branch(view: SessionView) -> Key | None:
    """Return the cause for commits off the session's branch that the bot cannot move there."""
    commits = view.facts.work.off_branch
    if commits is None:
        return None
    adopts = commits.adoptable and keys.adopt(commits.head) not in view.facts.failures
    return None if adopts else keys.move_commits(commits.head)


# -- tries -----------------------------------------------------------------------------------------


def repairs(view: SessionView) -> dict[Key, datetime]:
    """Return when the agent was first sent each message about failed checks.

    The keys are the causes of these messages. A message is omitted if it was first sent before the
    last time that all checks of the pull request turned green (at any head), or before a person's
    last push to the pull request.
    """
    green = view.pull.green_since if view.pull else None
    return view.history.first_sent(_CI, _since_person(view, green))


def conflict_repairs(view: SessionView) -> dict[Key, datetime]:
    """Return the tries to resolve a conflict with the current base commit, with their times."""
    base = view.pull.base if view.pull else ""
    sent = view.history.first_sent(_CONFLICTS, _since_person(view))
    return {cause: at for cause, at in sent.items() if cause.cause[0] == base}


def review_rounds(view: SessionView) -> dict[Key, datetime]:
    """Return when the agent was first sent each message about reviews and comments.

    The keys are the causes of these messages. Messages that were first sent before a person's last
    push to the pull request are omitted.
    """
    return view.history.first_sent(_REVIEW, _since_person(view))


def runs_in_a_row(view: SessionView, cause: StartCause) -> int:
    """Return how often this cause has led to a new run since the last progress.

    Progress is a new pull request, green checks, a person's push or a new request, but not a push
    by the bot.
    """
    opened = view.facts.done.get(keys.open_pull(view.facts.branch))
    marks = list(view.history.first_sent(REQUESTS).values())
    marks += [opened.at] if opened else []
    for pull in view.facts.pulls:
        marks += [pull.green_since] if pull.green_since else []
        marks += [pull.person.at] if pull.person else []
    since = max(marks, default=None)
    runs = view.history.ended_by(cause)
    return sum(since is None or at > since for at in runs.values())


def spent(cause: Key, tries: Mapping[Key, datetime], most: int) -> bool:
    """Whether `most` causes or more were tried, and `cause` was not.

    A cause that was tried already may be sent again, because its message may be lost with a run.
    """
    return cause not in tries and len(tries) >= most


def due(view: SessionView, cause: Key, tries: Mapping[Key, datetime], most: int) -> bool:
    """Whether to send the agent a message for this cause: none has arrived, and a try is left.

    A cause whose message was lost with its run is sent again, even without a try left (`spent`).
    """
    return view.history.last_sent(cause) is None and not spent(cause, tries, most)


def _since_person(view: SessionView, since: datetime | None = None) -> datetime | None:
    person = view.pull.person if view.pull else None
    return max(filter(None, (since, person.at if person else None)), default=None)
