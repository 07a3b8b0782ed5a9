"""What lost webhooks would have said: everything is glanced at, and read where it looks new."""

import logging
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, TryLater
from bot.github.read import GLANCES
from bot.observe.issues import IssueObserver
from bot.observe.refresh_budget import RefreshBudget
from bot.store import LiveSession, Store

log = logging.getLogger(__name__)

#: So many failed glances of one repository are not the fault of what is glanced at.
_MOST_FAILURES = 8


class Subject(NamedTuple):
    """What is glanced at, by the name its touch has."""

    kind: str  #: `issue` or `pull`.
    number: int

    def __str__(self) -> str:
        """The subject of a touch."""
        return f"{self.kind}:{self.number}"


class Resync:
    """Glances at every labelled issue, and every issue and pull request of a live session.

    It reads nothing itself, it only asks for looks: what cannot be had changes nothing.
    """

    def __init__(
        self, store: Store, github: GitHub, issues: IssueObserver, refresh_budget: RefreshBudget
    ) -> None:
        self._store = store
        self._github = github
        self._issues = issues
        self._refresh_budget = refresh_budget

    def look(self) -> None:
        """Look everything over once."""
        live = self._store.sessions.live()
        wanted: dict[str, set[Subject]] = {}
        for repository, number in self._issues.labelled():
            wanted.setdefault(repository, set()).add(Subject("issue", number))
        for one in live:
            wanted.setdefault(one.repository, set()).update(_subjects(one))
        self._refresh_budget.retain_only(
            (repository, each.number) for repository, all_ in wanted.items() for each in all_
        )
        for repository, subjects in wanted.items():
            here = [one for one in live if one.repository == repository]
            self._look(repository, sorted(subjects), _unseen(here))

    def _look(self, repository: str, subjects: Sequence[Subject], unseen: set[str]) -> None:
        if not self._refresh_budget.afford(repository):
            log.warning("%s: not looked over: few points are left this hour", repository)
            return
        news = [str(each) for each in self._news(repository, subjects)]
        self._refresh_budget.ask(repository, [*news, *sorted(unseen.difference(news))])

    def _news(self, repository: str, subjects: Sequence[Subject]) -> list[Subject]:
        """What looks new.

        A batch that fails is halved: it may be one alone that GitHub fails at, which is then read.
        """
        waiting = [subjects[at : at + GLANCES] for at in range(0, len(subjects), GLANCES)]
        news: list[Subject] = []
        failures = 0
        while waiting:
            batch = waiting.pop(0)
            try:
                news += self._new_in(repository, batch)
            except GitHubFailure as failure:
                failures += 1
                limited = isinstance(failure, TryLater) and failure.at is not None
                if limited or failures == _MOST_FAILURES:
                    log.warning("%s: not looked over whole: %s", repository, failure)
                    break
                half = len(batch) // 2
                waiting[:0] = [batch[:half], batch[half:]] if half else []
                news += [] if half else batch
        return news

    def _new_in(self, repository: str, batch: Iterable[Subject]) -> list[Subject]:
        issues = [each.number for each in batch if each.kind == "issue"]
        pulls = [each.number for each in batch if each.kind == "pull"]
        seen = self._github.read.fingerprints(repository, issues, pulls)
        return [
            each
            for each in batch
            if self._refresh_budget.has_changed((repository, each.number), seen[each.number])
        ]


def _subjects(live: LiveSession) -> list[Subject]:
    pulls = [Subject("pull", number) for number in live.pulls]
    return [Subject("issue", live.number), *pulls]


def _unseen(live: Iterable[LiveSession]) -> set[str]:
    """What no glance shows: a pull request that is not known yet, and what an issue waits for."""
    branches = {f"branch:{one.branch}" for one in live if one.run and not one.pulls}
    return branches | {f"issue:{one.number}" for one in live if one.blocked}
