"""Lists a session's future decisions if all actions are carried out and nothing else happens."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import chain

from msgspec.structs import replace

from lifecycle.decide import Decision, decide
from lifecycle.model import actions as do
from lifecycle.model.facts import Done, Facts
from lifecycle.model.policy import Policy
from tests.lifecycle.universe import NOW

#: Comments by which people learn that a session waits for them, is ready or is theirs now.
NOTICES = {"attention", "paused", "ready", "ready_by_hand", "ready_behind"}
NOTICES |= {"ready_behind_by_hand", "handed_to_human"}
_INSTANT = timedelta(milliseconds=1)


def future(
    session: Facts, policy: Policy, first: Decision | None = None
) -> Iterator[tuple[datetime, Decision]]:
    """Yield the decision at `NOW`, then each later decision that may differ from the previous one.

    Each decision is yielded with its time. `first` is the decision at `NOW`, if it is known.
    """
    now: datetime | None = NOW
    found = first or decide(session, policy, NOW)
    while now is not None:
        yield now, found
        session = carried_out(session, found.actions, now)
        soon = now + _INSTANT
        now = soon if found.actions else found.recheck_at and max(soon, found.recheck_at)
        if now is not None:
            found = decide(session, policy, now)


def carried_out(session: Facts, actions: tuple[do.Action, ...], now: datetime) -> Facts:
    """The same facts after the actions were carried out."""
    keys = chain.from_iterable((one.key, *getattr(one, "covers", ())) for one in actions)
    return replace(session, done={**session.done, **{key: Done(at=now) for key in keys}})


def topics(decision: Decision) -> set[str]:
    return {action.topic for action in decision.actions if isinstance(action, do.Comment)}


def notifies(decision: Decision) -> bool:
    """Whether people are notified."""
    return bool(topics(decision) & NOTICES)


def replies(decision: Decision) -> bool:
    """Whether a person gets a reply to a command."""
    return "answer" in topics(decision)


def continues(decision: Decision) -> bool:
    """Whether a run starts, or the pull request is merged."""
    begins = do.Start | do.MergePull | do.Enqueue
    return any(isinstance(action, begins) for action in decision.actions)
