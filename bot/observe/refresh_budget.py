"""Rate-limits background refreshes: reads only changed subjects, and postpones failed reads."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.github.fingerprints import Fingerprint
from bot.github.rate_limits import Backoff
from bot.store import DueRefresh, RefreshesTable, RefreshRequest
from bot.system.clock import Clock
from bot.system.log import log_fields
from bot.system.tracing import note, span

log = logging.getLogger(__name__)

#: Repository and number of an issue or pull request, which share one sequence of numbers.
Numbered = tuple[str, int]

#: How many subjects are read at once; the rest is spread over the time until the limit resets.
_AT_ONCE = 20
#: The field of log lines for a kind of subject.
_FIELDS = {"pull": "pull_request", "sha": "commit"}
#: A fingerprint is kept only if its subject's last change is older than this. GitHub's times are
#: whole seconds, so several changes in a second may share a fingerprint.
_SECOND = timedelta(seconds=2)
#: A subject is read in full after this time, as fingerprints do not cover everything.
FULL_READ = timedelta(hours=4)


class RefreshBudget:
    """Decides which subjects background refreshes read in full, and how many of them at once.

    Keeps the fingerprint that each issue and pull request had at its last full read. While the
    fingerprint is unchanged, the resync reads the subject again only after four hours. Fingerprints
    are kept in memory: after a restart, every subject is read once.
    """

    def __init__(self, refreshes: RefreshesTable, github: GitHub, clock: Clock) -> None:
        self._refreshes = refreshes
        self._github = github
        self._clock = clock
        self._backoff = Backoff(clock)
        self._known: dict[Numbered, tuple[Fingerprint, datetime]] = {}
        self._found: dict[Numbered, Fingerprint] = {}

    def has_changed(self, thing: Numbered, fingerprint: Fingerprint | None) -> bool:
        """Whether an issue or pull request must be read in full.

        False only if it was last read in full less than four hours ago, and had the same
        `fingerprint` then. `fingerprint` is None if the issue or pull request cannot be read.

        If the result is True, the fingerprint is remembered, and `found` returns it. A fingerprint
        is not remembered if it is None, or if the issue or pull request changed less than two
        seconds ago: another change in the same second might leave the fingerprint as it is.
        """
        now = self._clock()
        known, at = self._known.get(thing, (None, now))
        if fingerprint is not None and fingerprint == known and now - at < FULL_READ:
            return False
        # By GitHub's clock: if the bot's is ahead, the second may not be over there.
        if fingerprint is not None and (
            self._github.server_time() - fingerprint.updated_at > _SECOND
        ):
            self._found[thing] = fingerprint
        return True

    def found(self, thing: Numbered) -> Fingerprint | None:
        """Return the fingerprint that `has_changed` remembered last; None if there is none.

        Call it before the full read, and pass the result to `record` after the read.
        """
        return self._found.get(thing)

    def record(self, thing: Numbered, fingerprint: Fingerprint | None) -> None:
        """Record that the subject was read in full after it had this fingerprint; ignore None."""
        if fingerprint is not None:
            self._known[thing] = (fingerprint, self._clock())

    def retain_only(self, things: Iterable[Numbered]) -> None:
        """Forget the fingerprints of all other issues and pull requests."""
        kept = set(things)
        self._known = {thing: known for thing, known in self._known.items() if thing in kept}
        self._found = {thing: found for thing, found in self._found.items() if thing in kept}

    def has_spare(self, repository: str) -> bool:
        """Whether the rate limit has points left for background reads. True if that is unknown."""
        budget = self._github.read.budget(repository)
        return budget is None or budget.spare > 0

    def request(self, repository: str, subjects: Sequence[str]) -> None:
        """Request refreshes: the first 20 at once, the rest spread over time.

        Of the rest, those for which the rate limit has no points left are not requested.
        """
        now, budget = self._clock(), self._github.read.budget(repository)
        refreshes = [RefreshRequest(repository=repository, subject=subject) for subject in subjects]
        self._refreshes.request(refreshes[:_AT_ONCE], now)
        rest = refreshes[_AT_ONCE : budget.spare if budget else None]
        self._refreshes.request(rest, now, apart=budget.interval(now) if budget else timedelta())

    @contextmanager
    def postponed_on_failure(self, refresh: DueRefresh) -> Iterator[None]:
        """Postpone the refresh if the block raises, and longer after each failure in a row.

        The exception is logged, and not raised again.
        """
        name = refresh.name
        kind, _, number = refresh.subject.partition(":")
        fields = {"repository": refresh.repository}
        if number:  # The subject is not a whole repository.
            fields[_FIELDS.get(kind, kind)] = number
        with log_fields(**fields), span("refresh", name, **fields):
            try:
                yield
            except Exception as error:
                note(error=type(error).__name__)
                if isinstance(error, GitHubFailure):
                    log.warning("%s: not read: %s", name, error)
                else:
                    log.exception("%s: not read", name)
                self._refreshes.postpone(refresh, self._backoff.next_try(name, error))
            else:
                self._backoff.reset(name)
