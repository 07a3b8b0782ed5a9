"""Detects waits that take too long, of which people are notified at growing intervals."""

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from lifecycle.judge.rules import blockers_for, ready
from lifecycle.judge.signals import REMEMBERED, Ci, Signals, When, one_of
from lifecycle.judge.stalls import Finding
from lifecycle.model import keys
from lifecycle.model.policy import Policy
from lifecycle.model.status import Reason
from lifecycle.model.times import shifted, span
from lifecycle.read.merging import barred, merge_wanted, missing_checks
from lifecycle.read.sentences import RESTARTED, duration, names, sentence, short
from lifecycle.read.session_view import Recheck, SessionView


class Lateness(NamedTuple):
    """By how much a wait has exceeded its limit."""

    before: int  #: The number of earlier notifications.
    least: str  #: The limit, or the last doubling of it, that the wait has exceeded, in words.
    until: datetime  #: When people are notified again: when the wait is twice as long as `least`.


def lateness(view: SessionView, since: datetime, seconds: float) -> Lateness | Recheck | None:
    """Return by how much a wait since `since` exceeds `seconds`, or a `Recheck` for when it will.

    None if `seconds` is 0, which means no limit.
    """
    limit = span(seconds)
    if not limit:
        return None
    if wait := view.wait(since, seconds):
        return wait
    doublings = ((view.now - since) // limit).bit_length() - 1
    waited = limit * 2**doublings
    return Lateness(doublings, duration(waited), shifted(since, 2 * waited))


def checks_missing(view: SessionView) -> Finding | Recheck | None:
    """The head has had no check for too long, but some are expected."""
    pull, missing = view.pull, missing_checks(view)
    if pull is None or not missing or pull.draft or pull.head_since is None:
        return None
    late = lateness(view, pull.head_since, view.policy.checks_missing_seconds)
    if not isinstance(late, Lateness):
        return late
    why = (
        f"no check ran on {short(pull.head)} for {late.least}, but these ran for the last merged "
        f"pull requests: {', '.join(missing)}"
    )
    key = keys.checks_missing(pull.head, str(late.before))
    return Finding(key, Reason.CHECKS_MISSING, why, late.until)


def checks_disputed(view: SessionView) -> Finding | Recheck | None:
    """GitHub has said for too long that the head can be merged, but a required check is pending."""
    pull = view.pull
    if pull is None or pull.draft or pull.clean_since is None or view.failed_checks:
        return None
    pending = [check for check in view.pending_checks if check.required]
    if not pending:
        return None
    late = lateness(view, pull.clean_since, view.policy.checks_missing_seconds)
    if not isinstance(late, Lateness):
        return late
    why = (
        f"GitHub has said for {late.least} that {short(pull.head)} can be merged, but these "
        f"required checks have not finished or reported: {names(pending)}"
    )
    key = keys.checks_disputed(pull.head, str(late.before))
    return Finding(key, Reason.CHECKS_DISPUTED, why, late.until)


class Wait(NamedTuple):
    """A kind of wait of a session at rest, with its limit."""

    when: When
    seconds: Callable[[Policy], float]  #: Time until people are notified; if 0, never.
    since: Callable[[SessionView], datetime]
    #: Returns a time that is not later than `since` and cheaper to compute. It nearly always
    #: suffices.
    least: Callable[[SessionView], datetime]


def _rests_since(view: SessionView) -> datetime:
    return view.facts.agent.since or view.facts.created


def _checks_since(view: SessionView) -> datetime:
    pull = view.pull
    since = pull and (pull.pending_since or pull.head_since)
    return since or last_event(view)


def last_event(view: SessionView) -> datetime:
    """Return the time of the last known event by the agent, the bot, a person, a check or a push.

    These events of people count: their commands, a change of the pull request's base branch, and
    comments on the pull request by people who may give commands.
    """
    facts, pull = view.facts, view.pull
    times = [facts.created, facts.restored_at, view.instructed_at, facts.agent.since]
    times += [command.at for command in facts.commands]
    if pull is not None:
        times += [pull.head_since, pull.base_since, pull.green_since, pull.pending_since]
        remarks = [*pull.comments, *(one for thread in pull.threads for one in thread.remarks)]
        times += [one.at for one in remarks if one.allowed and not one.own]
    return max(filter(None, (*times, view.history.last_push())))


#: The first matching row says how long a session at rest may wait. The last row always matches.
WAITS: Final = (
    Wait(one_of(Ci.PENDING), lambda policy: policy.checks_pending_seconds, *2 * (_checks_since,)),
    Wait(lambda _: True, lambda policy: policy.wait_seconds, last_event, _rests_since),
)


@lru_cache(maxsize=REMEMBERED)
def wait_for(signals: Signals) -> Wait | None:
    """Return the kind of wait for these signals; None if the pull request is ready to be merged."""
    return None if ready(signals) else next(row for row in WAITS if row.when(signals))


def overdue(view: SessionView, signals: Signals) -> Finding | Recheck | None:
    """Return a finding if a session at rest waits too long, else a `Recheck` for when it will.

    None if it may wait forever.
    """
    wait, why = wait_for(signals), barred(view)
    if wait is None:
        if not why or not merge_wanted(view):
            return None
        wait = WAITS[-1]
    seconds = wait.seconds(view.policy)
    if seconds and (early := view.wait(wait.least(view), seconds)):
        return early
    since = wait.since(view)
    late = lateness(view, since, seconds)
    if not isinstance(late, Lateness):
        return late
    awaited = [sentence(row.sentence, view) for row in blockers_for(signals)] or [why] * bool(why)
    if view.facts.waits or lacks_slot(view):
        awaited.insert(0, view.facts.waits or "the limit of concurrent sessions is reached")
    what = f"the session has waited for more than {late.least}: {'; '.join(awaited)}"
    if not awaited:
        what = f"nothing has happened for more than {late.least}, and no pull request is open"
    key = keys.overdue(since, late.before)
    return Finding(key, Reason.WAITED_TOO_LONG, f"{what}{_requested(view)}", late.until)


def lacks_slot(view: SessionView) -> bool:
    """Whether a run crashed or was interrupted and the session has no slot for the next run."""
    return not view.facts.slot and view.last_availability in RESTARTED


def overdue_start(view: SessionView, waits: Finding) -> Finding:
    """Return the finding `waits`, with a notification's key once the wait for a run is too long.

    `waits`: why the run has not started. A finding that has a key already is returned unchanged.
    """
    since = view.facts.restored_at or view.facts.created
    late = lateness(view, since, view.policy.wait_seconds)
    if late is None or waits.key is not None:
        return waits
    if isinstance(late, Recheck):
        return waits._replace(until=late.at)
    waited = f"the session has waited for more than {late.least} to start"
    why = f"{waited}: {waits.because}{_requested(view)}"
    return waits._replace(key=keys.overdue(since, late.before), because=why, until=late.until)


def _requested(view: SessionView) -> str:
    """Return a mention of the requester; empty if there is no GitHub login to mention."""
    requester = view.facts.requester
    return f" (session requested by @{requester})" if requester and ":" not in requester else ""
