"""Measures the API cost of a thousand open, unchanged pull requests at the stand-in GitHub."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from bot.demo.github import GitHubServer
from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.write_access import WriteAccess
from bot.observe.discussions import Discussions
from bot.observe.issues import IssueObserver
from bot.observe.pull_facts import PullFacts
from bot.observe.pulls import PullObserver
from bot.observe.refresh_budget import FULL_READ, RefreshBudget
from bot.observe.resync import Resync
from bot.store import NewSession, Observation, Store
from bot.system.clock import utc_now
from config.settings import ProjectSettings
from config.tables import TimingSettings
from lifecycle.model.facts import Issue, Pull
from lifecycle.model.status import Mover
from scripts.benchmarks.figure import Figure
from scripts.benchmarks.population import silent

SIZE, ROUNDS, POINTS_AN_HOUR = 1000, 3, 1500
_REPOSITORY, _BOT, _TOKEN = "acme/bench", "bot", "token-of-the-bench"


class Quiet:
    """The bot's observers of GitHub, with a manual clock."""

    def __init__(self, folder: Path, github: GitHubServer) -> None:
        self.server = github
        self.now = utc_now()
        self.store = Store(folder / "mergewright.db", clock=self.clock)
        self.github = GitHub(f"{github.url}api/v3/", Credentials(token=_TOKEN))
        projects = {"bench": ProjectSettings(repository=_REPOSITORY)}
        people = WriteAccess(self.github, self.clock)
        refresh_budget = RefreshBudget(self.store.refreshes, self.github, self.clock)
        discussions = Discussions(people)
        pull_facts = PullFacts(
            *(self.github, people, discussions, lambda *_: (Mover.BOT, None), projects, self.clock)
        )
        self.pulls = PullObserver(
            *(self.store, self.github, people, refresh_budget, pull_facts, projects),
            *(lambda _: None, self.clock, silent),
        )
        self.issues = IssueObserver(
            *(self.store, self.github, people, discussions, self.pulls, refresh_budget),
            *(projects, (), lambda _: None, self.clock, silent),
        )
        self.resync = Resync(self.store.sessions, self.github, self.issues, refresh_budget)

    def clock(self) -> datetime:
        return self.now

    def session(self, repo: Repository, number: int) -> None:
        """Create a labelled issue with a session whose pull request has passed and waits."""
        issue = repo.open_issue(f"Part {number} breaks", by=_BOT)
        issue.label("mergewright", by=_BOT)
        branch = f"mergewright/{issue.number}-part-breaks"
        repo.push(branch, {f"part-{number}.py": "1\n"}, by=_BOT)
        pull = repo.open_pull(branch, title="Fix it", by=_BOT)
        pull.check("unit", conclusion="success")
        name = f"bench-{issue.number}"
        new = NewSession(
            id=name,
            project="bench",
            repository=_REPOSITORY,
            created=self.now,
            issue=Issue(number=issue.number, title=issue.title),
            branch=branch,
            requester=_BOT,
            agent_type="shell",
        )
        self.store.sessions.create(new)
        known = Pull(number=pull.number, branch=branch, head=pull.head, base=pull.base)
        self.store.observations.record([Observation(session=name, pulls=(known,))], self.now)

    def round(self) -> tuple[int, int]:
        """Run a resync and refreshes; return its GraphQL points and reads of issues and pulls."""
        self.now += timedelta(seconds=TimingSettings().resync_seconds)
        before = self._used()
        self.resync.run()
        read = 0
        while self.store.refreshes.due(self.now + timedelta(hours=2), ("",)):
            self.now += timedelta(seconds=10)
            read += self.issues.read_requested() + self.pulls.read_requested()
        return self._used() - before, read

    def requests_between(self) -> int:
        """Return the number of API requests between two resyncs."""
        before = len(self.server.requests)
        for _ in range(int(TimingSettings().resync_seconds)):
            self.now += timedelta(seconds=1)
            self.issues.read_requested()
            self.pulls.read_requested()
        return len(self.server.requests) - before

    def _used(self) -> int:
        return self.server.traffic.spend(_BOT, "graphql", 0)["used"]


def run() -> dict[str, Figure]:
    """Read a thousand pull requests in full, then repeatedly find that nothing has changed."""
    with _quiet() as bot:
        whole, read = bot.round()
        bot.round()  # Reads again what may have changed in the second of its first read.
        rounds = [bot.round() for _ in range(ROUNDS)]
        asked = bot.requests_between()
    hour = timedelta(hours=1)
    rounds_an_hour = hour / timedelta(seconds=TimingSettings().resync_seconds)
    points = max(points for points, _ in rounds) * rounds_an_hour + whole * (hour / FULL_READ)
    return {
        "quiet.after_restart": Figure(value=whole, unit="points"),
        "quiet.round": Figure(value=max(points for points, _ in rounds), unit="points"),
        "quiet.read_whole": Figure(value=read / SIZE, unit="a session"),
        "quiet.hour": Figure(
            value=points,
            unit="points",
            limit=f"<= {POINTS_AN_HOUR}",
            holds=points <= POINTS_AN_HOUR and not any(read for _, read in rounds),
        ),
        "quiet.between": Figure(value=asked, unit="requests", limit="= 0", holds=asked == 0),
    }


@contextmanager
def _quiet() -> Iterator[Quiet]:
    with tempfile.TemporaryDirectory(prefix="mw-") as name:
        folder = Path(name)
        with GitHubServer(folder / "github") as github:
            github.traffic.limits["graphql"] = 1_000_000
            github.bot_account(_BOT, token=_TOKEN)
            repo = github.repository(_REPOSITORY)
            repo.permission(_BOT, "write")
            bot = Quiet(folder, github)
            for number in range(SIZE):
                bot.session(repo, number)
            try:
                yield bot
            finally:
                bot.github.close()
                bot.store.close()
