"""The visit: facts, one judgement, one record."""

import logging
from collections.abc import Callable

from msgspec.structs import replace

from bot.clock import Clock
from bot.journal import Journal, Step
from bot.store import Fenced, Judgement, Recorded, Store
from lifecycle.actions import Action, Start
from lifecycle.decide import Decision, decide
from lifecycle.facts import Facts
from lifecycle.policy import Policy
from lifecycle.signals import OVER
from lifecycle.status import Status

log = logging.getLogger(__name__)

#: How long a claim lasts. A visit takes milliseconds; this is for one that hangs.
_CLAIM_SECONDS = 30.0


class Engine:
    """Visits sessions whose facts changed or whose time has come."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        owner: str,
        clock: Clock,
        journal: Journal,
        on_actions: Callable[[], None],
    ) -> None:
        self._store = store
        self._policy = policy
        self._owner = owner
        self._clock = clock
        self._journal = journal
        self._on_actions = on_actions

    def visit_due(self) -> int:
        """Visit everything that is due, longest overdue first. Returns how many were visited."""
        visited = 0
        while due := self._store.due_visits(self._clock(), limit=100):
            settled = [self.visit(session) for session in due]
            visited += len(settled)
            if not any(settled):
                break
        return visited

    def visit(self, session: str) -> bool:
        """One pass over one session. False where somebody else has it, or it cannot be judged."""
        claim = self._store.claim(session, self._owner, self._clock(), _CLAIM_SECONDS)
        if claim is None:
            return False
        try:
            facts = self._store.facts(session)
            now = self._clock()
            decision = decide(facts, self._policy, now)
            added = self._store.record(claim, recorded(facts, self._policy, decision), now)
        except Fenced:
            log.warning("%s: the claim was lost during the visit; nothing was written", session)
            return False
        except Exception:
            # One session that cannot be judged must not keep the others from being judged. It is
            # not released: its claim runs out, and it is tried again then.
            log.exception("%s: the visit failed", session)
            return False
        if added:
            log.info(
                "%s: %s: %s -> %s", session, decision.status, decision.because, ", ".join(added)
            )
            self._journal(Step.RECORDED, f"{session} {' '.join(added)}")
            self._on_actions()
        return True

    def still_wanted(self, facts: Facts, action: Action) -> bool:
        """Whether an action written down earlier is still right, judged by what is known now."""
        without = frozenset(facts.pending - {action.key, *getattr(action, "covers", ())})
        judged = replace(facts, pending=without)
        decision = decide(judged, self._policy, self._clock())
        if isinstance(action, Start):
            # Its run is ordered already, so the reaction that asked for it does not ask again.
            return decision.signals.stage not in OVER
        return any(wanted.key == action.key for wanted in decision.actions)


def recorded(facts: Facts, policy: Policy, decision: Decision) -> Recorded:
    """A decision as it is written down."""
    runs = [action.run for action in decision.actions if isinstance(action, Start)]
    return Recorded(
        status=decision.status,
        reason=decision.reason,
        because=decision.because,
        blockers=decision.blockers,
        actions=decision.actions,
        recheck_at=decision.recheck_at,
        run=max([facts.run, *runs]),
        ended=decision.ended,
        frees_slot=not decision.holds_slot,
        wants_slot=decision.status is Status.QUEUED and not facts.slot,
        judgement=Judgement(facts=facts, policy=policy, decision=decision),
    )
