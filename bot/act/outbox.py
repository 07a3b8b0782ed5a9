"""Doing what was written down: judge once more, do, mark; try again later, or give it up."""

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from msgspec import Struct

from bot.decide.reconciler import Reconciler
from bot.store import Due, Observed, RefreshRequest, Store, StoreFailure
from bot.system.clock import Clock
from bot.system.crash_points import CrashPoint, Step
from lifecycle.judge.pauses import frozen_by
from lifecycle.model.backoff import delay
from lifecycle.model.status import Reason

log = logging.getLogger(__name__)


#: How long what a freeze holds is left alone before it is looked at again.
_HELD = timedelta(seconds=2)
#: How often it is tried while GitHub is out of order: for about an hour by default.
_OUTAGE_TRIES = 20


class NotOurs(Exception):
    """This bot may not act now: it is ending, another leads, or nothing can be written down."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of an action that was done."""

    result: str = ""
    observed: Observed | None = None  #: Facts that are known because it was done.
    refreshes: tuple[RefreshRequest, ...] = ()  #: Where to look now.


class Later(Exception):
    """An action could not be done now; trying again may help."""

    def __init__(self, why: str, at: datetime | None = None, *, outage: bool = False) -> None:
        super().__init__(why)
        self.at = at  #: When it may work; None: after the usual wait.
        self.outage = outage  #: Whether it is no fault of the action's, but GitHub's for a while.


class Impossible(Exception):
    """An action cannot be done, and trying again will not change that."""

    def __init__(self, why: str, reason: Reason | None = None) -> None:
        super().__init__(why)
        self.reason = reason  #: None: that of any action of its kind.


class Moot(Exception):
    """An action's cause is gone; it is taken back, and may be asked for again."""


class Frozen(Exception):
    """A person stopped every effect; what was written down is held until that is undone."""


#: Asks once more whether an action is wanted and may be done; raises `Moot`, `Frozen`, `NotOurs`.
Check = Callable[[], None]


class Doer(Protocol):
    """Carries actions out."""

    def do(self, due: Due, check: Check) -> Outcome:
        """Carry out one action. Raises `Later` or `Impossible`.

        What takes a while before its effect goes out calls `check` as the last thing before it.
        """
        ...

    def was_done(self, due: Due) -> Outcome | None:
        """What came of it, where a crash came between doing it and marking it.

        Asked before it is judged again, because having been done may be what makes it unwanted:
        an agent that got a message is at work. None: not known to have been done.
        """
        ...


class Tries(Struct, frozen=True, kw_only=True):
    """How often and how soon a failed action is tried again."""

    most: int
    first_seconds: float
    starts: int  #: The same for starts.


class Outbox:
    """Carries out due actions: of one session one after the other, of several side by side."""

    def __init__(
        self,
        store: Store,
        engine: Reconciler,
        doer: Doer,
        workers: Executor,
        tries: Tries,
        clock: Clock,
        crash_point: CrashPoint,
        may_act: Callable[[], bool],
        on_done: Callable[[], None],
    ) -> None:
        self._store = store
        self._engine = engine
        self._doer = doer
        self._workers = workers
        self._tries = tries
        self._clock = clock
        self._crash_point = crash_point
        self._may_act = may_act
        self._on_done = on_done
        self._at_work: dict[str, Future[bool]] = {}

    def drain(self) -> int:
        """Hand every due action to a worker that is not on it yet. Returns how many.

        For one thread at a time.
        """
        # Before the store is read: what it says of a session that was at work until then is news.
        self._at_work = {s: work for s, work in self._at_work.items() if not work.done()}
        handed = [
            due for due in self._store.outbox.due(self._clock()) if due.session not in self._at_work
        ]
        for due in handed:
            self._at_work[due.session] = work = self._workers.submit(self._work, due)
            work.add_done_callback(self._worked)
        return len(handed)

    def rest(self, seconds: float) -> bool:
        """Whether the workers have ended what they are at, within so many seconds."""
        return not wait(self._at_work.values(), seconds).not_done

    def _worked(self, work: Future[bool]) -> None:
        # What may not be done or marked now is left to the next beat, not tried without a pause.
        if not work.cancelled() and work.result():
            self._on_done()

    def _work(self, due: Due) -> bool:
        """Carry one action out; whether it is behind us, one way or another."""
        try:
            self._carry_out(due)
        except NotOurs:
            return False
        except Exception as error:
            log.exception("%s: %s: could not be marked", due.session, due.action.key)
            with suppress(StoreFailure):
                self._again(due, f"could not be marked: {error}", None)
            return False
        return True

    def _carry_out(self, due: Due) -> None:
        """Write it down (done before), do it, mark it done: law 8."""
        about = f"{due.session} {due.action.key}"
        try:
            outcome = self._doer.was_done(due) or self._do(due, about)
        except NotOurs:
            raise
        except Moot as gone:
            log.info("%s: taken back: %s", about, gone)
            self._store.outbox.withdraw(due.seq, self._clock())
        except Frozen:
            self._store.outbox.defer(due.seq, self._clock() + _HELD)
        except Later as later:
            self._again(due, str(later), later.at, outage=later.outage)
        except Impossible as no:
            self._give_up(due, no.reason or _reason(due), str(no))
        except Exception as error:
            log.exception("%s: failed", about)
            self._again(due, f"{type(error).__name__}: {error}", None)
        else:
            self._crash_point(Step.DONE, about)
            self._store.outbox.mark_done(
                due.seq,
                outcome.result,
                self._clock(),
                observed=outcome.observed,
                refreshes=outcome.refreshes,
            )
            log.info("%s: done%s", about, f": {outcome.result}" if outcome.result else "")
            self._crash_point(Step.MARKED, about)

    def _do(self, due: Due, about: str) -> Outcome:
        check = partial(self._check, due)
        self._crash_point(Step.TAKEN, about)
        check()
        return self._doer.do(due, check)

    def _check(self, due: Due) -> None:
        facts = self._store.facts.get(due.session)
        if frozen_by(facts) is not None:
            raise Frozen
        if not self._engine.still_wanted(facts, due.action):
            raise Moot("its cause is gone")
        # A bot that lost its place does nothing any more, and what could not be marked is not done.
        if not self._may_act() or not self._store.writable():
            raise NotOurs

    def _again(self, due: Due, why: str, at: datetime | None, *, outage: bool = False) -> None:
        """Later, unless the tries are used up. A wait that GitHub asked for is not a failed try."""
        if at is not None:
            log.info("%s: %s: waits: %s", due.session, due.action.key, why)
            self._store.outbox.defer(due.seq, at, why)
            return
        most = self._tries.starts if due.action.key.startswith("start:") else self._tries.most
        if outage:
            most = max(most, _OUTAGE_TRIES)
        tried = due.attempts + 1
        if tried >= most:
            self._give_up(due, _reason(due), f"{why} (tried {tried} times)")
            return
        wait = timedelta(seconds=delay(tried, self._tries.first_seconds))
        log.warning("%s: %s: later: %s", due.session, due.action.key, why)
        self._store.outbox.mark_retry(due.seq, why, self._clock() + wait)

    def _give_up(self, due: Due, reason: Reason, why: str) -> None:
        log.error("%s: %s: given up: %s", due.session, due.action.key, why)
        self._store.outbox.mark_failed(due.seq, reason, why, self._clock())


def _reason(due: Due) -> Reason:
    return Reason.SPAWN_FAILED if due.action.key.startswith("start:") else Reason.ACTION_FAILED
