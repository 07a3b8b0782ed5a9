"""Carries out recorded actions: checks that each is still wanted, performs it, records a result."""

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from bot.act.dispatch import ActionDispatcher
from bot.act.outages import Outages
from bot.act.results import (
    ActionResult,
    AwaitingReceipt,
    Completed,
    Held,
    LeaseLost,
    Rejected,
    RetryLater,
    Stopped,
    Withdrawn,
)
from bot.store import DueAction, IncidentsTable, OutboxTable, StoreFailure
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.system.log import log_fields
from bot.system.metrics import ACTIONS
from bot.system.tracing import note, span
from lifecycle.model.actions import Action, Comment, ReportConfiguration
from lifecycle.model.key import KeyKind
from lifecycle.model.policy import delay
from lifecycle.model.status import Reason
from lifecycle.model.text import counted

log = logging.getLogger(__name__)


#: How long a frozen action waits before it is checked again.
_HELD = timedelta(seconds=2)
#: An action gets at least this many attempts if GitHub answers other requests, but not the
#: action's request, or if its project is no longer configured. With the default pauses they take
#: about an hour.
_OUTAGE_ATTEMPTS = 20


class Attempts(Struct, frozen=True, kw_only=True):
    """How many times a failing action is tried, and the pauses between the attempts."""

    most: int  #: The number of attempts.
    first_seconds: float  #: The first pause; each later one is twice as long, up to 300 s.
    starts: Callable[[str], int]  #: Takes a repository; returns the number for starts of runs.


