"""The visit: facts, one judgement, one record."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from bot.store import CorruptRow, DecisionRecord, Fenced, LoadedSession, SessionDecision, Store
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from lifecycle.decide import Decision, decide
from lifecycle.judge.signals import Stage
from lifecycle.model.actions import Action, Comment, MergeRemote, Start
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy

log = logging.getLogger(__name__)

#: So many sessions are read together and written down in one commit.
_GROUP = 100
#: When a session that could not be judged is tried again.
_AGAIN = timedelta(seconds=30)


class Reconciler:
    """Visits sessions whose facts changed or whose time has come."""

    def __init__(
        self,
        store: Store,
        policy_of: Callable[[str], Policy],
        clock: Clock,
        crash_point: AtCrashPoint,
        on_actions: Callable[[], None],
        agents: Collection[str] = (),
    ) -> None:
        """`policy_of` a project; `on_actions` says that there is something to do; `agents` may be
        asked for by people.
        """
        self._store = store
        self._agents = tuple(sorted(agents))
        self._policy_of = policy_of
        self._clock = clock
        self._crash_point = crash_point
        self._on_actions = on_actions

    def reconcile_due(self) -> int:
        """Visit everything that is due, longest overdue first. Returns how many were visited."""
        reconciled = 0
        while due := self._store.sessions.due(self._clock(), _GROUP):
            settled = self.reconcile(due)
            reconciled += settled
            if not settled:
                break
        return reconciled

    def reconcile_live(self) -> int:
        """Visit everything that is not over, due or not: the policy may be another by now."""
        live = self._store.sessions.live_ids()
        return sum(self.reconcile(live[at : at + _GROUP]) for at in range(0, len(live), _GROUP))

    def reconcile(self, sessions: Sequence[str]) -> int:
        """One pass over each of these sessions; how many were judged, or put off.

        What is as it was writes nothing. One that changed meanwhile stays due.
        """
        loaded = self._store.facts.load(sessions)
        now = self._clock()
        news: list[tuple[LoadedSession, SessionDecision]] = []
        failed: list[str] = []
        for one in loaded:
            try:
                said = self._judged(one, now)
            except Exception:
                # One session that cannot be judged must not keep the others from being judged.
                log.exception("%s: it could not be judged", one.session)
                failed.append(one.session)
            else:
                if replace(said, record=None) != one.before:
                    news.append((one, said))
        changed = self._write_down(news, failed, now)
        if failed:
            self._store.sessions.postpone(failed, now + _AGAIN)
        return len(loaded) - changed

    def _judged(self, one: LoadedSession, now: datetime) -> SessionDecision:
        if isinstance(one.facts, CorruptRow):
            raise one.facts
        facts = replace(one.facts, agents=self._agents)
        policy = self._policy_of(facts.project)
        return recorded(facts, policy, decide(facts, policy, now))

    def _write_down(
        self,
        news: Sequence[tuple[LoadedSession, SessionDecision]],
        failed: list[str],
        now: datetime,
    ) -> int:
        """Record what is new, and add to `failed` what could not be; how many changed meanwhile."""
        changed = 0
        written = self._store.decisions.record(news, now) if news else ()
        for (one, said), future in zip(news, written, strict=True):
            try:
                added = future.result()
            except Fenced as fenced:
                log.info("%s", fenced)
                changed += 1
            except Exception:
                log.exception("%s: its decision could not be written down", one.session)
                failed.append(one.session)
            else:
                self._told(one.session, said, added)
        return changed

    def _told(self, session: str, said: SessionDecision, added: Sequence[str]) -> None:
        if added:
            log.info("%s: %s: %s -> %s", session, said.status, said.because, ", ".join(added))
            self._crash_point(CrashPoint.RECORDED, f"{session} {' '.join(added)}")
            self._on_actions()

    def still_wanted(self, facts: Facts, action: Action) -> bool:
        """Whether an action written down earlier is still right, judged by what is known now."""
        if isinstance(action, Comment) and action.topic == "answer":
            return True  # What was asked for was judged once, when this was written down.
        without = frozenset(facts.pending - {action.key, *getattr(action, "covers", ())})
        judged = replace(facts, pending=without, agents=self._agents)
        decision = decide(judged, self._policy_of(facts.project), self._clock())
        if isinstance(action, Start):
            # Its run is ordered already, so the reaction that asked for it does not ask again.
            return decision.signals.stage in (Stage.SPAWNING, Stage.RUNNING)
        if isinstance(action, MergeRemote):
            # The workspace may be at another commit by now: at the joined one, after a crash.
            return action in decision.actions
        return any(wanted.key == action.key for wanted in decision.actions)


def recorded(facts: Facts, policy: Policy, decision: Decision) -> SessionDecision:
    """A decision as it is written down."""
    runs = [action.run for action in decision.actions if isinstance(action, Start)]
    return SessionDecision(
        status=decision.status,
        reason=decision.reason,
        because=decision.because,
        blockers=decision.blockers,
        actions=decision.actions,
        recheck_at=decision.recheck_at,
        run=max([facts.run, *runs]),
        ended=decision.ended,
        frees_slot=facts.slot and not decision.holds_slot,
        wants_slot=decision.wants_slot,
        record=DecisionRecord(facts=facts, policy=policy, decision=decision),
    )
