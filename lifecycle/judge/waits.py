"""Waits that take too long: people are notified of what is awaited, again at growing intervals."""

from datetime import datetime
from typing import Final, NamedTuple

from lifecycle.judge.stalls import Finding
from lifecycle.model import keys
from lifecycle.model.status import PullState, Reason
from lifecycle.read.availability import span
from lifecycle.read.merging import missing_checks
from lifecycle.read.sentences import duration, names, short
from lifecycle.read.session_view import Recheck, SessionView

_OPEN: Final = PullState.OPEN


class Lateness(NamedTuple):
    """How late something is."""

    before: int  #: How often people were to be notified before.
    least: str  #: A duration that the wait has exceeded, in words.
    until: datetime  #: When people are to be notified again: after twice the time.


def lateness(view: SessionView, since: datetime, seconds: float) -> Lateness | Recheck | None:
    """Return how late something is that was due so many seconds after `since`.

    None where it is never due, which is a limit of 0 seconds.
    """
    limit = span(seconds)
    if not limit:
        return None
    if wait := view.wait(since, seconds):
        return wait
    doublings = ((view.now - since) // limit).bit_length() - 1
    waited = limit * 2**doublings
    return Lateness(doublings, duration(waited), since + 2 * waited)


def checks_missing(view: SessionView) -> Finding | Recheck | None:
    """No check ran, though some are expected."""
    pull, missing = view.pull, missing_checks(view)
    if pull is None or not missing or pull.draft or pull.head_since is None:
        return None
    late = lateness(view, pull.head_since, view.policy.checks_missing_seconds)
    if not isinstance(late, Lateness):
        return late
    why = (
        f"no checks ran on {short(pull.head)} for {late.least}, though they ran for the last "
        f"merged pull requests: {', '.join(missing)}"
    )
    key = keys.checks_missing(pull.head, str(late.before))
    return Finding(key, Reason.CHECKS_MISSING, why, late.until)


def checks_disputed(view: SessionView) -> Finding | Recheck | None:
    """GitHub says that the head can be merged, and a required check is pending as we read it."""
    pull = view.pull
    if pull is None or pull.draft or pull.clean_since is None or view.failed_checks:
        return None
    pending = [check for check in view.pending_checks if check.required]
    if not pending:
        return None
    late = lateness(view, pull.clean_since, view.policy.checks_missing_seconds)
    if not isinstance(late, Lateness):
        return late
    state = "is pending" if any(check.reported for check in pending) else "has not reported"
    why = (
        f"GitHub has said for {late.least} that {short(pull.head)} can be merged, but the required "
        f"check {names(pending)} {state}"
    )
    key = keys.checks_disputed(pull.head, str(late.before))
    return Finding(key, Reason.CHECKS_DISPUTED, why, late.until)