@dataclass(eq=False)
class Outbox:
    """Carries out due actions: one at a time for each session, several sessions in parallel.

    An action that belongs to no session waits only for a free worker, and is taken first.
    """

    outbox: OutboxTable
    incidents: IncidentsTable
    outages: Outages
    writable: Callable[[], bool]  #: Whether the store can record results now.
    #: Takes a session's id and an action. Returns whether the action is still wanted, or None if
    #: the session is frozen.
    still_wanted: Callable[[str, Action], bool | None]
    is_silenced: Callable[[str], bool]  #: Whether a repository is frozen or only observed.
    dispatcher: ActionDispatcher
    workers: Executor
    attempts: Attempts
    clock: Clock
    crash_point: AtCrashPoint
    may_act: Callable[[], bool]  #: Whether this bot holds the lease.
    on_done: Callable[[], None]  #: Called after an action's result was recorded.
    parallel: int = 8  #: How many actions are carried out at once.
    _under_way: dict[str, Future[bool]] = field(default_factory=dict, init=False)
    #: The highest number of an action that an earlier process may have attempted. While this is
    #: None, any action may have been attempted.
    _inherited: int | None = field(default=None, init=False)
    #: The actions that this process attempted without success, by queue and kind.
    _tried: dict[tuple[str, KeyKind], set[int]] = field(default_factory=dict, init=False)
    #: Why an action was last deferred, by its number.
    _deferred: dict[int, str] = field(default_factory=dict, init=False)

    def begin(self) -> None:
        """Note which actions an earlier process may have attempted. Call it when this bot leads."""
        self._inherited = self.outbox.newest()

    def drain(self) -> int:
        """Hand due actions to idle workers, and return how many; call it in one thread at a time.

        Skips sessions with an action under way. Older sessions go first. When all workers are busy,
        the remaining actions stay in the store, so an action of an older session that becomes due
        meanwhile still goes before them.
        """
        self.outages.look()
        # Before the store is read: an action that ends meanwhile is read as due still.
        self._under_way = {s: work for s, work in self._under_way.items() if not work.done()}
        idle = self.parallel - len(self._under_way)
        handed = [due for due in self.outbox.due(self.clock()) if due.queue not in self._under_way]
        handed = handed[:idle]
        for due in handed:
            self._under_way[due.queue] = work = self.workers.submit(self._work, due)
            work.add_done_callback(self._worked)
        return len(handed)

    def rest(self, seconds: float) -> bool:
        """Wait up to `seconds` until the actions under way end; return whether all have ended."""
        return not wait(self._under_way.values(), seconds).not_done

    def _worked(self, work: Future[bool]) -> None:
        # An action that may not be done or recorded now waits for the next beat, without spinning.
        if not work.cancelled() and work.result():
            self.on_done()

    def _work(self, due: DueAction) -> bool:
        """Carry out one action and record its result; return whether a result was recorded."""
        about: dict[str, str | int] = {"session": due.session, "repository": due.repository}
        about["number"] = getattr(due.action, "number", 0)
        name, kind = f"{due.subject} {due.action.key}", due.action.key.kind
        with log_fields(**about), span("effect", name, kind=kind, **about):
            return self._worked_on(due)

    def _worked_on(self, due: DueAction) -> bool:
        try:
            result = self._carried_out(due)
            ACTIONS.labels(due.action.key.kind, type(result).__name__).inc()
            note(result=type(result).__name__)
            return self._record(due, result)
        except StoreFailure as failure:
            # Nothing could be recorded, an attempt neither: it is repeated at the next beat.
            self.outages.met(str(failure))
            about = due.subject, due.action.key
            log.error("%s: %s: its result could not be recorded: %s", *about, failure)
            return False
        except Exception as error:
            log.exception("%s: %s: its result could not be recorded", due.subject, due.action.key)
            with suppress(StoreFailure):
                self._retry(due, RetryLater(f"its result could not be recorded: {error}"))
            return False

    def _carried_out(self, due: DueAction) -> ActionResult:
        about = f"{due.subject} {due.action.key}"
        try:
            self.crash_point(CrashPoint.TAKEN, about)
            check = partial(self._check, due)
            result = check() or self.dispatcher.do(replace(due, first=self._is_first(due)), check)
            if isinstance(result, Withdrawn):
                return self.dispatcher.was_done(due) or result
            return result
        except Exception as error:
            log.exception("%s: failed", about)
            return RetryLater(f"{type(error).__name__}: {error}")

    def _is_first(self, due: DueAction) -> bool:
        """Note an attempt, and return whether the action certainly has no effect on GitHub yet.

        False if this process or an earlier one may have attempted this action, or if an attempt at
        another action of its kind in the session failed. A failed attempt may have had an effect:
        for example, it may have created the comment of a report that this action updates. If this
        returns False, GitHub is searched for the effect. Call this once per attempt.
        """
        first, place = not self._was_tried(due), _place(due)
        self._tried.setdefault(place, set()).add(due.seq)
        return first and not (due.session and self.outbox.given_up(*place))

    def _was_tried(self, due: DueAction) -> bool:
        inherited = self._inherited is None or due.seq <= self._inherited
        return inherited or bool(self._tried.get(_place(due)))

    def _succeeded(self, due: DueAction) -> None:
        tried = self._tried.get(_place(due), set())
        tried.discard(due.seq)
        if not tried:
            self._tried.pop(_place(due), None)

    def _check(self, due: DueAction) -> Stopped | None:
        """Return the result that stops the action now, or None if nothing prevents it."""
        if not due.session:
            if self.is_silenced(due.repository):
                return Withdrawn("the repository is frozen or only observed")
        else:
            wanted = self.still_wanted(due.session, due.action)
            if wanted is None:
                return Held()
            if not wanted:
                return Withdrawn("its cause is gone")
        # Nothing may take effect whose result cannot be recorded.
        if not self.may_act() or not self.writable():
            return LeaseLost()
        return None

    def _record(self, due: DueAction, result: ActionResult) -> bool:
        """Record the result of an action; return False if nothing may be recorded."""
        about = f"{due.subject} {due.action.key}"
        if not isinstance(result, RetryLater):
            self._deferred.pop(due.seq, None)
        match result:
            case Completed():
                self.crash_point(CrashPoint.DONE, about)
                if not due.session:
                    self.incidents.clear(_incident(due), self.clock())
                self.outbox.mark_done(
                    due.seq,
                    result.result,
                    self.clock(),
                    observed=result.observed,
                    refreshes=result.refreshes,
                )
                self._succeeded(due)
                log.info("%s: done%s", about, f": {result.result}" if result.result else "")
                self.crash_point(CrashPoint.MARKED, about)
            case AwaitingReceipt(receipt=receipt):
                self.crash_point(CrashPoint.DONE, about)
                self.outbox.mark_sent(due.seq, receipt)
                log.info("%s: sent", about)
                self.crash_point(CrashPoint.MARKED, about)
            case RetryLater():
                self._retry(due, result)
            case Rejected(why=why, reason=reason):
                self._fail(due, reason or _reason(due), why)
            case Withdrawn(why=why) if due.receipt is not None:
                # It was sent before and may arrive yet; then it need not be sent again.
                log.info("%s: not sent again: %s", about, why)
                self.outbox.mark_sent(due.seq, due.receipt)
            case Withdrawn(why=why, observed=observed):
                log.info("%s: withdrawn: %s", about, why)
                tried = self._was_tried(due)
                self.outbox.withdraw(due.seq, self.clock(), tried=tried, observed=observed)
            case Held():
                self.outbox.defer(due.seq, self.clock() + _HELD)
            case LeaseLost():
                return False
            case _ as never:
                assert_never(never)
        return True

    def _retry(self, due: DueAction, later: RetryLater) -> None:
        """Schedule another attempt, or fail the action if it has used up its attempts.

        An attempt is not counted if the action waits until a known time, such as the reset of a
        rate limit, or if GitHub or this machine has an outage, such as a full disk.
        """
        at = later.at or self.outages.retry_at(later.why, of_github=later.outage)
        if at is not None:
            # One that waits may be deferred every few seconds for hours: the first time is news.
            level = logging.DEBUG if self._deferred.get(due.seq) == later.why else logging.INFO
            self._deferred[due.seq] = later.why
            log.log(level, "%s: %s: deferred: %s", due.subject, due.action.key, later.why)
            self.outbox.defer(due.seq, at, later.why)
            return
        self._deferred.pop(due.seq, None)
        starts = due.action.key.kind is KeyKind.START
        most = self.attempts.starts(due.repository) if starts else self.attempts.most
        if later.outage:
            most = max(most, _OUTAGE_ATTEMPTS)
        attempt = due.attempts + 1
        if attempt >= most:
            self._fail(due, _reason(due), f"{later.why} (tried {counted(attempt, 'time')})")
            return
        pause = timedelta(seconds=delay(attempt, self.attempts.first_seconds))
        log.warning("%s: %s: retried later: %s", due.subject, due.action.key, later.why)
        self.outbox.mark_retry(due.seq, later.why, self.clock() + pause)

    def _fail(self, due: DueAction, reason: Reason, why: str) -> None:
        log.error("%s: %s: failed: %s", due.subject, due.action.key, why)
        if not due.session:  # No session shows it.
            failed = f"{_posted(due.action)} could not be posted: {why}; run `mergewright doctor`"
            self.incidents.report(_incident(due), f"{due.repository}: {failed}", self.clock())
        self.outbox.mark_failed(due.seq, reason, why, self.clock())


def _place(due: DueAction) -> tuple[str, KeyKind]:
    return due.queue, due.action.key.kind


def _reason(due: DueAction) -> Reason:
    return Reason.SPAWN_FAILED if due.action.key.kind is KeyKind.START else Reason.ACTION_FAILED


def _incident(due: DueAction) -> str:
    """Return the key of a repository's incident about failed actions that belong to no session.

    The incident is open until such an action succeeds in that repository.
    """
    return f"outbox:{due.repository}"


def _posted(action: Action) -> str:
    """Return what an action without a session posts, in words."""
    match action:
        case Comment(number=number):
            return f"a reply on #{number}"
        case ReportConfiguration(path=path):
            return f"the check of {path}"
        case _:
            return "a reaction to a comment"
