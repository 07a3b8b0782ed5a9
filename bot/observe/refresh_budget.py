"""Looks that nobody waits for: asked for where something seems new, and not too many at once."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from bot.github.client import GitHub
from bot.github.snapshots import Fingerprint
from bot.store import RefreshRequest, Store
from bot.system.clock import Clock

#: An issue or a pull request, which share their numbers: repository and number.
Thing = tuple[str, int]

#: How many are read at once; the rest is spread over the time until there are more points.
_AT_ONCE = 20
#: GitHub tells whole seconds: what was changed in this one may be changed again in it.
_SECOND = timedelta(seconds=2)
#: A glance does not show everything: once in so long all is read, whatever it looks like.
WHOLE = timedelta(hours=4)


class RefreshBudget:
    """Knows how things at GitHub looked when they were last read whole.

    What looks the same needs no other read. A restart forgets it, and everything is read once.
    """

    def __init__(self, store: Store, github: GitHub, clock: Clock) -> None:
        self._store = store
        self._github = github
        self._clock = clock
        self._known: dict[Thing, tuple[Fingerprint, datetime]] = {}
        self._found: dict[Thing, Fingerprint] = {}

    def has_changed(self, thing: Thing, fingerprint: Fingerprint | None) -> bool:
        """Whether it has to be read whole; None: it could not be seen."""
        now = self._clock()
        known, at = self._known.get(thing, (None, now))
        if fingerprint is not None and fingerprint == known and now - at < WHOLE:
            return False
        if fingerprint is not None and now - fingerprint.updated > _SECOND:
            self._found[thing] = fingerprint
        return True

    def found(self, thing: Thing) -> Fingerprint | None:
        """The glance that was news; to be asked before it is read whole, and then kept."""
        return self._found.get(thing)

    def keep(self, thing: Thing, fingerprint: Fingerprint | None) -> None:
        """It was read whole after this glance, and what was read is written down."""
        if fingerprint is not None:
            self._known[thing] = (fingerprint, self._clock())

    def retain_only(self, things: Iterable[Thing]) -> None:
        """Remember nothing of what is of no interest any more."""
        kept = set(things)
        self._known = {thing: known for thing, known in self._known.items() if thing in kept}
        self._found = {thing: found for thing, found in self._found.items() if thing in kept}

    def afford(self, repository: str) -> bool:
        """Whether points are left for what nobody waits for."""
        budget = self._github.read.budget(repository)
        return budget is None or budget.spare > 0

    def ask(self, repository: str, subjects: Sequence[str]) -> None:
        """Have subjects read whole: some at once, more only as far as points can be spared."""
        now, budget = self._clock(), self._github.read.budget(repository)
        refreshes = [RefreshRequest(repository=repository, subject=subject) for subject in subjects]
        self._store.refreshes.request(refreshes[:_AT_ONCE], now)
        rest = refreshes[_AT_ONCE : budget.spare if budget else None]
        self._store.refreshes.request(rest, now, apart=budget.apart(now) if budget else timedelta())
