"""What was done, sorted once by what is asked of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from lifecycle.model import keys
from lifecycle.model.facts import Done

#: The kinds of actions that give a run's agent something to do.
_GIVING: Final = ("start", "tell")
#: The kinds of actions that keep a place up to date: `KIND:PLACE:TIMES:CAUSE`.
_SHOWING: Final = ("report", "check", "state")
#: The kinds of actions that end a run's program.
ENDINGS: Final = ("stop", "park", "release")
#: The keys, without their run, of what ends a program at rest or in the middle of its work.
REST, INTERRUPTED = "park:rest", "park:work"


class Telling(NamedTuple):
    """That the agent was told of a cause, in which run and when."""

    run: int
    at: datetime


class Sorted(NamedTuple):
    """Keys by what is asked of them."""

    by_kind: Mapping[str, list[str]]  #: By the first word of each.
    giving: Mapping[int, list[str]]  #: Those that gave a run something to do.
    #: Those by which a place was brought up to date, by the place, in their order.
    shown: Mapping[str, list[str]]


@lru_cache(maxsize=512)
def _sorted(done: tuple[str, ...]) -> Sorted:
    """Keys in their order. They are the same ones at nearly every visit of a session."""
    by_kind: dict[str, list[str]] = {}
    giving: dict[int, list[str]] = {}
    for key in done:
        kind = key.partition(":")[0]
        by_kind.setdefault(kind, []).append(key)
        if kind in _GIVING:
            giving.setdefault(keys.split(key)[1], []).append(key)
    shown: dict[str, list[str]] = {}
    for key in (key for kind in _SHOWING for key in by_kind.get(kind, ())):
        shown.setdefault(key.rsplit(":", 2)[0], []).append(key)
    for known in shown.values():
        known.sort(key=lambda key: int(key.rsplit(":", 2)[1]))
    return Sorted(by_kind, giving, shown)


class ActionHistory:
    """The keys of actions that were done, read as what happened."""

    def __init__(self, done: Mapping[str, Done]) -> None:
        self._done = done
        self._keys, self._giving, self._shown = _sorted(tuple(done))
        self.begun = "start" in self._keys  #: Whether any run was started.
        #: Runs whose program we ended ourselves, with when.
        self.ended: dict[int, datetime] = {}
        if not self._keys.keys().isdisjoint(ENDINGS):
            self.ended = {keys.split(key)[1]: at for key, at in self._of(*ENDINGS)}

    def _of(self, *kinds: str) -> list[tuple[str, datetime]]:
        """What was done of some kinds: each key, with when."""
        done, of_kind = self._done, self._keys
        return [(key, done[key].at) for kind in kinds for key in of_kind.get(kind, ())]

    @property
    def readied(self) -> bool:
        """Whether a draft was made ready."""
        return "ready" in self._keys

    @property
    def stopped(self) -> bool:
        """Whether a run was stopped for good."""
        return "stop" in self._keys

    @property
    def released(self) -> bool:
        """Whether runtime and workspace were given back."""
        return "release" in self._keys

    @property
    def labels(self) -> int:
        """How often the label that calls people was put on or taken off."""
        return len(self._keys.get("label", ()))

    def shown(self, place: str) -> Sequence[str]:
        """The keys by which a place was brought up to date, the last one last."""
        return self._shown.get(place, ())

    @cached_property
    def pushes(self) -> dict[str, datetime]:
        """Every commit pushed, with when."""
        return {key.removeprefix("push:"): at for key, at in self._of("push")}

    @cached_property
    def interrupted(self) -> set[int]:
        """Runs whose program we ended in the middle of its work."""
        ended = (keys.split(key) for key, _ in self._of("park"))
        return {run for cause, run in ended if cause == INTERRUPTED}

    @property
    def last_push(self) -> datetime | None:
        """When a commit was pushed last."""
        return self._newest(self._keys.get("push"))

    def _newest(self, found: list[str] | None) -> datetime | None:
        if not found:
            return None
        done = self._done
        newest = done[found[0]].at
        for key in found:
            if (at := done[key].at) > newest:
                newest = at
        return newest

    def given(self, run: int) -> datetime | None:
        """When a run was last given something to do; None: it never started."""
        return self._newest(self._giving.get(run))

    def started_since(self, then: datetime) -> bool:
        """Whether a run was started after then, for whatever cause."""
        return any(at > then for _, at in self._of("start"))

    def updated_since(self, then: datetime) -> bool:
        """Whether the base was brought in after then, for whatever cause."""
        return any(at > then for _, at in self._of("update"))

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
        starts = self._of("start")
        return {keys.split(key)[1] - 1: at for key, at in starts if key.startswith(start)}

    @cached_property
    def _told(self) -> dict[str, list[Telling]]:
        told: dict[str, list[Telling]] = {}
        for key, at in self._of("tell", "heard"):
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
