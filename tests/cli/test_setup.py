"""`mergewright setup` with a GitHub App, in the browser, and with a token."""

import html
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from bot.cli import setup
from bot.demo.bot_process import free_port
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.github_app import PERMISSIONS
from bot.setup.files import SetupRequest
from config.load import load
from tests.cli.conftest import CommandLine
from tests.cli.results import MERGEWRIGHT, Result
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import PATIENCE, eventually

URL = "https://bot.example"


#: An API that would get the token in clear text.
CLEAR = "http://ghe.example/api/v3/"


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyGitHub]:
    with FaultyGitHub(tmp_path_factory.mktemp("github")) as server:
        widgets = server.repository("acme/widgets")
        widgets.permission("wright", "write")
        widgets.permission("ada", "admin")
        server.user("ada", token="adas")
        server.user("wright", token="wrights")
        server.user("mallory", token="mallorys")
        yield server


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in os.environ if one.startswith("MERGEWRIGHT_")]:
        monkeypatch.delenv(name)


class Browser:
    """A person's browser, which follows redirects on request."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.http = httpx.Client(trust_env=False, timeout=PATIENCE)

    def is_answered(self) -> bool:
        with suppress(httpx.TransportError):
            return self.http.get(self.page).status_code == 200
        return False

    def form(self) -> tuple[str, dict[str, str]]:
        """The page's form: its action and fields."""
        text = self.http.get(self.page).text
        action, manifest = re.findall(r'(?:action|value)="([^"]*)"', text)
        return html.unescape(action), {"manifest": html.unescape(manifest)}

    def presses(self) -> str:
        """Press both buttons; return the address to which GitHub redirects with the code."""
        action, fields = self.form()
        return self.http.post(action, data=fields).headers["Location"]

    def installs(self, created: str) -> None:
        """Go back to the waiting command, and install the App on the page it redirects to."""
        back = self.http.get(created)
        assert back.status_code == 302
        assert self.http.get(back.headers["Location"]).text == "Installed."


@pytest.fixture
def browser(github: FaultyGitHub, tmp_path: Path) -> Iterator[Browser]:
    """A browser at the page of the setup. Afterwards, asserts that the setup has succeeded."""
    port = free_port()
    wanted = SetupRequest(
        project="widgets",
        repository="acme/widgets",
        agent="claude",
        api_url=f"{github.url}api/v3/",
        public_url=f"{URL}/",
    )
    thread = Thread(target=setup.app, args=(wanted, tmp_path, port), kwargs={"organization": True})
    thread.start()
    browser = Browser(f"http://127.0.0.1:{port}/")
    with browser.http:
        eventually(browser.is_answered, "the page is there")
        yield browser
    thread.join(PATIENCE)
    assert not thread.is_alive()


