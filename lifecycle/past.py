"""What was done, sorted once by what is asked of it."""

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Final, NamedTuple

from lifecycle import keys
from lifecycle.facts import Done

_OF_RUNS: Final = ("tell", "heard", "start")
#: The kinds of actions that end a run's program.
ENDINGS: Final = ("stop", "park", "release")
#: The keys, without their run, of what ends a program at rest or in the middle of its work.
REST, INTERRUPTED = "park:rest", "park:work"


class Telling(NamedTuple):
    """That the agent was told of a cause, in which run and when."""

    run: int
    at: datetime


class Past:
    """The keys of actions that were done, read as what happened."""

    def __init__(self, done: Mapping[str, Done]) -> None:
        self.pushes: dict[str, datetime] = {}  #: Every commit pushed, with when.
        self.stopped = self.released = False
        self.ended: dict[int, datetime] = {}  #: Runs whose program we ended ourselves, with when.
        self.interrupted: set[int] = set()  #: Those of them that were in the middle of their work.
        self.begun = False  #: Whether any run was started.
        self.labels = 0  #: How often the label that calls people was put on or taken off.
        self._of_runs: list[tuple[str, str, datetime]] = []
        for key, what in done.items():
            kind, _, rest = key.partition(":")
            if kind in _OF_RUNS:
                self._of_runs.append((kind, key, what.at))
                self.begun |= kind == "start"
            elif kind == "push":
                self.pushes[rest] = what.at
            elif kind in ENDINGS:
                cause, run = keys.split(key)
                self.ended[run] = what.at
                if cause == INTERRUPTED:
                    self.interrupted.add(run)
                self.stopped |= kind == "stop"
                self.released |= kind == "release"
            elif kind == "label":
                self.labels += 1
        self.last_push = max(self.pushes.values(), default=None)

    def given(self, run: int) -> datetime | None:
        """When a run was last given something to do; None: it never started."""
        end = keys.of_run("", run)
        given = [at for kind, key, at in self._of_runs if kind != "heard" and key.endswith(end)]
        return max(given, default=None)

    def started(self, cause: str) -> bool:
        """Whether a run was started for this cause."""
        return any(keys.split(key)[0] == cause for kind, key, _ in self._of_runs if kind == "start")

    @cached_property
    def crashes(self) -> dict[int, datetime]:
        """Runs that failed by themselves, with when the next began."""
        return self._before("start:crash:")

    @cached_property
    def losses(self) -> dict[int, datetime]:
        """Runs that were lost with what they ran on, with when the next began."""
        return self._before("start:lost:")

    @cached_property
    def broke_off(self) -> dict[int, datetime]:
        """Runs that ended before they were finished, whyever, with when the next began."""
        return self.crashes | self.losses

    def _before(self, start: str) -> dict[int, datetime]:
        return {keys.split(key)[1] - 1: at for _, key, at in self._of_runs if key.startswith(start)}

    @cached_property
    def _told(self) -> dict[str, list[Telling]]:
        told: dict[str, list[Telling]] = {}
        for kind, key, at in self._of_runs:
            if kind != "start":
                cause, run = keys.split(key)
                told.setdefault(cause, []).append(Telling(run, at))
        return told

    def heard(self, cause: str) -> Telling | None:
        """When the agent was last told of a cause, without what went down with its run.

        A run that broke off takes along what it was told and had not answered with a push.
        """
        standing = [telling for telling in self._told.get(cause, ()) if not self._lost(telling)]
        return max(standing, key=lambda telling: telling.at, default=None)

    def _lost(self, telling: Telling) -> bool:
        broke_off = self.broke_off.get(telling.run)
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
