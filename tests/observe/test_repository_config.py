"""A repository's own configuration, read from its default branch."""

from collections.abc import Iterator
from typing import Any

import pytest

from bot.act.dispatch import ActionDispatcher
from bot.act.results import Completed
from bot.decide.policies import Policies
from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.observe.repositories import RepositoryConfig
from bot.store import RefreshRequest, Store
from config.settings import ProjectSettings
from lifecycle.model.policy import Policy
from tests.world.app_key import PRIVATE, PUBLIC
from tests.world.faulty_github import FaultyGitHub

FILE = ".github/mergewright.toml"
STRICT = "[policy]\nci-repairs = 1\n"
BROKEN = "[policy]\nci-repairs = 9\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyGitHub]:
    with FaultyGitHub(tmp_path_factory.mktemp("github")) as server:
        server.user("wright", token="wrights-token")
        server.user("ann")
        yield server


@pytest.fixture
def repo(server: FaultyGitHub, request: pytest.FixtureRequest) -> Repository:
    made = server.repository(f"acme/{request.node.name[:60]}", {"README": "x\n"})
    for login in ("wright", "ann"):
        made.permission(login, "write")
    return made


class ConfiguredRepository:
    """One repository with a configuration file, and a bot that may restart."""

    def __init__(self, scenario: Any, server: FaultyGitHub, repo: Repository) -> None:
        self.scenario, self.server, self.repo = scenario, server, repo
        self.credentials = Credentials(token="wrights-token")
        self.policy = Policy()
        self.restarts()

    def restarts(self) -> None:
        projects = {"widgets": ProjectSettings(repository=self.repo.full_name)}
        self.policies = Policies(self.scenario.store, projects, self.policy)
        self.github = GitHub(f"{self.server.url}api/v3", self.credentials)
        self.config = RepositoryConfig(
            *(self.scenario.store.configurations, self.scenario.store.refreshes, self.github),
            projects,
            self.scenario.clock,
        )

    def adopts(self) -> bool:
        return self.policies.adopt(self.config.read())

    def adopts_pushed(self) -> bool:
        return self.policies.adopt(self.config.read_pushed())

    def posts(self) -> None:
        """Run the outbox."""
        unused: Any = None
        dispatcher = ActionDispatcher(
            *(self.store.sessions, self.store.refreshes, self.github, unused, unused),
            *(unused, unused, unused, self.scenario.clock, ""),
        )
        for due in self.store.outbox.due(self.scenario.clock()):
            assert dispatcher.do(due, lambda: None) == Completed()
            self.store.outbox.mark_done(due.seq, "", self.scenario.clock())

    @property
    def store(self) -> Store:
        found: Store = self.scenario.store
        return found

    @property
    def repairs(self) -> int:
        return self.policies.of("widgets").ci_repairs

    def says(self, text: str | None, branch: str = "main") -> str:
        return self.repo.push(branch, {FILE: text}, by="ann")


@pytest.fixture
def configured(
    scenario: Any, server: FaultyGitHub, repo: Repository
) -> Iterator[ConfiguredRepository]:
    made = ConfiguredRepository(scenario, server, repo)
    yield made
    made.github.close()


def test_only_the_file_on_the_default_branch_counts(configured: ConfiguredRepository) -> None:
    configured.says(STRICT, "elsewhere")
    assert (configured.adopts(), configured.repairs) == (False, 3)
    configured.says(STRICT)
    assert (configured.adopts(), configured.repairs) == (True, 1)
    assert (configured.adopts(), configured.repairs) == (False, 1)
    configured.says(None)
    assert (configured.adopts(), configured.repairs) == (True, 3)


def test_a_broken_file_leaves_the_last_valid_one_in_force_after_a_restart_too(
    configured: ConfiguredRepository,
) -> None:
    configured.says(STRICT)
    configured.adopts()
    configured.says(BROKEN)
    assert (configured.adopts(), configured.repairs) == (False, 1)
    configured.github.close()
    configured.restarts()
    assert configured.repairs == 1
    configured.says(STRICT + "draft = true\n")
    assert (configured.adopts(), configured.policies.of("widgets").draft) == (True, True)
    assert configured.store.incidents.current() == []


