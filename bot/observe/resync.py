"""Runs the periodic resync, which finds changes whose webhooks were lost."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, TryLater
from bot.github.reader import FINGERPRINT_BATCH
from bot.observe.issues import IssueObserver
from bot.observe.refresh_budget import RefreshBudget
from bot.store import LiveSession, SessionsTable

log = logging.getLogger(__name__)

#: After so many failed requests, the resync gives up on a repository, because GitHub itself fails.
_MOST_FAILURES = 8


#: `issue` or `pull`, and the number.
_Subject = tuple[str, int]


@dataclass(frozen=True)
class Resync:
    """Compares the fingerprints of issues and pull requests with those of the last full reads.

    The subjects are all labelled issues, and the issues and pull requests of live sessions. The
    resync only requests refreshes, so a failed read changes nothing.
    """

    sessions: SessionsTable
    github: GitHub
    issues: IssueObserver
    refresh_budget: RefreshBudget

    def run(self) -> None:
        """Compare all fingerprints once, and request refreshes of what changed.

        Also requests refreshes of what fingerprints do not cover. Repositories whose rate limit is
        nearly used up are skipped.
        """
        live = [one for one in self.sessions.live() if one.project in self.issues.projects]
        budget = self.refresh_budget
        wanted: dict[str, set[_Subject]] = {}
        for repository, number in self.issues.labelled():
            wanted.setdefault(repository, set()).add(("issue", number))
        for one in live:
            pulls = (("pull", number) for number in one.pulls)
            issues = [("issue", one.number)] if one.number else []
            wanted.setdefault(one.repository, set()).update([*issues, *pulls])
        budget.retain_only((name, number) for name, all_ in wanted.items() for _, number in all_)
        for repository, subjects in wanted.items():
            if not budget.has_spare(repository):
                log.warning("%s: no resync: the rate limit is nearly used up", repository)
                continue
            found = self._changed(repository, sorted(subjects))
            changed = [f"{kind}:{number}" for kind, number in found]
            unseen = _unseen(one for one in live if one.repository == repository)
            budget.request(repository, [*changed, *sorted(unseen.difference(changed))])

    def _changed(self, repository: str, subjects: Sequence[_Subject]) -> list[_Subject]:
        """Return the subjects that must be read in full; see `RefreshBudget.has_changed`.

        A failed batch is halved and repeated, because GitHub may fail at a single subject. Such a
        subject counts as changed. At a rate limit, or after many failures, the subjects that were
        not compared yet are left out until the next resync.
        """
        waiting = [
            subjects[at : at + FINGERPRINT_BATCH]
            for at in range(0, len(subjects), FINGERPRINT_BATCH)
        ]
        changed: list[_Subject] = []
        failures = 0
        while waiting:
            batch = waiting.pop(0)
            try:
                changed += self._changed_in(repository, batch)
            except GitHubFailure as failure:
                failures += 1
                limited = isinstance(failure, TryLater) and failure.at is not None
                if limited or failures == _MOST_FAILURES:
                    log.warning("%s: resync incomplete: %s", repository, failure)
                    break
                half = len(batch) // 2
                waiting[:0] = [batch[:half], batch[half:]] if half else []
                changed += [] if half else batch
        return changed

    def _changed_in(self, repository: str, batch: Iterable[_Subject]) -> list[_Subject]:
        issues = [number for kind, number in batch if kind == "issue"]
        pulls = [number for kind, number in batch if kind == "pull"]
        seen = self.github.read.fingerprints(repository, issues, pulls)
        return [
            (kind, number)
            for kind, number in batch
            if self.refresh_budget.has_changed((repository, number), seen[number])
        ]


def _unseen(live: Iterable[LiveSession]) -> set[str]:
    """Return branches without pull requests, and blocked issues: fingerprints do not cover them."""
    found = set[str]()
    for one in live:
        if one.run and not one.pulls:
            found.add(f"branch:{one.branch}")
        if one.blocked:
            found.add(f"issue:{one.number}")
    return found
