"""Reconciles sessions: loads the facts, decides, and records the decision with its actions."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from bot.store import (
    CorruptRow,
    DecisionRecord,
    Fenced,
    LoadedSession,
    SessionChanged,
    SessionDecision,
    Store,
)
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.system.log import log_fields
from bot.system.tracing import ACTION_SECONDS, hand_on, note, span
from lifecycle.decide import Decision, decide
from lifecycle.judge.pauses import exempt, frozen_by, is_undone
from lifecycle.judge.reasons import Priority
from lifecycle.judge.signals import Stage
from lifecycle.model import keys
from lifecycle.model.actions import Action, Comment, MergeRemote, PressKeys, Start
from lifecycle.model.facts import Facts, subject_number
from lifecycle.model.policy import Mode, Policy

log = logging.getLogger(__name__)

#: How many sessions are loaded together and recorded in one transaction.
_BATCH = 100
#: The pause before a session is decided again after a failure.
_RETRY = timedelta(seconds=30)
#: The prefix of the keys of incidents about sessions.
_KEY = "session "
_UNDECIDED = "the bot does nothing for this session, because the decision about it failed ({error})"


class _Confirmed(Struct, frozen=True):
    """Actions that a session's last decision wanted, and how long that decision holds."""

    version: int  #: The session's version at that decision.
    project: str
    policy: Policy
    until: datetime | None  #: When the same facts may lead to another decision; if None, never.
    actions: tuple[Action, ...]


