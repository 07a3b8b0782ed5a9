"""A store with sessions, and a manual clock."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from bot.model_proxy.prices import Prices
from bot.observe.agents import AgentObserver
from bot.store import NewSession, SessionDecision, Store
from bot.system.crash_points import log_crash_point
from bot.system.locations import Locations, Paths
from lifecycle.model.actions import Action
from lifecycle.model.facts import Issue
from lifecycle.model.policy import Policy
from tests.harness.edges import PROJECTS, Checkout, Edge
from tests.harness.model_proxies import Agent, Provider, whole
from tests.harness.observers import Bench
from tests.harness.site import Site, git
from tests.world.databases import empty_database

REPOSITORY = "acme/widgets"


class Clock:
    """A manual clock."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Scenario:
    """A store, and methods that set up sessions in it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    def session(self, number: int = 12, command: str = "") -> str:
        """Open a session, with this key of the command that requested it."""
        new = NewSession(
            id=f"widgets-{number}",
            project="widgets",
            repository=REPOSITORY,
            created=self.clock(),
            issue=Issue(number=number, title="It breaks", labelled_at=self.clock()),
            branch=f"mergewright/{number}-it-breaks",
            requester="ada",
            agent_type="shell",
        )
        assert self.store.sessions.create(new, command)
        return new.id

    def orders(self, session: str, *actions: Action, run: int = 1) -> None:
        (loaded,) = self.store.facts.load([session])
        decision = SessionDecision(
            status="working",
            reason="agent_at_work",
            because="it works",
            run=run,
            actions=actions,
        )
        self.store.decisions.record([(loaded, decision)], self.clock())[0].result()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bench(scenario: Scenario) -> Bench:
    return Bench(scenario)


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit that has no files, made once and copied for each site."""
    place = tmp_path_factory.mktemp("begun")
    git(place, "init", "--quiet", "--bare", "--template=", "--initial-branch=main")
    first = git(place, "commit-tree", git(place, "mktree"), "-m", "Begin")
    git(place, "update-ref", "refs/heads/main", first)
    return place


@pytest.fixture
def site(scenario: Scenario, tmp_path: Path, begun: Path) -> Site:
    return Site(scenario, tmp_path, begun)


@pytest.fixture
def scenario(tmp_path: Path, clock: Clock) -> Iterator[Scenario]:
    store = Store(empty_database(tmp_path / "mergewright.db"), clock=clock)
    yield Scenario(store, clock)
    store.close()


@pytest.fixture
def edge() -> Edge:
    return Edge()


@pytest.fixture
def asked() -> list[str]:
    """An empty list. The observer `watch` appends "examine" when it asks to examine workspaces."""
    return []


@pytest.fixture
def watch(scenario: Any, edge: Edge, asked: list[str], tmp_path: Path) -> AgentObserver:
    at: Any = edge
    adapters: Any = {"shell": at}
    locations = Locations(
        Paths(tmp_path), dict(PROJECTS), "", lambda _: "", at, adapters, lambda *_: "none"
    )
    return AgentObserver(
        *(scenario.store, locations, lambda _: Policy(), Prices({})),
        *(scenario.clock, log_crash_point, lambda: asked.append("examine")),
    )


@pytest.fixture
def checkout(watch: AgentObserver, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    made = Checkout()
    monkeypatch.setattr(watch.locations, "workspace_of", lambda _: made)
    monkeypatch.setattr("runtimes.local_runs.branch_tip", lambda *_: made)
    return made


@pytest.fixture(scope="module")
def at() -> Iterator[Provider]:
    provider = Provider()
    thread = Thread(target=provider.server.serve_forever, args=(0.01,))
    thread.start()
    yield provider
    provider.server.shutdown()
    thread.join()
    provider.server.server_close()


@pytest.fixture
def provider(at: Provider) -> Provider:
    at.answers = lambda request: whole(request, b"{}")
    at.asked = Queue()
    return at


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory, at: Provider) -> Iterator[Agent]:
    folder, clock = tmp_path_factory.mktemp("proxy"), Clock()
    store = Store(folder / "mergewright.db", clock=clock)
    agent = Agent(Scenario(store, clock), folder, at)
    yield agent
    agent.close()
    store.close()
