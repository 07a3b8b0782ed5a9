"""The one question this program answers: given what is known, what now?"""

from datetime import datetime

from msgspec import Struct

from lifecycle.actions import Action
from lifecycle.blockers import blockers_for
from lifecycle.evidence import sentence
from lifecycle.facts import Ended, Facts
from lifecycle.lives import this_life
from lifecycle.messages import Judged
from lifecycle.policy import Mode, Policy
from lifecycle.reactions import ANSWERS
from lifecycle.reading import foremost, of_pull, read
from lifecycle.rules import rule_for
from lifecycle.signals import Hold, Signals
from lifecycle.status import TERMINAL, Reason, Status
from lifecycle.view import View


class Decision(Struct, frozen=True, kw_only=True):
    """A status with its evidence, and what follows from it."""

    status: Status
    reason: Reason
    because: str
    signals: Signals
    blockers: tuple[str, ...] = ()  #: `name: sentence`, all that stand.
    actions: tuple[Action, ...] = ()
    recheck_at: datetime | None = None  #: When the same facts may read otherwise; None: never.
    ended: Ended | None = None  #: The outcome to remember.
    holds_slot: bool = True  #: Whether it still needs a place to run a program.


def decide(facts: Facts, policy: Policy, now: datetime) -> Decision:
    """Judge `facts`. Calling it twice with the same arguments gives the same answer."""
    view = foremost(View(this_life(facts), policy, now))
    signals, evidence = read(view)
    rule = rule_for(signals)
    standing = blockers_for(signals)
    blockers = ", ".join(row.name for row in standing)
    because = sentence(rule.because, view, why=evidence.why, blockers=blockers)
    reason = rule.reason or evidence.reason
    judged = Judged(view, signals, rule.status, reason, because, evidence.cause)
    return Decision(
        status=rule.status,
        reason=reason,
        because=because,
        signals=signals,
        blockers=tuple(f"{row.name}: {sentence(row.sentence, view)}" for row in standing),
        actions=() if policy.mode is Mode.OBSERVE else wanted(judged),
        recheck_at=view.recheck_at,
        ended=_outcome(judged, now),
        holds_slot=signals.hold is not Hold.RELEASED,
    )


def _outcome(judged: Judged, now: datetime) -> Ended | None:
    """The outcome to remember: a merge replaces any other, and nothing else replaces one."""
    ended, status = judged.view.facts.ended, judged.status
    if status not in TERMINAL:
        return None
    if status is Status.CLEANUP or (ended is not None and ended.status is status):
        return ended
    return Ended(status=status, reason=judged.reason, because=judged.because, at=now)


def wanted(judged: Judged) -> tuple[Action, ...]:
    """The actions the status asks for and that were not done, ordered or given up before.

    Two rows that ask for the same key ask for one action: the first row's.
    """
    facts = judged.view.facts
    found: dict[str, Action] = {}
    each = _each(judged)
    for row in ANSWERS[judged.status]:
        for one in each if row.each else (judged,):
            if row.when(one.signals):
                for action in row.then(one):
                    known = action.key in facts.done or action.key in facts.pending
                    if not known and action.key not in facts.failures:
                        found.setdefault(action.key, action)
    return tuple(found.values())


def _each(judged: Judged) -> tuple[Judged, ...]:
    """The same judgement, looked at from each open pull request."""
    views = judged.view.each
    if len(views) == 1:
        return (judged,)
    return tuple(judged._replace(view=v, signals=of_pull(v, judged.signals)) for v in views)