def environment(file: Path) -> dict[str, str]:
    """The environment after loading the file of secrets."""
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_setup_creates_a_working_app(github: FaultyGitHub, tmp_path: Path) -> None:
    """The command runs as a process; it prints the page's address first."""
    command = [MERGEWRIGHT, "setup", "acme/widgets", "--url", URL, "--folder", str(tmp_path)]
    with ExitStack() as opened:
        process = opened.enter_context(
            subprocess.Popen(
                [*command, "--api-url", f"{github.url}api/v3/", "--organization"],
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        opened.callback(process.kill)
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found is not None
        browser = Browser(found[0])
        opened.enter_context(browser.http)
        action, fields = browser.form()
        assert urlsplit(action).path == "/organizations/acme/settings/apps/new"
        asked = json.loads(fields["manifest"])
        assert asked["public"] is False
        assert asked["hook_attributes"] == {"url": f"{URL}/webhooks/github", "active": True}
        assert asked["default_permissions"] == {one.name: one.level for one in PERMISSIONS}
        assert {"issues", "issue_comment", "pull_request", "push"} <= set(asked["default_events"])
        assert {"ping", "installation"}.isdisjoint(asked["default_events"])
        browser.installs(browser.presses())
        output = process.stdout.read()
        assert process.wait(PATIENCE) == 0
    assert "acme/widgets has the label mergewright" in output
    assert "mergewright doctor --config" in output
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["github-app.pem", "mergewright.env", "mergewright.toml"]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    settings, secrets = load(
        tmp_path / "mergewright.toml", environment(tmp_path / "mergewright.env")
    )
    assert settings.github.allowed_owners == ("acme",)
    assert settings.github.app_slug == "mergewright-acme"
    assert settings.public_url == f"{URL}/"
    made = github.world.apps["mergewright-acme"]
    assert (settings.sign_in.method, settings.sign_in.client_id) == ("both", made.client_id)
    assert made.callbacks == (f"{URL}/login/callback",)
    assert secrets.client_secret == made.client_secret
    assert made.hook == (f"{URL}/webhooks/github", secrets.webhook_secret)
    for secret in (secrets.webhook_secret, secrets.page_token, secrets.private_key):
        assert len(secret) >= 32
        assert secret not in output
    credentials = Credentials(
        app_id=settings.github.app_id,
        private_key=secrets.private_key,
        owners=settings.github.allowed_owners,
    )
    client = GitHub(settings.github.api_url, credentials)
    assert client.read.me() == "mergewright-acme[bot]"
    assert client.hook.url() == f"{URL}/webhooks/github"
    assert client.read.missing_permissions("acme/widgets") == ()
    client.close()


def test_a_code_with_a_wrong_state_is_refused(browser: Browser, tmp_path: Path) -> None:
    right = browser.presses()
    code = parse_qs(urlsplit(right).query)["code"][0]
    for query in ("", f"?code={code}", f"?code={code}&state=guessed", right[-60:]):
        assert browser.http.get(f"{browser.page}created{query}").status_code in (400, 404)
    elsewhere = browser.http.get(right, headers={"Host": "evil.example"})
    assert elsewhere.status_code == 400
    assert list(tmp_path.iterdir()) == []
    browser.installs(right)


def test_an_app_of_another_owner_is_refused(browser: Browser, tmp_path: Path) -> None:
    action, fields = browser.form()
    wrong = action.replace("/organizations/acme", "/organizations/umbrella")
    back = browser.http.post(wrong, data=fields).headers["Location"]
    printed = browser.http.get(back)
    assert printed.status_code == 502
    assert "belongs to umbrella" in printed.text
    assert list(tmp_path.iterdir()) == []
    browser.installs(browser.presses())


@pytest.mark.parametrize(
    "created", [False, True], ids=["before the App", "before its installation"]
)
def test_an_interrupted_setup_says_what_is_left_to_do(
    github: FaultyGitHub, tmp_path: Path, created: bool
) -> None:
    """Ctrl-C leaves no file before the keys arrive; later, it ends the wait for installation."""
    command = [MERGEWRIGHT, "setup", "acme/widgets", "--url", URL, "--folder", str(tmp_path)]
    with subprocess.Popen(
        [*command, "--api-url", f"{github.url}api/v3/", "--organization"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        found = re.search(r"http://127\.0\.0\.1:\d+/", next(lines))
        assert found is not None
        assert next(line for line in lines if line.startswith("Waiting for GitHub"))
        browser = Browser(found[0])
        with browser.http:
            if created:
                assert browser.http.get(browser.presses()).status_code == 302
                assert next(line for line in lines if line.startswith("Waiting until the App"))
        process.send_signal(signal.SIGINT)
        output = "".join(lines)
        code = process.wait(PATIENCE)
    if created:
        assert code == 0
        page = f"{github.url}apps/mergewright-acme/installations/new"
        assert f"1. Install the App on acme/widgets: {page}" in output
    else:
        assert code == 130
        assert "interrupted, and nothing was written: run the command again." in output
        assert f"{github.url}organizations/acme/settings/apps" in output
    assert bool(list(tmp_path.iterdir())) == created


@pytest.mark.parametrize("name", ["mergewright.toml", "mergewright.env", "github-app.pem"])
def test_existing_files_are_not_overwritten(
    mergewright: CommandLine, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).touch()
    result = mergewright("setup", "acme/widgets", "--url", URL, "--folder", str(tmp_path))
    assert result.code == 2
    assert f"{name} already exists, so this folder is set up" in result.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("widgets", "--url", URL), "expected 'owner/name'"),
        (("acme/widgets", "--url", "bot"), "server.public-url"),
        (("acme/widgets", "--url", URL, "--agent", "nobody"), "known: "),
        (("acme/widgets", "--url", URL, "--folder", "nowhere"), "no such directory"),
        *(
            (("acme/widgets", "--url", URL, "--api-url", CLEAR, *more), "use https")
            for more in ((), ("--token",))
        ),
    ],
)
def test_invalid_arguments_are_refused_before_anything_is_created(
    mergewright: CommandLine, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    folder = () if "--folder" in words else ("--folder", str(tmp_path))
    result = mergewright("setup", *words, *folder)
    assert result.code == 2
    assert says in result.err


Given = Callable[[str], Result]


@pytest.fixture
def given(
    github: FaultyGitHub,
    mergewright: CommandLine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Given:
    """Run setup, and give it a token when it asks."""

    def set_up(token: str) -> Result:
        monkeypatch.setattr("getpass.getpass", lambda _: token)
        where = ("--url", URL, "--folder", str(tmp_path), "--api-url", f"{github.url}api/v3/")
        return mergewright("setup", "acme/widgets", *where, "--token")

    return set_up


def test_a_token_is_checked_and_stored(given: Given, tmp_path: Path) -> None:
    done = given("wrights")
    assert done.code == 0, done.err
    assert "acme/widgets has the label mergewright" in done.out
    assert f"Add one to acme/widgets: {URL}/webhooks/github" in done.out
    file = tmp_path / "mergewright.env"
    assert file.stat().st_mode & 0o777 == 0o600
    settings, secrets = load(tmp_path / "mergewright.toml", environment(file))
    assert (settings.github.app_id, secrets.token) == ("", "wrights")


def test_an_administrators_token_adds_the_webhook_too(
    github: FaultyGitHub, given: Given, tmp_path: Path
) -> None:
    done = given("adas")
    assert done.code == 0, done.err
    assert f"acme/widgets sends webhooks to {URL}/webhooks/github" in done.out
    assert "Add one" not in done.out
    with closing(GitHub(f"{github.url}api/v3/", Credentials(token="adas"))) as client:
        (hook,) = client.read.webhooks("acme/widgets")
        assert (hook.active, hook.events, hook.config.url) == (
            True,
            ("*",),
            f"{URL}/webhooks/github",
        )
        client.setup.create_label("acme/widgets", "Mergewright", "000000", "again")
        assert client.read.labels("acme/widgets", "mergewright") == ["mergewright"]


def test_a_webhook_that_exists_gets_the_new_secret(
    github: FaultyGitHub, given: Given, tmp_path: Path
) -> None:
    """If the webhook kept its old secret, the bot would refuse the webhook's deliveries."""
    url = f"{URL}/webhooks/github"
    with closing(GitHub(f"{github.url}api/v3/", Credentials(token="adas"))) as client:
        client.setup.create_webhook("acme/widgets", url, "an-old-secret", ["push"])
    assert f"acme/widgets sends webhooks to {url}" in given("adas").out
    _, secrets = load(tmp_path / "mergewright.toml", environment(tmp_path / "mergewright.env"))
    hooks = [(hook.url, hook.secret) for hook in github.hooks if hook.repo]
    assert hooks == [(url, secrets.webhook_secret)]


@pytest.mark.parametrize(
    ("token", "says"),
    [("mallorys", "the account has no write access"), ("wrong", "Bad credentials")],
)
def test_a_token_without_write_access_is_refused(
    given: Given, tmp_path: Path, token: str, says: str
) -> None:
    done = given(token)
    assert done.code == 1
    assert says in done.err
    assert list(tmp_path.iterdir()) == []
