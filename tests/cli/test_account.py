"""`mergewright login`, `logout` and `whoami`, on servers where people sign in."""

import io
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bot.cli import logins
from bot.store import TokenScope
from lifecycle.model.status import Status
from tests.cli.conftest import CommandLine
from tests.cli.results import Result
from tests.cli.terminals import at_a_terminal
from tests.web.conftest import TOKEN, Site
from tests.web.people import People

Login = Callable[..., Result]


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    with ExitStack() as opened:
        people = People(tmp_path, opened)
        people.may("alice", "write", "widgets")
        people.site.session(1, status=Status.WORKING)
        yield people


@pytest.fixture
def mergewright(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    """The command line of a colleague, whose machine has no configuration."""
    elsewhere = tmp_path / "colleague"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(elsewhere / "config"))
    for name in ("MERGEWRIGHT_SERVER", "MERGEWRIGHT_CONFIG", "MERGEWRIGHT_PAGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return CommandLine(monkeypatch, capsys)


@pytest.fixture
def login(mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Login:
    def login(url: str, token: str, *words: str) -> Result:
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{token}\n"))
        return mergewright("login", "--server", url, *words)

    return login


def token_of(people: People, scope: TokenScope = TokenScope.STEER) -> str:
    return people.token("alice", scope)[b"authorization"].decode().removeprefix("Bearer ")


def test_a_token_is_stored_for_later_commands(
    people: People, login: Login, mergewright: CommandLine
) -> None:
    token = token_of(people, TokenScope.MESSAGE)
    signed_in = login(people.url, token)
    assert (signed_in.code, signed_in.err) == (0, "")
    assert "@alice" in signed_in.out
    assert "widgets: triage" in signed_in.out  # Of `write`, the token allows no more.
    assert token not in signed_in.out
    assert "widgets-1  working" in mergewright("ls").out
    who = json.loads(mergewright("whoami", "--json").out)
    assert (who["server"], who["login"]) == (people.url.rstrip("/"), "alice")
    assert (who["most"], who["permissions"]) == ("triage", {"widgets": "triage"})
    assert who["expires"]
    gone = mergewright("logout")
    where = f"{people.url}account"
    says = f"Removed the token for {who['server']}. To revoke a personal token, open {where}\n"
    assert gone.out == says
    assert "there is no mergewright.toml in this folder" in mergewright("ls").err
    assert mergewright("logout").code == 1


def test_only_the_user_may_read_the_stored_token(
    people: People, login: Login, mergewright: CommandLine
) -> None:
    before = os.umask(0)
    try:
        login(people.url, token_of(people))
    finally:
        os.umask(before)
    file = logins.path()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    file.chmod(0o640)
    refused = mergewright("ls")
    assert (refused.code, f"run: chmod 600 {file}" in refused.err) == (2, True)


def test_a_refused_token_is_not_stored(
    people: People, login: Login, mergewright: CommandLine
) -> None:
    wrong = login(people.url, "mwp_wrong")
    assert wrong.code == 1
    assert "refuses the token; use another one" in wrong.err
    assert "mwp_wrong" not in wrong.err
    assert login(people.url, "").code == 2
    pasted = login(people.url, "mwp_\x1b[200~secret")
    assert (pasted.code, "secret" in pasted.err) == (2, False)
    assert not logins.path().exists()
    assert mergewright("login", "--list").out.startswith("No server is stored")


def test_a_token_that_expired_later_names_the_remedy(
    people: People, login: Login, mergewright: CommandLine
) -> None:
    login(people.url, token_of(people))
    people.site.store.personal_tokens.revoke(1)
    refused = mergewright("ls")
    assert refused.code == 1
    assert f"run: mergewright login --server {people.url.rstrip('/')}" in refused.err


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://bot.example", "use https, so that nobody reads the token on its way"),
        ("https://ann:hunter2@bot.example", "the URL must not contain a password"),
        ("https://bot.example/?next=1", "expected a URL such as https://bot.example"),
        ("bot.example", "expected a URL such as https://bot.example"),
    ],
)
def test_an_address_to_which_no_token_may_go(login: Login, url: str, says: str) -> None:
    refused = login(url, "mwp_x")
    assert (refused.code, says in refused.err, "hunter2" in refused.err) == (2, True, False)


def test_the_last_of_several_servers_is_the_default(
    people: People, login: Login, mergewright: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Site(tmp_path / "other")
    try:
        login(people.url, token_of(people))
        login(other.url, TOKEN)
        listed = json.loads(mergewright("login", "--list", "--json").out)
        first = {"server": people.url.rstrip("/"), "login": "alice", "default": False}
        assert listed == [first, {"server": other.url, "login": "", "default": True}]
        assert "page token" in mergewright("whoami").out
        assert "@alice" in mergewright("whoami", "--server", people.url).out
        assert "No server is the default now" in mergewright("logout").out
        assert mergewright("ls").code == 2
        assert "widgets-1" in mergewright("ls", "--server", people.url).out
        assert mergewright("logout", "--all").code == 0
        assert "no token for" in mergewright("ls", "--server", people.url).err
    finally:
        other.close()


def test_a_variable_for_another_server_is_not_sent(
    people: People, login: Login, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(people.url, token_of(people))
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", "of another bot")
    assert "@alice" in mergewright("whoami").out


def test_a_configuration_comes_before_the_stored_server(
    people: People, login: Login, mergewright: CommandLine
) -> None:
    login(people.url, token_of(people))
    Path("mergewright.toml").write_text(
        '[projects.gears]\nrepository = "acme/gears"\nagent = "shell"\n'
        '[agent-types.shell]\nprogram = "shell"\ncommand = ["cat"]\n',
        encoding="utf-8",
    )
    assert "no database for this user" in mergewright("ls").err
    assert mergewright("whoami").out.startswith("Commands use the database in")
    other = Path("other.toml")
    Path("mergewright.toml").rename(other)
    assert "no database for this user" in mergewright("ls", "--config", str(other)).err
    assert "widgets-1" in mergewright("ls").out


def test_the_token_is_not_shown_while_it_is_typed(people: People, mergewright: CommandLine) -> None:
    token = token_of(people)
    with at_a_terminal("login", folder=Path.cwd()) as terminal:
        terminal.reads("bot.example: ")
        terminal.types(people.url)
        terminal.reads("Token: ")
        terminal.types(token)
        terminal.reads("projects")
    assert f"Create a personal token on {people.url}account" in terminal.shown
    assert token not in terminal.shown
    assert "@alice" in mergewright("whoami").out
