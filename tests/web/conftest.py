"""A real server on loopback with a real store and settings of a test."""

import hmac
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from msgspec.structs import replace

from bot.decide.policies import Policies
from bot.github.sign_in import GitHubSignIn
from bot.github.write_access import WriteAccess
from bot.intake.inbox import Inbox
from bot.intake.terminal_input import TerminalInput
from bot.show.changes import BranchDiff, NoChanges
from bot.show.run_log import LogPage
from bot.show.terminal import StepLog, Terminal
from bot.store import NewSession, Observation, SessionDecision, Store
from bot.system import metrics
from bot.system.http_server import HttpServer
from bot.web.app import build
from bot.web.health import Health
from bot.web.live import Watchers
from bot.web.sign_ins import COOKIE, SignIns
from bot.web.visitor import Visitor
from bot.web.webhook import WebhookLimits
from config.settings import AgentTypeSettings, ProjectSettings, ServerSettings, Settings
from lifecycle.judge.capacity import Caps
from lifecycle.model.actions import Action
from lifecycle.model.facts import Agent, Ended, Issue, Pull
from lifecycle.model.status import Activity, Blocker, Reason, Status
from runtimes.agents.shared.messages import Message
from runtimes.host import Resources
from tests.world.waiting import PATIENCE

if TYPE_CHECKING:
    from tests.web.people import People

SECRET = "the webhook's secret"
OLD_SECRET = "the secret before it"
TOKEN = "the page's töken"
#: In an order that respects foreign keys.
TABLES = (
    *("delivery_outcomes", "deliveries", "refreshes", "commands", "outbox", "history"),
    "session_pulls",
    *("usage", "model_usage", "usage_steps", "ledger"),
    *("handovers", "metadata", "refused_hosts", "freezes", "incidents", "sessions"),
)
SETTINGS = Settings(
    projects={"widgets": ProjectSettings(repository="acme/widgets", agent="shell")},
    agent_types={"shell": AgentTypeSettings(program="shell")},
)
LIMITS = WebhookLimits(unverified_bytes=30_000_000)


def forget_metrics() -> None:
    """Forget the workers and rate limits of earlier tests in this process."""
    gauges = (metrics._REMAINING, metrics._LIMIT, metrics._RUNS, metrics._FAILURES)
    for metric in (*gauges, metrics._SUCCESS):
        metric.clear()
    metrics._failed_at.clear()


