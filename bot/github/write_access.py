"""Who may steer: people GitHub says may write to the repository, and those who are listed."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from bot.github.client import GitHub
from bot.system.clock import Clock

#: How long an answer is kept for comments. Starts and merges ask anew.
_KEPT = timedelta(seconds=60)
_MOST = 10_000


def _nobody(_repository: str, _login: str) -> bool:
    return False


def from_here(actor: str) -> bool:
    """Whether who asks did it by a door of this machine. No login of GitHub has a colon in it."""
    return ":" in actor


class WriteAccess:
    """Permissions as GitHub gives them. An answer that cannot be had is an exception, never yes."""

    def __init__(
        self, github: GitHub, clock: Clock, lists: Callable[[str, str], bool] = _nobody
    ) -> None:
        """`lists`: whether somebody may steer a repository whatever GitHub says of them."""
        self._github = github
        self._clock = clock
        self._lists = lists
        self._known: dict[tuple[str, str], tuple[bool, datetime]] = {}
        self._lock = threading.Lock()

    def lists(self, repository: str, login: str) -> bool:
        """Whether somebody is listed there, whatever GitHub says of them."""
        return self._lists(repository, login)

    def may_steer(self, repository: str, login: str, *, fresh: bool = False) -> bool:
        """Whether somebody's word counts: they may write, or are listed. As `may_write`."""
        if self._lists(repository, login):
            return True
        return self.may_write(repository, login, fresh=fresh)

    def may_write(self, repository: str, login: str, *, fresh: bool = False) -> bool:
        """Whether this person may write. `fresh`: ask GitHub now. Raises `GitHubFailure`."""
        if not login:
            return False
        key = (repository, login.lower())
        now = self._clock()
        with self._lock:
            known = self._known.get(key)
        if known is not None and not fresh and now - known[1] < _KEPT:
            return known[0]
        answer = self._github.read.may_write(repository, login)
        with self._lock:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = (answer, now)
        return answer
