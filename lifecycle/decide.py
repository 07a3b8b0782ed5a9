"""Decides a session's status and its next actions, from facts, a policy and the time."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import repeat

from msgspec import Struct
from msgspec.structs import replace

from lifecycle.judge.commands import apply_commands
from lifecycle.judge.judge import Judged, judge, of_pull
from lifecycle.judge.pauses import exempt, frozen_by
from lifecycle.judge.reasons import needs_person
from lifecycle.judge.signals import OVER, Hold, Signals, Stage
from lifecycle.model import keys
from lifecycle.model.actions import Action, Release, SendMessage, Start, Stop
from lifecycle.model.facts import Ended, Facts, Frozen
from lifecycle.model.key import Key, KeyKind
from lifecycle.model.names import FROZEN
from lifecycle.model.policy import Mode, Policy
from lifecycle.model.status import TERMINAL, Blocker, Reason, Status
from lifecycle.react.notices import acknowledge
from lifecycle.react.reactions import BY_STATUS, NOTIFIED, Reaction, reactions_to
from lifecycle.read.sentences import clock, person
from lifecycle.read.session_view import Recheck, earliest

_OBSERVE, _QUEUED, _SPAWNING = Mode.OBSERVE, Stage.QUEUED, Stage.SPAWNING
_START = KeyKind.START
#: Reasons for which a queued session does not ask for a slot.
_WAITS_LONGER = (Reason.BUDGET_EXHAUSTED, Reason.ISSUE_BLOCKED, Reason.ISSUES_IN_CIRCLE)


class Decision(Struct, frozen=True, kw_only=True):
    """A status with its evidence, and the actions that follow from it."""

    status: Status
    reason: Reason
    because: str
    signals: Signals
    blockers: tuple[Blocker, ...] = ()
    actions: tuple[Action, ...] = ()
    recheck_at: datetime | None = None  #: When time alone may change the decision; if None, never.
    ended: Ended | None = None  #: The outcome to remember; if None, the session has not ended.
    holds_slot: bool = True  #: Whether the session needs the slot that it may have.
    wants_slot: bool = False  #: Whether the session has something to run, and no slot.
    cause: Key | None = None  #: The key of what people are needed for or notified of, if anything.


def decide(facts: Facts, policy: Policy, now: datetime) -> Decision:
    """Return the decision for these facts under this policy at `now`; a pure function."""
    if not facts.commands:
        judged = judge(facts, policy, now)
    else:
        applied = apply_commands(facts, policy, now)
        judged = judge(applied.facts, policy, now)
        judged = replace(
            judged,
            answers=applied.answers,
            asked=facts.commands,
            recheck_at=earliest(judged.recheck_at, applied.recheck_at),
        )
        facts = applied.facts
    frozen = frozen_by(facts)
    quiet = frozen is not None or policy.mode is _OBSERVE
    actions, again_at = ((), None) if quiet else wanted(judged)
    if frozen is not None and policy.mode is not _OBSERVE:
        actions = _acknowledged(judged)
    if facts.removed or facts.archived:
        left = Stop if facts.removed else Stop | Release  # A workspace belongs to its project.
        actions = tuple(action for action in actions if isinstance(action, left))
    starts = Start in map(type, actions)
    if starts and not facts.slot:
        actions = tuple(action for action in actions if not isinstance(action, Start))
    return Decision(
        status=judged.status,
        reason=judged.reason,
        because=judged.because,
        signals=judged.signals,
        blockers=judged.blockers if frozen is None else (_held(frozen), *judged.blockers),
        actions=actions,
        recheck_at=earliest(judged.recheck_at, again_at),
        ended=_outcome(judged, now),
        holds_slot=starts or _holds_slot(judged),
        wants_slot=not facts.slot and (starts or (_waits_for_slot(judged) and frozen is None)),
        cause=_cause(judged),
    )


def _acknowledged(judged: Judged) -> tuple[Action, ...]:
    """Return the emoji and the reply to a `freeze` command, which are exempt from the freeze.

    Omits what was ordered before. Returns neither if something else freezes the session, too.
    """
    facts = judged.view.facts
    known = facts.done.keys() | facts.pending | facts.failures.keys()
    allowed = exempt(facts) - known
    acknowledging = acknowledge(judged) if allowed else ()
    return tuple(
        one for one in acknowledging if not isinstance(one, Recheck) and one.key in allowed
    )


def _cause(judged: Judged) -> Key | None:
    """Return the key of what people are notified of: a finding, or a merge that awaits a person.

    None if there is neither.
    """
    if judged.status in NOTIFIED:
        return judged.cause
    pull = judged.view.pull
    if pull is None or judged.status is not Status.MERGEABLE:
        return None
    waits = needs_person(judged.status, judged.reason)
    return keys.ready_to_merge(pull.head) if waits else None


def _held(frozen: Frozen) -> Blocker:
    where = {"all": "everything", "project": "the project"}.get(frozen.scope, "the session")
    return Blocker(FROZEN, f"{person(frozen.by)} froze {where} at {clock(frozen.at)}")


def _waits_for_slot(judged: Judged) -> bool:
    return judged.signals.stage is _QUEUED and judged.reason not in _WAITS_LONGER


def _holds_slot(judged: Judged) -> bool:
    """Whether the session still needs its slot, if it has one.

    A started session needs its slot until its program is stopped, for good or to be resumed later.
    """
    view, stage = judged.view, judged.signals.stage
    if stage in OVER:
        return judged.signals.hold is not Hold.RELEASED
    if view.instructed_at is None:
        starting = any(key.kind is _START for key in view.facts.pending)
        return starting or stage is _SPAWNING or _waits_for_slot(judged)
    return not view.parked


def _outcome(judged: Judged, now: datetime) -> Ended | None:
    """Return the session's outcome, or None if the session has not ended.

    The recorded outcome is kept if its status equals the judged status, or if the judged status is
    `cleanup`. Otherwise the outcome is new.
    """
    status = judged.status
    if status not in TERMINAL:
        return None
    ended = judged.view.facts.ended
    if status is Status.CLEANUP or (ended is not None and ended.status is status):
        return ended
    return Ended(status=status, reason=judged.reason, because=judged.because, at=now)


def wanted(judged: Judged) -> tuple[tuple[Action, ...], datetime | None]:
    """Return the new actions for the status, and when time alone may add more, if ever.

    Omits actions that are done, pending or failed, and all messages while the receipt of the last
    one is awaited. Of several actions with the same key, and of several starts, only the first is
    used.
    """
    facts = judged.view.facts
    # The agent gets no other message until the last one is known to have arrived or not.
    awaits = judged.view.receipt_until is not None
    recheck_at: datetime | None = None
    found: dict[Key | type[Start], Action] = {}
    rows: Iterable[tuple[Reaction, Judged]] = (
        _reactions_of_each(judged)
        if judged.view.several
        else zip(reactions_to(judged.status, judged.signals, judged.people), repeat(judged))
    )
    for row, one in rows:
        for action in row.then(one):
            if type(action) is Recheck:  # `isinstance` is slow for these classes.
                recheck_at = earliest(recheck_at, action.at)
                continue
            key = action.key
            if awaits and isinstance(action, SendMessage):
                continue
            if key in facts.done or key in facts.pending or key in facts.failures:
                continue
            # One run is one program.
            found.setdefault(Start if type(action) is Start else key, action)
    return tuple(found.values()), recheck_at


def _reactions_of_each(judged: Judged) -> Iterator[tuple[Reaction, Judged]]:
    """Yield the reactions that apply, each with the session as judged for one pull request.

    A reaction with `each` is yielded once for each open pull request to whose signals it applies.
    """
    s = judged.signals
    shared = s.stage, s.availability, s.attention, s.output, s.hold
    views = judged.view.several
    each = [replace(judged, view=view, signals=of_pull(view, *shared)) for view in views]
    for row in BY_STATUS[judged.status]:
        for one in each if row.each else (judged,):
            if row.when(one.signals):
                yield row, one