def test_a_binary_file_is_a_broken_one(configured: ConfiguredRepository) -> None:
    configured.says(STRICT)
    configured.adopts()
    configured.says(f"\0{STRICT}")
    assert (configured.adopts(), configured.repairs) == (False, 1)
    assert [one.text for one in configured.store.incidents.current()] == [
        f"{configured.repo.full_name}: .github/mergewright.toml, line 1: the file is not text"
    ]


def test_a_broken_file_is_reported_once_with_line_and_reason(
    configured: ConfiguredRepository,
) -> None:
    head = configured.says(BROKEN)
    for _ in range(2):
        configured.adopts()
    configured.repo.push("main", {"README": "y\n"}, by="ann")
    configured.adopts()
    configured.posts()
    (status,) = configured.repo.checks.statuses
    assert (status.sha, status.state) == (head, "failure")
    assert status.context == "mergewright configuration"
    says = f"{FILE}, line 2: policy.ci-repairs = 9: expected 3, as on the server, or stricter"
    assert status.description == says
    (incident,) = configured.store.incidents.current()
    assert incident.text == f"{configured.repo.full_name}: {says}"


def test_an_app_reports_it_by_a_check_with_an_annotation(configured: ConfiguredRepository) -> None:
    app = configured.server.app("wright-app", PUBLIC)
    configured.repo.permission(app.bot.login, "write")
    configured.github.close()
    configured.credentials = Credentials(app_id=str(app.id), private_key=PRIVATE, owners=("acme",))
    configured.restarts()
    head = configured.says(BROKEN)
    configured.adopts()
    configured.posts()
    (run,) = configured.repo.checks.runs_of(head)
    assert (run.name, run.conclusion) == ("mergewright configuration", "failure")
    (note,) = run.output["annotations"]
    assert (note["path"], note["start_line"]) == (FILE, 2)


def test_only_a_push_to_the_default_branch_leads_to_a_read(
    configured: ConfiguredRepository,
) -> None:
    assert configured.adopts_pushed() is False
    configured.says(STRICT)
    asked = configured.server.count("POST", "graphql")
    configured.store.refreshes.request(
        [_branch(configured, "elsewhere")], configured.scenario.clock()
    )
    assert configured.adopts_pushed() is False
    assert configured.server.count("POST", "graphql") == asked
    configured.store.refreshes.request([_branch(configured, "main")], configured.scenario.clock())
    assert (configured.adopts_pushed(), configured.repairs) == (True, 1)


def test_a_file_is_read_once_when_the_bot_begins_to_lead(configured: ConfiguredRepository) -> None:
    configured.says(STRICT)
    asked = configured.server.count("POST", "graphql")
    assert configured.adopts_pushed() is True
    assert configured.adopts() is False
    assert configured.server.count("POST", "graphql") == asked + 1
    configured.says(None)
    assert configured.adopts() is True


def test_a_kept_file_wider_than_todays_server_policy_is_not_in_force(
    configured: ConfiguredRepository,
) -> None:
    configured.says("[policy]\nci-repairs = 2\n")
    configured.adopts()
    configured.github.close()
    configured.policy = Policy(ci_repairs=1)
    configured.restarts()
    assert configured.repairs == 1


def test_an_outage_changes_nothing(configured: ConfiguredRepository) -> None:
    configured.says(STRICT)
    configured.adopts()
    configured.says(None)
    configured.server.fail_next("POST", "graphql", 502)
    assert (configured.adopts(), configured.repairs) == (False, 1)


def _branch(configured: ConfiguredRepository, name: str) -> RefreshRequest:
    return RefreshRequest(repository=configured.repo.full_name, subject=f"branch:{name}")
