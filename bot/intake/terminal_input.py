"""Records what people type into the terminals of agents, for the outbox to type it there.

This input is not parsed as commands: it goes to the program unchanged, except that most control
characters, such as ESC, are removed from pasted text. It is erased from the database before it is
typed, so that it is typed at most once. The history keeps who typed how many characters.
"""

import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from bot.intake.commands import InvalidArgument
from bot.intake.local_commands import KeyReused
from bot.store import Session, Store
from lifecycle.judge.pauses import frozen_by
from lifecycle.model import keys
from lifecycle.model.actions import PressKeys
from lifecycle.model.status import Probe
from lifecycle.read.sentences import person
from runtimes.base import KEY, printable

#: The most keys in one request, and the most characters of a text to paste.
MOST_KEYS: Final = 100
MOST_PASTED: Final = 10_000
#: The requests for one session that are taken at once, and in each second after that.
_BURST, _PER_SECOND = 40.0, 20.0
#: If typed keys wait for longer than this, the outbox is not typing now.
_STALLED: Final = timedelta(seconds=5)


class NotTypable(Exception):
    """Nothing can be typed into a session's terminal now.

    `forbidden` says that the session has no sandbox. Nothing can be typed until the session is
    restarted in a sandbox.
    """

    def __init__(self, why: str, remedy: str, *, forbidden: bool = False) -> None:
        super().__init__(why)
        self.remedy = remedy
        self.forbidden = forbidden


class TypedTooFast(Exception):
    """There were too many requests for a session in the last seconds."""


class TypingStalled(Exception):
    """Earlier input for the session has waited for five seconds: the outbox is not typing now."""


class _Allowance(Struct):
    """How many requests a session had left at the time `at` of the monotonic clock."""

    left: float
    at: float


class TerminalInput:
    """Accepts what people type into terminals. The caller has checked their permission."""

    def __init__(
        self,
        store: Store,
        is_isolated: Callable[[Session], bool],
        wake: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the store, two callbacks and a monotonic clock.

        `is_isolated` returns whether a session's run is in a sandbox. `wake` makes the outbox look
        for new actions.
        """
        self._store = store
        self._is_isolated = is_isolated
        self._wake = wake
        self._clock = clock
        self._allowances: dict[str, _Allowance] = {}
        self._lock = threading.Lock()

    def check(self, session: Session) -> None:
        """Raise `NotTypable` unless people may type into a session's terminal now."""
        agent, facts = session.agent, self._store.facts.get(session.id)
        over = agent.exit is not None or agent.stopped or agent.program is Probe.DEAD
        if not session.run or session.ended or agent.run != session.run or over:
            remedy = "Start or resume the session, and type once its terminal is shown."
            raise NotTypable(f"the agent of {session.id} is not running", remedy)
        if frozen := frozen_by(facts):
            what = {"all": "everything", "project": session.project}.get(frozen.scope, session.id)
            raise NotTypable(f"{person(frozen.by)} froze {what}", "Undo the freeze first.")
        if not self._is_isolated(session):
            raise NotTypable(
                f"the agent of {session.id} does not run in a sandbox, so that its terminal has all"
                " rights of the bot's user",
                'Remove isolation = "none" from the configuration if it has this, reload it, and'
                " restart the session. Or attach to the terminal on the server.",
                forbidden=True,
            )

    def add(
        self, session: Session, *, by: str, request: str, pressed: Sequence[str], paste: str
    ) -> tuple[PressKeys, bool]:
        """Queue input for the terminal: the text `paste`, and after it the keys `pressed`.

        `by` is the person. `request` is the idempotency key: repeated within ten minutes, it
        queues nothing. Returns the queued action, and whether it is new.

        Raises:
            NotTypable: see `check`.
            TypedTooFast: there were too many requests in the last seconds.
            TypingStalled: earlier input has waited for more than five seconds.
            InvalidArgument: a key does not exist, or there is too much or nothing to type.
            KeyReused: `request` was used by somebody else or for input of another length.
        """
        for key in pressed:
            if not KEY.fullmatch(key):
                raise InvalidArgument(f"there is no key {key[:20]!r}")
        if len(pressed) > MOST_KEYS or len(paste) > MOST_PASTED:
            most = f"{MOST_KEYS} keys and {MOST_PASTED:,} characters to paste"
            raise InvalidArgument(f"a request may have at most {most}")
        self.check(session)
        self._count(session.id)
        store, now, text = self._store, self._store.clock(), printable(paste)
        since = store.outbox.keys_wait_since(session.id)
        if since is not None and now - since > _STALLED:
            raise TypingStalled("the bot is not passing keys on to the terminal now")
        action = PressKeys(
            key=keys.press_keys(request, session.run),
            run=session.run,
            by=by,
            at=now,
            count=len(pressed) + len(text),
            paste=text,
            keys=tuple(pressed),
        )
        if not action.count:
            raise InvalidArgument("there is nothing to type")
        known = store.outbox.add_keys(session.id, action)
        if known is None:
            self._wake()
            return action, True
        if (known.by, known.count) != (by, action.count):
            raise KeyReused(f"the idempotency key {request!r} was used for something else")
        return known, False

    def _count(self, session: str) -> None:
        """Count a request. Raises `TypedTooFast`."""
        with self._lock:
            now = self._clock()
            known = self._allowances.get(session, _Allowance(_BURST, now))
            left = min(_BURST, known.left + (now - known.at) * _PER_SECOND)
            if left < 1:
                raise TypedTooFast(f"too much is typed into the terminal of {session}")
            fresh = {
                name: one
                for name, one in self._allowances.items()
                if now - one.at < _BURST / _PER_SECOND
            }
            self._allowances = {**fresh, session: _Allowance(left - 1, now)}
