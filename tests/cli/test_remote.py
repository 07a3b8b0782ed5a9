"""Commands over the API of a remote server."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import respx

from bot.cli import remote
from bot.cli.options import CliError
from bot.cli.remote import RemoteServer
from bot.web.health import Health
from lifecycle.model import keys
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Pull
from lifecycle.model.status import Reason, Status
from tests.cli.conftest import CommandLine
from tests.web.conftest import TOKEN, Site

HEAD = "a" * 40


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server; the command line knows its address and its token, and has no configuration."""
    monkeypatch.chdir(tmp_path)
    site = Site(tmp_path)
    monkeypatch.setenv("MERGEWRIGHT_SERVER", site.url)
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", TOKEN)
    monkeypatch.setenv("COLUMNS", "80")
    yield site
    site.close()


@pytest.fixture
def mergewright(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


def given(site: Site) -> list[tuple[str, str, str]]:
    found = site.store.sessions.get("widgets-1")
    assert found is not None
    return [(one.kind, one.text, one.actor) for one in found.commands]


def test_sessions_are_listed_page_by_page(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_MOST_ITEMS", 2)
    for number in range(1, 6):
        site.session(number, title=f"Title {number}", status=Status.WORKING)
    site.session(6, status=Status.STUCK, reason=Reason.REPAIRS_EXHAUSTED)
    listed = json.loads(mergewright("ls", "--json").out)
    assert [one["id"][8:] for one in listed] == list("654321")
    assert len(json.loads(mergewright("ls", "--json", "--limit", "3").out)) == 3
    assert "widgets-6  stuck" in mergewright("ls", "--status", "stuck").out
    assert "Title 4" in mergewright("ls", "--search", "title 4").out
    unknown = mergewright("ls", "--project", "widget")
    says = "no project 'widget'; did you mean 'widgets'? known: widgets"
    assert (unknown.code, unknown.err) == (2, f"mergewright: {says}\n")
    assert mergewright("ls", "--project", "widgets", "--search", "zz").out == "No sessions match.\n"
    assert mergewright("ls", "--agent", "ada").out == "No sessions match.\n"
    assert mergewright("ls", "--person", "bob").out == "No sessions match.\n"


def test_the_health_of_a_server_is_shown(site: Site, mergewright: CommandLine) -> None:
    assert mergewright("health").out.startswith("healthy\n")
    site.health = Health(scheduler=False)
    result = mergewright("health")
    assert result.code == 1
    assert "The periodic jobs are not running" in result.out
    report = json.loads(mergewright("health", "--json").out)
    assert report["process"]["scheduler_running"] is False


def test_a_command_is_given_and_its_reply_printed(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = site.session(1)

    def applies(_: float) -> None:
        (command,) = site.store.sessions.get(session).commands  # type: ignore[union-attr]
        reply = Comment(
            key=keys.command_applied(command.key), number=1, topic="answer", values={"text": "OK."}
        )
        site.decide(session, Status.PAUSED, "paused by ada", actions=(reply,))

    monkeypatch.setattr("bot.cli.submit.time.sleep", applies)
    result = mergewright("pause", session)
    assert result.out == "widgets-1 paused  Paused by ada.\nOK.\n"
    assert given(site) == [("pause", "", "api:client")]


def test_a_refusal_is_an_error(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = site.session(1)

    def refuses(_: float) -> None:
        (command,) = site.store.sessions.get(session).commands  # type: ignore[union-attr]
        reply = Comment(
            key=keys.command_refused(command.key), number=1, topic="answer", values={"text": "No."}
        )
        site.decide(session, Status.WORKING, "at work", actions=(reply,))

    monkeypatch.setattr("bot.cli.submit.time.sleep", refuses)
    result = mergewright("resume", session)
    assert (result.code, result.err) == (1, "mergewright: widgets-1: resume refused: No.\n")


def test_without_waiting_a_command_is_only_submitted(site: Site, mergewright: CommandLine) -> None:
    session = site.session(1, pulls=(Pull(number=34, head=HEAD),))
    outcome = json.loads(mergewright("tell", session, "use", "it", "--no-wait", "--json").out)
    assert (outcome["accepted"], outcome["status"]) == (None, "working")
    assert mergewright("merge", session, "--pull", "34", "--no-wait").code == 0
    assert [(kind, text) for kind, text, _ in given(site)] == [("tell", "use it"), ("merge", "")]
    assert "its pull requests: #34" in mergewright("merge", session, "--pull", "35").err


def test_a_session_is_started(site: Site, mergewright: CommandLine) -> None:
    assert mergewright("start", "widgets-12", "shell", "--no-wait").code == 0
    (command,) = site.store.commands.new()
    assert (command.number, command.kind, command.text) == (12, "start", "shell")
    assert "No project 'gears'. Known: widgets." in mergewright("start", "gears-1").err
    assert mergewright("start", "widgets-12", "--resume", "abc").code == 2


@pytest.mark.parametrize("as_json", [False, True])
def test_a_refused_start_is_an_error(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    why = "agents can only be started on an open issue"

    def refuses(_: float) -> None:
        site.store.commands.refuse(site.store.commands.new()[0].key, why)

    monkeypatch.setattr("bot.cli.submit.time.sleep", refuses)
    result = mergewright("start", "widgets-12", *(["--json"] if as_json else []))
    assert result.code == 1
    if not as_json:
        assert result.err == f"mergewright: widgets-12: start refused: {why}\n"
        return
    printed = json.loads(result.out)
    assert (printed["accepted"], printed["reason"], printed["session"]) == (
        False,
        why,
        "widgets-12",
    )


def test_a_command_that_waits_for_the_end_of_a_freeze_says_so(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = site.session(1)
    site.store.freezes.add("project:widgets", "cli:ada")
    monkeypatch.setattr(
        "bot.cli.submit.time.sleep", lambda _: site.decide(session, Status.WORKING, "at work")
    )
    result = mergewright("pause", session)
    assert result.code == 0
    assert "Project widgets is frozen by cli:ada." in " ".join(result.out.split())


def test_a_session_is_opened_for_a_prompt(site: Site, mergewright: CommandLine) -> None:
    words = ("spawn", "widgets", "--prompt", "Add a flag", "--no-wait")
    assert mergewright(*words).out.startswith("widgets-p1: start submitted, not applied yet")
    (command,) = site.store.commands.new()
    assert (command.number, command.actor) == (0, "api:client")
    assert "No project 'gears'." in mergewright("spawn", "gears", "--prompt", "x").err


def test_a_refused_session_is_an_error(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "the branch flags exists already"

    def refuses(_: float) -> None:
        site.store.commands.refuse(site.store.commands.new()[0].key, why)

    monkeypatch.setattr("bot.cli.submit.time.sleep", refuses)
    result = mergewright("spawn", "widgets", "--prompt", "Add a flag", "--branch", "flags")
    says = f"mergewright: widgets-p1: start refused: {why}\n"
    assert (result.code, result.err) == (1, says)


def test_a_second_session_of_an_issue_has_to_be_asked_for(
    site: Site, mergewright: CommandLine
) -> None:
    session = site.session(1)
    words = ("spawn", "widgets", "--issue", "1", "--no-wait")
    assert f"issue #1 already has the session {session}; --another opens" in mergewright(*words).err
    assert mergewright(*words, "--another").out.startswith("widgets-1b: start submitted")


def test_a_scope_is_frozen(site: Site, mergewright: CommandLine) -> None:
    assert mergewright("freeze", "--project", "widgets").out == "widgets is now frozen\n"
    assert [one.scope for one in site.store.freezes.all()] == ["project:widgets"]
    assert mergewright("unfreeze", "--project", "widgets").code == 0
    assert mergewright("unfreeze", "--project", "widgets").code == 1
    assert mergewright("freeze", "--all").out == "everything is now frozen\n"
    assert mergewright("freeze", "--all").out == "everything is already frozen\n"
    assert [one.scope for one in site.store.freezes.all()] == [""]


def test_a_remote_session_is_waited_for(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = site.session(1)
    result = mergewright("wait", session, "--for", "merged", "--timeout", "0.1")
    assert result.code == 1
    assert result.err == "mergewright: gave up after 0.1 s: the status of widgets-1 is working\n"
    site.end(session, Status.MERGED)
    assert mergewright("wait", session, "--for", "merged").code == 0
    assert mergewright("wait", session, "--for", "needs_input").code == 1


@pytest.mark.parametrize(
    ("change", "code", "error"),
    [
        (
            {"MERGEWRIGHT_PAGE_TOKEN": "wrong"},
            1,
            "refuses the token; set MERGEWRIGHT_PAGE_TOKEN to the server's page token",
        ),
        ({"MERGEWRIGHT_PAGE_TOKEN": ""}, 2, "or set MERGEWRIGHT_PAGE_TOKEN or"),
        ({"MERGEWRIGHT_SERVER": "http://bot.example"}, 2, "use https"),
        ({"MERGEWRIGHT_SERVER": "bot.example"}, 2, "expected a URL such as https://bot.example"),
        ({"MERGEWRIGHT_SERVER": "127.0.0.1:80"}, 2, "expected a URL such as https://bot.example"),
        ({"MERGEWRIGHT_SERVER": "https://"}, 2, "expected a URL such as https://bot.example"),
        ({"MERGEWRIGHT_SERVER": "http://127.0.0.1:1"}, 1, "http://127.0.0.1:1 cannot be reached: "),
    ],
)
def test_a_server_that_cannot_be_used_is_named(
    site: Site,
    mergewright: CommandLine,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str],
    code: int,
    error: str,
) -> None:
    for name, value in change.items():
        monkeypatch.setenv(name, value)
    for words in (("ls",), ("stop", "widgets-1")):
        result = mergewright(*words)
        assert (result.code, error in result.err) == (code, True), result.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("budget widgets-1 +0", "budget needs an amount in US dollars, such as `+5`"),
        ("merge widgets-1 squish", "merge takes at most one of"),
        ("stop widgets-9", "no session 'widgets-9'; `mergewright ls --all` lists all sessions"),
        ("wait widgets-9 --for merged", "no session 'widgets-9'; `mergewright ls --all` lists"),
        ("start gears-1", "No project 'gears'. Known: widgets."),
        ("start widgets-1x", "no session 'widgets-1x'; to start an agent on an issue, name it as"),
        ("freeze --project gears", "(known: widgets)"),
    ],
)
def test_wrong_usage_ends_as_on_the_servers_machine(
    site: Site, mergewright: CommandLine, words: str, error: str
) -> None:
    site.session(1)
    result = mergewright(*words.split())
    assert (result.code, error in result.err) == (2, True), result.err
    assert "/api/v1" not in result.err


def test_the_token_is_read_from_a_file(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="utf-8")
    monkeypatch.delenv("MERGEWRIGHT_PAGE_TOKEN")
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN_FILE", str(file))
    assert mergewright("ls").out == "No live sessions. Use --all to include ended ones.\n"


@respx.mock
def test_another_server_is_not_taken_for_mergewright(
    site: Site, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERGEWRIGHT_SERVER", "https://bot.example/")
    respx.get("https://bot.example/api/v1/sessions").respond(404, html="<h1>Not here</h1>")
    assert mergewright("ls").err == (
        "mergewright: https://bot.example/api/v1/: no Mergewright API there (404 Not Found)\n"
    )


def test_the_unknown_session_is_named(site: Site, mergewright: CommandLine) -> None:
    assert "no session 'widgets-9'" in mergewright("stop", "widgets-9").err
    assert "no session 'widgets-9'" in mergewright("wait", "widgets-9", "--for", "merged").err


@respx.mock
def test_a_stream_of_events_that_a_proxy_refuses_is_an_error_like_others() -> None:
    respx.get("https://bot.example/api/v1/events").respond(502, html="<h1>Bad Gateway</h1>")
    with (
        closing(RemoteServer("https://bot.example/", TOKEN)) as server,
        pytest.raises(CliError, match=r"no Mergewright API there \(502 Bad Gateway\)"),
    ):
        next(server.events())
