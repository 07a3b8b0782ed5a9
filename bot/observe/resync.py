"""The periodic resync, which finds the changes that lost webhooks would have reported."""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, TryLater
from bot.github.reader import FINGERPRINT_BATCH
from bot.observe.issues import IssueObserver
from bot.observe.refresh_budget import RefreshBudget
from bot.store import LiveSession, SessionsTable

log = logging.getLogger(__name__)

#: After so many failed requests for one repository, GitHub itself is at fault.
_MOST_FAILURES = 8


class _Subject(NamedTuple):
    """An issue or a pull request."""

    kind: str  #: `issue` or `pull`.
    number: int

    def __str__(self) -> str:
        """The subject of its refresh request."""
        return f"{self.kind}:{self.number}"


class Resync:
    """Compares fingerprints of all labelled issues, and of live sessions' issues and pull requests.

    It only requests refreshes, so a failed read changes nothing.
    """

    def __init__(
        self,
        sessions: SessionsTable,
        github: GitHub,
        issues: IssueObserver,
        refresh_budget: RefreshBudget,
    ) -> None:
        self._sessions = sessions
        self._github = github
        self._issues = issues
        self._refresh_budget = refresh_budget

    def run(self) -> None:
        """Check everything once."""
        live = self._sessions.live()
        wanted: dict[str, set[_Subject]] = {}
        for repository, number in self._issues.labelled():
            wanted.setdefault(repository, set()).add(_Subject("issue", number))
        for one in live:
            wanted.setdefault(one.repository, set()).update(_subjects(one))
        self._refresh_budget.retain_only(
            (repository, each.number) for repository, all_ in wanted.items() for each in all_
        )
        for repository, subjects in wanted.items():
            here = [one for one in live if one.repository == repository]
            self._check(repository, sorted(subjects), _unseen(here))

    def _check(self, repository: str, subjects: Sequence[_Subject], unseen: set[str]) -> None:
        if not self._refresh_budget.has_spare(repository):
            log.warning("%s: no resync: the rate limit is nearly used up", repository)
            return
        changed = [str(each) for each in self._changed(repository, subjects)]
        self._refresh_budget.request(repository, [*changed, *sorted(unseen.difference(changed))])

    def _changed(self, repository: str, subjects: Sequence[_Subject]) -> list[_Subject]:
        """Return the subjects whose fingerprint differs from that of the last read.

        A batch that fails is halved, because GitHub may fail at a single item, which is then read.
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
        issues = [each.number for each in batch if each.kind == "issue"]
        pulls = [each.number for each in batch if each.kind == "pull"]
        seen = self._github.read.fingerprints(repository, issues, pulls)
        return [
            each
            for each in batch
            if self._refresh_budget.has_changed((repository, each.number), seen[each.number])
        ]


def _subjects(live: LiveSession) -> list[_Subject]:
    pulls = [_Subject("pull", number) for number in live.pulls]
    return [_Subject("issue", live.number), *pulls]


def _unseen(live: Iterable[LiveSession]) -> set[str]:
    """_Subjects without a fingerprint: pull requests not known yet, and blocked issues."""
    branches = {f"branch:{one.branch}" for one in live if one.run and not one.pulls}
    return branches | {f"issue:{one.number}" for one in live if one.blocked}
