"""A site on which people sign in with their accounts at the stand-in for GitHub."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from msgspec.structs import replace

from bot.demo.bot_process import free_port
from bot.demo.github.repository import Repository
from bot.demo.github.world import App
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.sign_in import GitHubSignIn
from bot.github.write_access import WriteAccess
from bot.show.run_log import NoLog
from bot.store import Delivery, TokenScope
from bot.web.personal_tokens import PersonalTokens
from bot.web.sign_ins import COOKIE
from bot.web.visitor import Visitor
from config.settings import ProjectSettings
from config.tables import SignInSettings
from lifecycle.model.roles import Role
from tests.web.conftest import SETTINGS, Site
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import PATIENCE

PROJECTS = ("widgets", "gears")
#: The permissions at GitHub with the roles that they give.
LEVELS = {
    "none": Role.NONE,
    "read": Role.READ,
    "triage": Role.TRIAGE,
    "write": Role.WRITE,
    "admin": Role.ADMIN,
}


class People:
    """A site, its GitHub and a clock for permissions, sign-ins and tokens."""

    def __init__(self, folder: Path, opened: ExitStack, method: str = "both") -> None:
        self.github = opened.enter_context(FaultyGitHub(folder / "github"))
        self.github.bot_account("wright", token="wrights")
        self.repos: dict[str, Repository] = {}
        for name in PROJECTS:
            self.repos[name] = self.github.repository(f"acme/{name}")
            self.repos[name].permission("wright", "write")
        self.later = timedelta()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/"
        self.app: App = self.github.sign_in_app("sign-in", f"{self.url}login/callback")
        client = GitHub(f"{self.github.url}api/v3/", Credentials(token="wrights"))
        opened.callback(client.close)
        api = f"{self.github.url}api/v3/"
        projects = {
            name: ProjectSettings(repository=f"acme/{name}", agent="shell") for name in PROJECTS
        }
        signing = SignInSettings(method=method, client_id=self.app.client_id)  # type: ignore[arg-type]
        self.site = Site(
            folder,
            public_url=self.url,
            port=port,
            settings=replace(SETTINGS, projects=projects, sign_in=signing),
            people=WriteAccess(client, self.now),
            sign_in=GitHubSignIn(self.github.url, api, self.app.client_id, self.app.client_secret),
        )
        opened.callback(self.site.close)
        self.site.store.clock = self.now
        self.tokens = PersonalTokens(self.site.store)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.later

    def may(self, login: str, level: str, *projects: str) -> None:
        """Give somebody a permission in repositories, by default in all."""
        for name in projects or PROJECTS:
            self.repos[name].permission(login, level)

    def visitor(self, login: str) -> Visitor:
        return Visitor(login=login, user=self.github.user(login).id)

    @contextmanager
    def browser(self, login: str = "") -> Iterator[httpx.Client]:
        """A browser in which somebody is signed in at GitHub, and not yet here."""
        with httpx.Client(base_url=self.url, timeout=PATIENCE, follow_redirects=True) as client:
            if login:
                self.github.user(login)
                client.cookies.set("user_session", login)
            yield client

    @contextmanager
    def signed_in(self, login: str) -> Iterator[httpx.Client]:
        """A browser that is signed in here, without the way over GitHub."""
        with self.browser() as client:
            put(client, self.site.sign_ins.begin(self.visitor(login)))
            yield client

    def token(self, login: str, scope: TokenScope, days: float = 30) -> dict[bytes, bytes]:
        """The header with a new personal token."""
        user = self.github.user(login).id
        token, _ = self.tokens.create(login, user, "ci", scope, days)
        return {b"authorization": f"Bearer {token}".encode()}


def fill(people: People) -> None:
    """Create a session in each project, and one account for each permission level.

    Each account has its level in the repositories of all projects.
    """
    site = people.site
    site.log_page = no_log
    site.session(1)
    site.session(1, project="gears", title="The gears' secret")
    site.store.agents.assign("widgets-1", "shell", "shell", 1)
    failed = Delivery(id="d-1", event="issues", at=site.store.clock(), body=b"{")
    site.store.deliveries.add([failed]).result()
    for level in LEVELS:
        people.may(f"{level}-er", level)


def no_log(*_: object) -> Any:
    raise NoLog("nothing was printed")


def put(client: httpx.Client, value: str) -> None:
    """Put the cookie of a sign-in into a browser, in place of the one that it has."""
    client.cookies.set(COOKIE, value, domain="127.0.0.1")


def form_token(client: httpx.Client) -> str:
    """The CSRF token of a browser's forms."""
    page = client.get("/account").text
    return page.split('name="csrf" value="', 1)[1].split('"', 1)[0]
