"""The observers of GitHub over a real store, and a GitHub whose responses a test sets."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from bot.decide.assignment import Assignment
from bot.decide.opening import Opening
from bot.github.errors import Refused, TryLater
from bot.github.rest import RepositoryAliases
from bot.github.roles import RepositoryRole
from bot.github.snapshots import CheckReport, IssueSnapshot, Labeling, PointBudget, PullSnapshot
from bot.github.write_access import WriteAccess
from bot.intake.authorize import CommandAuthorizer
from bot.observe.discussions import Discussions
from bot.observe.issues import IssueObserver
from bot.observe.pull_facts import PullFacts
from bot.observe.pulls import PullObserver
from bot.observe.refresh_budget import RefreshBudget
from bot.observe.resync import Resync
from bot.store import RefreshRequest
from bot.system.crash_points import log_crash_point
from config.settings import AgentSettings, ProjectSettings
from lifecycle.model.actions import Publish
from lifecycle.model.facts import Issue, Pull
from lifecycle.model.key import parse
from lifecycle.model.roles import Role
from lifecycle.model.status import Mover

PROJECTS: Mapping[str, ProjectSettings] = {
    "widgets": ProjectSettings(repository="acme/widgets", flaky_checks=("e2e *",)),
    "gears": ProjectSettings(repository="acme/gears"),
}
IDENTITIES = {"ada": AgentSettings(types=("claude",)), "rob": AgentSettings(types=("shell",))}
REPOSITORY, BRANCH = "acme/widgets", "mergewright/12-it-breaks"


class GitHub:
    """A GitHub whose responses a test sets."""

    def __init__(self) -> None:
        self.read = self
        self.aliases = RepositoryAliases()
        self.roles = self
        self.writers = {"ada", "rob"}
        self.triagers: set[str] = set()
        self.issues: dict[int, Any] = {}
        self.pulls: dict[int, Any] = {}
        self.pulls_read: list[int] = []
        self.blocked: dict[int, tuple[str, ...]] = {}
        self.log: Any = "it broke"
        self.pushed_by: Any = ()  #: The people who pushed, the last first.
        self.refuses: set[str] = set()
        self.asked = 0
        self.seen: dict[int, Any] = {}
        self.fingerprinted: list[tuple[int, ...]] = []
        self.listed: list[tuple[str, ...]] = []
        self.spelled: list[str] = []
        self.left: PointBudget | None = None
        self.remembered = 0
        self.behind = timedelta()  #: How far its clock is behind the bot's.
        self.looked_up: list[tuple[int, ...]] = []

    @contextmanager
    def caching(self) -> Iterator[None]:
        yield
        self.remembered += 1

    def me(self) -> str:
        return "mergewright-bot"

    def may_write(self, repository: str, login: str) -> bool:
        self.asked += 1
        if repository in self.refuses:
            raise Refused("no access", 403)
        return login in self.writers

    def of(self, repository: str, login: str) -> RepositoryRole:
        return RepositoryRole(Role.TRIAGE if login in self.triagers else Role.NONE)

    def issue(self, repository: str, number: int) -> Any:
        return answer(self.issues.get(number))

    def blocked_by(self, repository: str, number: int) -> tuple[str, ...]:
        return self.blocked.get(number, ())

    def labels(self, repository: str, word: str) -> list[str]:
        return self.spelled

    def labelled_issues(self, repository: str, words: Iterable[str]) -> set[int]:
        self.listed.append((repository, *words))
        if repository in self.refuses:
            raise TryLater("down")
        return set(self.issues) if repository == REPOSITORY else set()

    def pull(self, repository: str, number: int) -> Any:
        self.pulls_read.append(number)
        return answer(self.pulls.get(number))

    def pushers(self, repository: str, branch: str, since: str) -> tuple[str, ...]:
        found: tuple[str, ...] = answer(self.pushed_by)
        return found

    def pulls_of(self, repository: str, branch: str, home: str = "") -> list[int]:
        return sorted(self.pulls)

    def fingerprints(self, repository: str, issues: Any, pulls: Any) -> Any:
        self.fingerprinted.append((*issues, *pulls))
        return {number: answer(self.seen.get(number)) for number in (*issues, *pulls)}

    def branches(self, repository: str, pulls: Any) -> dict[int, str]:
        self.looked_up.append(tuple(pulls))
        if repository in self.refuses:
            raise TryLater("down")
        known = {number: answer(found).pull.branch for number, found in self.pulls.items()}
        return {number: known.get(number, f"feature-{number}") for number in pulls}

    def budget(self, repository: str) -> Any:
        return self.left

    def report(self, repository: str, run_id: int) -> CheckReport:
        return CheckReport(log=answer(self.log))


def answer(what: Any) -> Any:
    if isinstance(what, Exception):
        raise what
    return what


class Bench:
    def __init__(self, scenario: Any) -> None:
        self.scenario, self.store = scenario, scenario.store
        self.github = GitHub()
        github: Any = self.github
        github.server_time = lambda: scenario.clock() - self.github.behind
        self.people = WriteAccess(github, scenario.clock)
        self.mover: Any = Mover.BOT
        self.pushed_at: Any = None
        self.created_at = scenario.clock()
        self.silenced = False
        self.refresh_budget = RefreshBudget(scenario.store.refreshes, github, scenario.clock)
        assignment = Assignment(scenario.store, IDENTITIES, PROJECTS)
        self.opening = Opening(
            *(scenario.store, PROJECTS, assignment, lambda _: self.silenced, scenario.clock),
            log_crash_point,
        )
        who_pushed: Any = lambda *_: (answer(self.mover), self.pushed_at)  # noqa: E731
        discussions = Discussions(self.people, "acme-bot")
        pull_facts = PullFacts(
            *(github, self.people, discussions, who_pushed, PROJECTS, scenario.clock)
        )
        self.pulls = PullObserver(
            *(scenario.store, github, self.people, self.refresh_budget, pull_facts, PROJECTS),
            *(self.opening.consider, scenario.clock, log_crash_point),
        )
        self.issues = IssueObserver(
            *(scenario.store, github, self.people, discussions, self.pulls, self.refresh_budget),
            *(PROJECTS, assignment.names, self.opening.consider, scenario.clock, log_crash_point),
        )
        self.resync = Resync(scenario.store.sessions, github, self.issues, self.refresh_budget)
        self.commands = CommandAuthorizer(
            *(scenario.store, self.people, scenario.clock, lambda _: self.silenced),
            self.opening.open_prompt,
        )

    def refreshes(self, *subjects: str) -> None:
        refreshes = [RefreshRequest(repository=REPOSITORY, subject=subject) for subject in subjects]
        self.store.refreshes.request(refreshes, self.scenario.clock())

    def waiting(self) -> list[str]:
        later = self.scenario.clock() + timedelta(days=1)
        return [refresh.subject for refresh in self.store.refreshes.due(later, ("",))]

    def labelled(self, number: int = 12, by: str = "ada", **changes: Any) -> IssueSnapshot:
        put = Labeling(label="mergewright", actor=by, at=self.scenario.clock(), added=True)
        reading = IssueSnapshot(
            issue=Issue(number=number, title="It breaks", author="mallory"),
            is_pull=False,
            labels=("mergewright",),
            labelings=(put,),
            edits=(),
        )
        self.github.issues[number] = reading = replace(reading, **changes)
        return reading

    def pushed(self, sha: str) -> str:
        name: str = self.scenario.session()
        self.scenario.orders(name, Publish(key=parse(f"push:{sha}"), head=sha))
        due = self.store.outbox.due(self.scenario.clock())[0]
        self.store.outbox.mark_done(due.seq, sha, self.scenario.clock())
        return name

    def pull(
        self, author: str = "mergewright-bot", repository: str = REPOSITORY, **pull: Any
    ) -> None:
        self.github.pulls[34] = PullSnapshot(
            pull=Pull(number=34, **{"branch": BRANCH, "head": "a1", "base": "b1", **pull}),
            head_repository=repository,
            author=author,
            created_at=self.created_at,
            body="",
            edited_by={"comment:2": "mallory", "comment:3": ""},
        )

    def reads(self) -> tuple[Pull, ...]:
        self.refreshes("pull:34")
        self.scenario.clock.passes(120)
        self.pulls.read_requested()
        found: tuple[Pull, ...] = self.store.sessions.get("widgets-12").pulls
        return found


def seen(bench: Bench, *numbers: int) -> None:
    bench.refreshes(*(f"issue:{number}" for number in numbers))
    while bench.issues.read_requested():
        pass
