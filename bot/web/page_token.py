"""The installation's one token for the pages and the API, and the limit on guesses."""

import hashlib
import hmac
import threading
import time
from collections.abc import Callable

from litestar.exceptions import TooManyRequestsException

#: The most different wrong words a minute that one `Guesses` allows to all visitors together.
_GUESSES_A_MINUTE = 60
_MINUTE = 60.0


class PageToken:
    """Checks whether a token is the page token, within a limit on wrong ones; see `opens`."""

    def __init__(self, token: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """If `token` is empty, no token is accepted."""
        self._token = token
        self._guesses = Guesses("tokens", clock)

    def __bool__(self) -> bool:
        """Whether there is a token."""
        return bool(self._token)

    def opens(self, token: str) -> bool:
        """Whether `token` is the page token, compared in constant time.

        Raises 429 if visitors have tried too many wrong tokens within a minute, even if `token` is
        right. If `token` is one of those wrong tokens, the result is False instead of the error.
        Signed-in browsers stay signed in.
        """
        if self._guesses.is_known(token):
            return False
        found = bool(self._token) and hmac.compare_digest(_digest(token), _digest(self._token))
        if not found:
            self._guesses.add(token)
        return found

    def seal(self, text: str) -> str:
        """Return a hash of a text, with the page token as the key."""
        return hmac.new(self._token.encode(), text.encode(), "sha256").hexdigest()


class Guesses:
    """Limits how many wrong words, such as tokens or sign-in codes, may be tried in a minute.

    All visitors share the limit, because headers with an address, such as X-Forwarded-For, can be
    forged. A repeated word is not counted again, so that a program with an old token does not lock
    others out.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`what` is what error messages call the words: a plural, such as `tokens`."""
        self._what = what
        self._clock = clock
        self._until = 0.0
        self._wrong: set[bytes] = set()  # SHA-256.
        self._lock = threading.Lock()

    def is_known(self, word: str) -> bool:
        """Whether a word was counted as wrong in the current minute; older ones are forgotten.

        Raises 429 for any other word, right or wrong, if too many wrong words were tried.
        """
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
