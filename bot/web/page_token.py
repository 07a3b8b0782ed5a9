"""The one token of an installation for one person, and the limit on guesses."""

import hashlib
import hmac
import threading
import time
from collections.abc import Callable

from litestar.exceptions import TooManyRequestsException

#: The most different wrong words a minute, of all visitors and by all ways together.
_GUESSES_A_MINUTE = 60
_MINUTE = 60.0


class PageToken:
    """The token in the server's environment."""

    def __init__(self, token: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """An empty token opens nothing."""
        self._token = token
        self._guesses = Guesses("tokens", clock)

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self._token)

    def opens(self, token: str) -> bool:
        """Whether this is the token, compared in constant time.

        Raises 429, without a comparison, after too many wrong ones. Signed-in browsers remain so.
        """
        if self._guesses.is_known(token):
            return False
        found = bool(self._token) and hmac.compare_digest(_digest(token), _digest(self._token))
        if not found:
            self._guesses.add(token)
        return found

    def seal(self, text: str) -> str:
        """Return a text's keyed hash, which another token does not give."""
        return hmac.new(self._token.encode(), text.encode(), "sha256").hexdigest()


class Guesses:
    """The wrong words of the last minute, of all visitors: their addresses can be invented.

    No header such as X-Forwarded-For is believed. Only different words count, so that a program
    with an old token keeps nobody out.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`what` they are, in the plural."""
        self._what = what
        self._clock = clock
        self._until = 0.0
        self._wrong: set[bytes] = set()  # SHA-256.
        self._lock = threading.Lock()

    def is_known(self, word: str) -> bool:
        """Whether a word is known to be wrong. Raises 429 if it is not, after too many others."""
        with self._lock:
            if self._clock() >= self._until:
                self._until = self._clock() + _MINUTE
                self._wrong.clear()
            if _digest(word) in self._wrong:
                return True
            if len(self._wrong) >= _GUESSES_A_MINUTE:
                raise TooManyRequestsException(
                    f"Too many wrong {self._what} were tried.",
                    headers={"retry-after": str(int(self._until - self._clock()) + 1)},
                    extra={"remedy": "Wait a minute and try again."},
                )
            return False

    def add(self, word: str) -> None:
        """Count a wrong word."""
        with self._lock:
            self._wrong.add(_digest(word))


def _digest(word: str) -> bytes:
    return hashlib.sha256(word.encode()).digest()