@dataclass(eq=False)
class Reconciler:
    """Reconciles sessions whose facts changed or whose recheck is due."""

    store: Store
    policy_of: Callable[[str], Policy]  #: Returns the policy of a project.
    clock: Clock
    crash_point: AtCrashPoint
    on_actions: Callable[[], None]  #: Called when new actions were recorded.
    agents: tuple[str, ...] = ()  #: Agents and agent types that commands may request.
    is_project: Callable[[str], bool] = lambda _: True
    #: Returns the permission modes that commands may choose in a project, by the names in `agents`.
    modes_of: Callable[[str], Mapping[str, tuple[str, ...]]] = lambda _: {}
    _confirmed: dict[str, _Confirmed] = field(default_factory=dict, init=False)  #: By session.
    #: Sessions whose last decision failed. None until they are read from the incidents.
    _undecided: set[str] | None = field(default=None, init=False)

    def reconcile_due(self) -> int:
        """Reconcile all due sessions, longest overdue first.

        Returns how many sessions were decided, or postponed because their decision failed.
        """
        reconciled = 0
        while due := self.store.sessions.due(self.clock(), _BATCH):
            settled = self.reconcile(due)
            reconciled += settled
            if not settled:
                break
        return reconciled

    def reconcile_live(self) -> int:
        """Reconcile every live session, as a changed policy requires.

        Returns how many were decided or postponed, as `reconcile` does.
        """
        live = self.store.sessions.live_ids()
        return sum(self.reconcile(live[at : at + _BATCH]) for at in range(0, len(live), _BATCH))

    def reconcile(self, sessions: Sequence[str]) -> int:
        """Reconcile these sessions; return how many were decided or postponed after a failure.

        For an unchanged decision, at most the time of its next recheck is written. A session whose
        facts change meanwhile stays due.
        """
        loaded = self.store.facts.load(sessions)
        now = self.clock()
        changed: list[tuple[LoadedSession, SessionDecision]] = []
        failed: list[str] = []
        if self._undecided is None:
            open_keys = [incident.key for incident in self.store.incidents.current()]
            self._undecided = {k.removeprefix(_KEY) for k in open_keys if k.startswith(_KEY)}
        for one in loaded:
            try:
                with span("decide", one.session, session=one.session, repository=one.repository):
                    decided = self._decide(one, now)
                    note(status=decided.status)
                    hand_on(_ordered(one, decided), ACTION_SECONDS)
            except Exception as problem:
                # One session that cannot be decided must not stop the others.
                with log_fields(**_fields(one)):
                    log.exception("%s: its next step could not be decided", one.session)
                failed.append(one.session)
                self._report(one.session, problem, now)
            else:
                if one.session in self._undecided:
                    self._undecided.discard(one.session)
                    self.store.incidents.clear(f"{_KEY}{one.session}", now)
                if replace(decided, record=None) != one.before:
                    changed.append((one, decided))
        outdated = self._record(changed, failed, now)
        if failed:
            self.store.sessions.postpone(failed, now + _RETRY)
        return len(loaded) - outdated

    def _report(self, session: str, problem: Exception, now: datetime) -> None:
        """Open an incident for a session that cannot be decided.

        If the incident is new and the policy permits it, order a comment on the session's issue or
        pull request.
        """
        kind = type(problem).__name__
        why = _UNDECIDED.format(error=f"{kind}: {problem}")
        if self._undecided is not None:
            self._undecided.add(session)
        if not self.store.incidents.report(f"{_KEY}{session}", f"{session}: {why}", now):
            return
        with suppress(CorruptRow):
            known = self.store.sessions.get(session)
            if known is None or self.policy_of(known.project).mode is Mode.OBSERVE:
                return
            comment = Comment(
                key=keys.notice(keys.stuck(session, now)),
                number=subject_number(known.issue, known.pulls),
                topic="attention",
                values={
                    "session": session,
                    "because": _UNDECIDED.format(error=kind),
                    "remedy": "The bot's log has the details; the bot retries every 30 seconds.",
                    "priority": Priority.URGENT.value,
                },
            )
            self.store.outbox.add(known.repository, [comment], now)
            self.on_actions()

    def _decide(self, one: LoadedSession, now: datetime) -> SessionDecision:
        if isinstance(one.facts, CorruptRow):
            raise one.facts
        facts = self._configured(one.facts)
        policy = self.policy_of(facts.project)
        return session_decision(facts, policy, decide(facts, policy, now))

    def _configured(self, facts: Facts) -> Facts:
        """Return the facts with `agents`, `allowed_modes` and `removed` from the settings."""
        return replace(
            facts,
            agents=self.agents,
            allowed_modes=self.modes_of(facts.project),
            removed=not self.is_project(facts.project),
        )

    def _record(
        self,
        decisions: Sequence[tuple[LoadedSession, SessionDecision]],
        failed: list[str],
        now: datetime,
    ) -> int:
        """Record decisions. Returns how many sessions have changed meanwhile, and so stay due.

        The sessions whose decision could not be recorded are appended to `failed`.
        """
        outdated = 0
        written = self.store.decisions.record(decisions, now) if decisions else ()
        for (one, decided), future in zip(decisions, written, strict=True):
            try:
                added = future.result()
            except (Fenced, SessionChanged) as refused:
                log.debug("%s", refused)
                outdated += 1
            except Exception:
                with log_fields(**_fields(one)):
                    log.exception("%s: its decision could not be recorded", one.session)
                failed.append(one.session)
            else:
                with log_fields(**_fields(one)):
                    self._recorded(one, decided, added)
        return outdated

    def _recorded(
        self, loaded: LoadedSession, decided: SessionDecision, added: Sequence[str]
    ) -> None:
        """After recording a decision with new actions, announce these, and keep all its actions."""
        session, record = loaded.session, decided.record
        if decided.ended is not None:
            self._confirmed.pop(session, None)
        if not added:
            return
        if record is not None:
            version = loaded.version + 1  # As recording the decision made it.
            self._confirmed[session] = _Confirmed(
                version, record.facts.project, record.policy, decided.recheck_at, decided.actions
            )
        log.info("%s: %s: %s -> %s", session, decided.status, decided.because, ", ".join(added))
        self.crash_point(CrashPoint.RECORDED, f"{session} {' '.join(added)}")
        self.on_actions()

    def still_wanted(self, session: str, action: Action) -> bool | None:
        """Return whether a session still wants a recorded action, or None if a freeze delays it.

        Decides again only if something has changed since the last decision that wanted this action:
        the facts, the policy or something that depends on the time. Raises `CorruptRow`.
        """
        now, confirmed = self.clock(), self._confirmed.get(session)
        if (
            confirmed is not None
            and action in confirmed.actions
            and (confirmed.until is None or now < confirmed.until)
            and confirmed.policy == self.policy_of(confirmed.project)
            and self.is_project(confirmed.project)
            and confirmed.version == self.store.sessions.version(session)
        ):
            return True
        (loaded,) = self.store.facts.load([session])
        if isinstance(loaded.facts, CorruptRow):
            raise loaded.facts
        facts = loaded.facts
        if isinstance(action, PressKeys):
            return self._takes_keys(facts, action)
        if frozen_by(facts) is not None and action.key not in exempt(facts):
            return None
        policy = self.policy_of(facts.project)
        wanted, until = self._wants(facts, policy, action, now)
        if wanted:
            self._confirmed[session] = _Confirmed(
                loaded.version, facts.project, policy, until, (action,)
            )
        return wanted

    def _takes_keys(self, facts: Facts, action: PressKeys) -> bool:
        """Whether keystrokes, which a person and not a decision orders, may still be typed.

        During a freeze they are dropped, not delayed: late keystrokes would surprise the person.
        """
        current = facts.run == action.run and facts.ended is None
        acts = self.policy_of(facts.project).mode is not Mode.OBSERVE
        return current and acts and frozen_by(facts) is None and self.is_project(facts.project)

    def _wants(
        self, facts: Facts, policy: Policy, action: Action, now: datetime
    ) -> tuple[bool, datetime | None]:
        """Whether a decision on these facts wants an ordered action, and when that may change.

        The time is None if only new facts can change the result.
        """
        # Needed for actions that are not looked up in the decision; `observe` has no actions.
        acts = policy.mode is not Mode.OBSERVE
        if isinstance(action, Comment) and action.topic == "answer":
            # A command is decided once, when its reply is recorded.
            given = (one for one in facts.commands if one.key == action.key.cause[0])
            return acts and not any(is_undone(one, facts) for one in given), None
        without = frozenset(facts.pending - {action.key, *getattr(action, "covers", ())})
        decision = decide(self._configured(replace(facts, pending=without)), policy, now)
        if isinstance(action, Start):
            # Its run counts as ordered, so no reaction asks for it again.
            wanted = acts and decision.signals.stage in (Stage.SPAWNING, Stage.RUNNING)
        elif isinstance(action, MergeRemote):
            # After a crash the workspace may be at the merged commit already.
            wanted = action in decision.actions
        else:
            wanted = any(one.key == action.key for one in decision.actions)
        return wanted, decision.recheck_at


def _ordered(one: LoadedSession, decided: SessionDecision) -> Iterator[str]:
    """Yield the names that traces use for the decision's actions, without those already pending."""
    for action in decided.actions:
        if isinstance(one.facts, Facts) and action.key not in one.facts.pending:
            yield f"{one.session} {action.key}"


def _fields(one: LoadedSession) -> dict[str, str | int]:
    """Return the fields of log lines about a session."""
    pulls = () if isinstance(one.facts, CorruptRow) else one.facts.pulls
    pull = max((pull.number for pull in pulls), default=0)
    return {"session": one.session, "repository": one.repository, "pull_request": pull}


def session_decision(facts: Facts, policy: Policy, decision: Decision) -> SessionDecision:
    """Return the decision in the form that the store records."""
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
        cause=str(decision.cause or ""),
        record=DecisionRecord(facts=facts, policy=policy, decision=decision),
    )