class Site:
    """One running web server."""

    def __init__(
        self,
        folder: Path,
        secrets: tuple[str, ...] = (SECRET, OLD_SECRET),
        token: str = TOKEN,
        limits: WebhookLimits = LIMITS,
        public_url: str = "",
        settings: Settings = SETTINGS,
        people: WriteAccess | None = None,
        sign_in: GitHubSignIn | None = None,
        port: int = 0,
    ) -> None:
        forget_metrics()
        self.store = Store(folder / "store.db")
        self.inbox = Inbox(self.store, frozenset({"acme/widgets"}), lambda: None)
        self.health = Health(scheduler=True)
        self.log = ""
        self.resources: Resources | None = None
        self.steps: list[StepLog] = []
        self.log_page: Callable[[str, int, int | None, int], LogPage]
        self.screen = ""
        self.isolated, self.typing_clock = True, 0.0
        self.changes: BranchDiff | None = None
        self.transcript: Callable[[str, int, int, int], list[Message]] = lambda *_: []
        self.policies = Policies(self.store, settings.projects, settings.policy)
        self.app = build(
            self.inbox,
            self.store,
            webhook_secrets=secrets,
            page_token=token,
            health=lambda: self.health,
            settings=replace(settings, server=ServerSettings(public_url=public_url)),
            people=people,
            sign_in=sign_in,
            policy_of=self.policies.of,
            caps=lambda: Caps(sessions=4),
            terminal=Terminal(
                attach=lambda session: f"tmux attach -t ={session}_r1",
                log=lambda _: self.log,
                resources=lambda _: self.resources,
                log_page=self._printed,
                transcript=self._said,
                last=lambda session, run, most: (7, self._said(session, run, 7, most)),
                screen=lambda _: self.screen,
                changes=self._changed,
                steps=lambda _: self.steps,
                step_records=lambda _: [],
                preserved=lambda _: [],
            ),
            keyboard=TerminalInput(
                self.store, lambda _: self.isolated, lambda: None, lambda: self.typing_clock
            ),
            limits=limits,
        )
        self.watchers: Watchers = self.app.state.streams
        self.sign_ins: SignIns = self.app.state.sign_ins
        self.server = HttpServer(self.app, "127.0.0.1", port)
        self.server.start()
        self.url = f"http://127.0.0.1:{self.server.port}"
        self.http = httpx.Client(base_url=self.url, timeout=PATIENCE)

    def close(self) -> None:
        self.http.close()
        self.server.stop()
        self.store.close()

    def _said(self, id: str, run: int, first: int, most: int) -> list[Message]:
        return self.transcript(id, run, first, most)

    def _printed(self, id: str, run: int, start: int | None, most: int) -> LogPage:
        return self.log_page(id, run, start, most)

    def _changed(self, id: str) -> BranchDiff:
        if self.changes is None:
            raise NoChanges(f"{id} has no commits yet")
        return self.changes

    def empty(self) -> None:
        """Delete the rows of `TABLES`, and reset what tests set on this object."""

        def work(connection: sqlite3.Connection) -> None:
            for table in TABLES:
                connection.execute(f"DELETE FROM {table}")

        self.store.db.write(work)
        forget_metrics()
        self.health = Health(scheduler=True)
        self.log = self.screen = ""
        self.isolated, self.typing_clock = True, self.typing_clock + 60
        self.steps = []
        self.changes = self.resources = None
        self.transcript = lambda *_: []
        self.http.cookies.clear()

    def deliver(
        self, body: bytes = b"{}", *, secret: str = SECRET, **headers: str
    ) -> httpx.Response:
        """Send a delivery as GitHub does; keywords replace headers, an empty one removes it."""
        given = signed(body, secret) | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        kept = {name.encode(): value.encode() for name, value in given.items() if value}
        return self.http.post("/webhooks/github", content=body, headers=kept)

    def seen(self, path: str) -> httpx.Response:
        """A page, requested with the token."""
        return self.http.get(path, headers=bearer())

    def session(
        self,
        number: int,
        *,
        title: str = "A title",
        status: Status = Status.WORKING,
        because: str = "the agent is at work",
        blockers: tuple[Blocker, ...] = (),
        actions: tuple[Action, ...] = (),
        url: str = "https://github.com/acme/widgets/issues/1",
        pulls: tuple[Pull, ...] = (),
        reason: Reason = Reason.AGENT_AT_WORK,
        project: str = "widgets",
    ) -> str:
        """Create a session with one decision."""
        now = datetime.now(UTC)
        name = f"{project}-{number}"
        self.store.sessions.create(
            NewSession(
                id=name,
                project=project,
                repository=f"acme/{project}",
                created=now,
                issue=Issue(number=number, title=title, url=url),
                branch=f"mergewright/{number}-x",
            )
        )
        agent = Agent(run=1, activity=Activity.ACTIVE)
        self.store.observations.record([Observation(session=name, agent=agent, pulls=pulls)], now)
        self.decide(name, status, because, blockers, actions, reason)
        return name

    def decide(
        self,
        session: str,
        status: Status,
        because: str,
        blockers: tuple[Blocker, ...] = (),
        actions: tuple[Action, ...] = (),
        reason: Reason = Reason.AGENT_AT_WORK,
        ended: Ended | None = None,
    ) -> None:
        now = datetime.now(UTC)
        (loaded,) = self.store.facts.load([session])
        decision = SessionDecision(
            status=status,
            reason=reason,
            because=because,
            run=1,
            blockers=blockers,
            actions=actions,
            ended=ended,
        )
        self.store.decisions.record([(loaded, decision)], now)[0].result()

    def end(self, session: str, status: Status) -> None:
        over = Ended(status=status, reason=Reason.PR_MERGED, because="over", at=datetime.now(UTC))
        self.decide(session, status, "over", ended=over)


def signed(body: bytes, secret: str = SECRET, delivery: str = "d-1") -> dict[str, str]:
    """The headers of a genuine delivery."""
    return {
        "content-type": "application/json",
        "x-github-event": "issues",
        "x-github-delivery": delivery,
        "x-hub-signature-256": "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex(),
    }


def bearer(token: str = TOKEN) -> dict[bytes, bytes]:
    return {b"authorization": f"Bearer {token}".encode()}


def sign_in(site: Site) -> None:
    """Sign in as the form does, without its rate limit."""
    site.http.cookies.clear()
    site.http.cookies.set(COOKIE, site.sign_ins.begin(Visitor()))


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Return a function that starts a web server, an object of the class `Site`.

    The function passes its keyword arguments to `Site`. Each server is closed after the test.
    """
    with ExitStack() as made:

        def make(**choices: Any) -> Site:
            site = Site(tmp_path, **choices)
            made.callback(site.close)
            return site

        yield make


@pytest.fixture(scope="session")
def one_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.close()


@pytest.fixture
def site(one_site: Site) -> Site:
    """The shared, emptied site; a test that stops or overloads it creates its own."""
    one_site.empty()
    return one_site


@pytest.fixture
def make_people(tmp_path: Path) -> Iterator[Callable[..., "People"]]:
    """Create a site on which people sign in, by default with GitHub and with the page's token."""
    from tests.web.people import People

    with ExitStack() as opened:
        yield lambda method="both": People(tmp_path, opened, method)


@pytest.fixture
def people(make_people: Callable[..., "People"]) -> "People":
    return make_people()


@pytest.fixture
def filled(people: "People") -> "People":
    """Add a session to each project, and one account for each permission level, as `fill` does."""
    from tests.web.people import fill

    fill(people)
    return people
