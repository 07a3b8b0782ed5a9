"""What was done, sorted once by what is asked of it."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from lifecycle import keys
from lifecycle.facts import Done


class Telling(NamedTuple):
    """That the agent was told of a cause, in which run and when."""

    run: int
    at: datetime


class Past:
    """The keys of actions that were done, read as what happened."""

    def __init__(self, done: Mapping[str, Done]) -> None:
        self.pushes: dict[str, datetime] = {}  #: Every commit pushed, with when.
        self.given: dict[int, datetime] = {}  #: When a run was last given something to do.
        self.crashes: dict[int, datetime] = {}  #: Runs that broke off, with when the next began.
        self.stopped = self.released = False
        self._told: dict[str, list[Telling]] = {}
        for key, what in done.items():
            kind, _, rest = key.partition(":")
            if kind == "push":
                self.pushes[rest] = what.at
            elif kind in ("start", "tell", "heard"):
                self._remember(kind, key, what.at)
            elif kind == "stop":
                self.stopped = True
            elif kind == "release":
                self.released = True
        self.last_push = max(self.pushes.values(), default=None)

    def _remember(self, kind: str, key: str, at: datetime) -> None:
        cause, run = keys.split(key)
        if kind != "start":
            self._told.setdefault(cause, []).append(Telling(run, at))
        elif cause == "start:crash":
            self.crashes[run - 1] = at
        if kind != "heard" and (run not in self.given or at > self.given[run]):
            self.given[run] = at

    def heard(self, cause: str) -> Telling | None:
        """When the agent was last told of a cause, without what went down with its run.

        A run that broke off takes along what it was told and had not answered with a push.
        """
        standing = [telling for telling in self._told.get(cause, ()) if not self._lost(telling)]
        return max(standing, key=lambda telling: telling.at, default=None)

    def _lost(self, telling: Telling) -> bool:
        broke_off = self.crashes.get(telling.run)
        return broke_off is not None and not any(
            telling.at < pushed <= broke_off for pushed in self.pushes.values()
        )

    def told(self, prefix: str, since: datetime | None = None) -> dict[str, datetime]:
        """The causes told that begin so, with when first; each counts once, however often told."""
        first = {
            cause: min(telling.at for telling in tellings)
            for cause, tellings in self._told.items()
            if cause.startswith(prefix)
        }
        return {cause: at for cause, at in first.items() if since is None or at > since}

    def pushed_since(self, at: datetime) -> bool:
        """Whether anything was pushed after `at`."""
        return self.last_push is not None and self.last_push > at
