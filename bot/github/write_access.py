"""Decides who may do what, by people's permission in a repository and the configured lists.

Write access is the permission `write` or higher:
https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
"""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from bot.github.client import GitHub
from bot.github.roles import RepositoryRole
from bot.system.clock import Clock
from lifecycle.model.roles import Role

#: How long a permission is cached. Starts and merges always read it again.
_CACHED = timedelta(seconds=60)
_CACHE_SIZE = 10_000


class WriteAccess:
    """Reads and caches permissions. A failed read raises an exception, and never grants access."""

    def __init__(
        self, github: GitHub, clock: Clock, is_listed: Callable[[str, str], bool] = lambda *_: False
    ) -> None:
        """`is_listed(repository, login)`: whether the configuration lets someone give commands."""
        self._github = github
        self._clock = clock
        self.is_listed = is_listed
        self._known: dict[tuple[str, str], tuple[bool, datetime]] = {}
        self._roles: dict[tuple[str, str], tuple[RepositoryRole, datetime]] = {}
        self._lock = threading.Lock()

    def may_command(self, repository: str, login: str, *, fresh: bool = False) -> bool:
        """Whether an account has write access, or is listed in the configuration.

        With `fresh`, write access is read from GitHub instead of the cache. Raises `GitHubFailure`.
        """
        return self.is_listed(repository, login) or self.may_write(repository, login, fresh=fresh)

    def may_write(self, repository: str, login: str, *, fresh: bool = False) -> bool:
        """Whether this account has write access. `fresh`: read it now instead of using the cache.

        Raises `GitHubFailure`.
        """
        if not login:
            return False
        key = (repository, login.lower())
        now = self._clock()
        with self._lock:
            known = self._known.get(key)
        if known is not None and not fresh and now - known[1] < _CACHED:
            return known[0]
        allowed = self._github.read.may_write(repository, login)
        with self._lock:
            if len(self._known) >= _CACHE_SIZE:
                self._known.clear()
            self._known[key] = (allowed, now)
        return allowed

    def role(
        self, repository: str, login: str, *, user: int = 0, within: timedelta = _CACHED
    ) -> Role:
        """Return a person's role, from the cache if it was read less than `within` ago.

        A person listed in the configuration gets at least `Role.WRITE`, even without write access
        on GitHub, which `may_write` checks. `user` is GitHub's numeric ID of the account, or 0 if
        it is unknown. With an ID, another account that took over the login gets no role. Raises
        `GitHubFailure`.
        """
        if not login:
            return Role.NONE
        key, now = (repository, login.lower()), self._clock()
        with self._lock:
            known = self._roles.get(key)
        if known is None or now - known[1] >= within:
            known = self._github.roles.of(repository, login), now
            with self._lock:
                if len(self._roles) >= _CACHE_SIZE:
                    self._roles.clear()
                self._roles[key] = known
        found = known[0]
        if user and found.user and found.user != user:
            return Role.NONE
        return max(found.role, Role.WRITE) if self.is_listed(repository, login) else found.role
