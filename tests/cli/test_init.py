"""`mergewright init`: questions at a terminal, and options without one."""

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bot.cli import init
from bot.setup import files
from config.load import load
from tests.cli.conftest import CommandLine
from tests.cli.results import Result
from tests.cli.terminals import at_a_terminal
from tests.world.faulty_github import FaultyGitHub

Init = Callable[..., Result]
REPOSITORY = ("--repository", "acme/widgets")


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyGitHub]:
    with FaultyGitHub(tmp_path_factory.mktemp("github")) as server:
        widgets = server.repository("acme/Widgets_2")
        widgets.permission("ada", "admin")
        server.repository("acme/widgets").permission("ada", "admin")
        server.user("ada", token="adas")
        server.user("mallory", token="mallorys")
        yield server


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, on a machine with one agent's program and no secrets."""
    for name in [one for one in os.environ if one.startswith("MERGEWRIGHT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\n")
    (programs / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(init, "_unavailable", lambda name: "" if name != "docker" else "no Docker")
    empty = tmp_path / "new"
    empty.mkdir()
    return empty


@pytest.fixture
def run(
    mergewright: CommandLine, github: FaultyGitHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Init:
    """Run init without a terminal."""

    def run(*words: str, token: str = "adas") -> Result:
        monkeypatch.setenv("MERGEWRIGHT_GITHUB_TOKEN", token)
        monkeypatch.setattr("sys.stdin", io.StringIO())
        where = ("--folder", str(folder), "--api-url", f"{github.url}api/v3/")
        return mergewright("init", *where, *words)

    return run


def environment(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines())


def test_options_answer_all_questions(
    run: Init, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-x")
    words = ("--url", "https://bot.example", "--auth", "token", "--agent", "claude")
    done = run(*REPOSITORY, *words, "--isolation", "podman")
    assert done.code == 0, done.err
    assert "ada may write to acme/widgets." in done.out
    assert "acme/widgets sends webhooks to https://bot.example/webhooks/github" in done.out
    assert f"mergewright serve --config {folder}/mergewright.toml" in done.out.splitlines()[-1]
    assert "Let the agent sign in" not in done.out
    assert f"1. Load the secrets:        set -a; . {folder}/mergewright.env; set +a" in done.out
    secrets = folder / files.SECRETS
    assert secrets.stat().st_mode & 0o777 == 0o600
    settings, found = load(folder / files.CONFIGURATION, environment(secrets))
    assert settings.projects["widgets"].repository == "acme/widgets"
    assert (settings.agent_types["claude"].key, settings.runtime.isolation) == (
        "ANTHROPIC_API_KEY",
        "podman",
    )
    assert (found.token, found.model_keys) == ("adas", {"ANTHROPIC_API_KEY": "sk-ant-x"})
    assert found.webhook_secret
    assert found.page_token
    assert "sk-ant-x" not in done.out
    assert "adas" not in done.out


def test_defaults_poll_github_and_use_the_strongest_sandbox(run: Init, folder: Path) -> None:
    done = run("--repository", "acme/Widgets_2")
    assert done.code == 0, done.err
    assert "ANTHROPIC_API_KEY is not set: add it to mergewright.env, which is written" in done.out
    assert "1. Let the agent sign in:   step 3 of Install in README.md" in done.out
    settings, found = load(folder / files.CONFIGURATION, environment(folder / files.SECRETS))
    assert settings.polls
    assert settings.projects["widgets-2"].agent == "claude"
    assert settings.runtime.isolation == ""
    assert (settings.server.public_url, found.webhook_secret) == ("", "")


def test_the_current_folder_is_named_by_its_path(
    run: Init, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaced = folder / "my server"
    spaced.mkdir()
    monkeypatch.chdir(spaced)
    done = run(*REPOSITORY, "--folder", ".")
    assert done.code == 0, done.err
    assert f"Wrote to {spaced}: mergewright.toml, mergewright.env" in done.out
    assert f"set -a; . '{spaced}/mergewright.env'; set +a" in done.out
    assert f"mergewright doctor --config '{spaced}/mergewright.toml'" in done.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "--repository: expected OWNER/NAME"),
        (("--repository", "widgets"), "--repository widgets: expected OWNER/NAME"),
        ((*REPOSITORY, "--url", "http://bot.example"), "expected a URL such as https://"),
        ((*REPOSITORY, "--auth", "app"), "--auth app: a new App needs --url"),
        ((*REPOSITORY, "--agent", "claud"), "--agent claud: did you mean 'claude'?"),
        ((*REPOSITORY, "--agent", "aider"), "aider is not installed: it is not on PATH"),
        ((*REPOSITORY, "--key", "sk-ant-secret"), "expected the name of an environment variable"),
        ((*REPOSITORY, "--isolation", "docker"), "docker does not work here: no Docker"),
        ((*REPOSITORY, "--isolation", "jail"), "expected one of bubblewrap, docker"),
        ((*REPOSITORY, "--api-url", "http://ghe.example/api/v3/"), "use https"),
    ],
)
def test_a_wrong_answer_writes_nothing(
    run: Init, folder: Path, words: tuple[str, ...], says: str
) -> None:
    refused = run(*words)
    assert refused.code == 2
    assert says in " ".join(refused.err.split())
    assert "sk-ant-secret" not in refused.err.replace("--key sk-ant-secret", "")
    assert list(folder.iterdir()) == []


def test_a_token_without_write_access_is_refused(run: Init, folder: Path) -> None:
    refused = run(*REPOSITORY, token="mallorys")
    assert refused.code == 1
    assert "the account has no write access" in refused.err
    refused = run(*REPOSITORY, token="")
    assert "no token: set MERGEWRIGHT_GITHUB_TOKEN" in refused.err
    assert list(folder.iterdir()) == []


def test_without_a_sandbox_a_person_has_to_choose(
    run: Init, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(init, "_unavailable", lambda name: "" if name == "none" else "no bwrap")
    refused = run(*REPOSITORY)
    assert (refused.code, "--isolation: expected one of" in refused.err) == (2, True)
    assert "bubblewrap: no bwrap" in refused.err
    assert run(*REPOSITORY, "--isolation", "none").code == 0
    assert 'isolation = "none"' in (folder / files.CONFIGURATION).read_text()


@pytest.mark.parametrize("name", [files.CONFIGURATION, files.SECRETS, files.KEY])
def test_existing_files_are_not_overwritten(run: Init, folder: Path, name: str) -> None:
    (folder / name).write_text("mine")
    refused = run(*REPOSITORY)
    assert (refused.code, f"{name} already exists" in refused.err) == (2, True)
    assert [one.read_text() for one in folder.iterdir()] == ["mine"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interruption_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    synced = 0

    def fsync(_: int) -> None:
        nonlocal synced
        synced += 1
        if synced == 2:
            raise failure

    monkeypatch.setattr("os.fsync", fsync)
    with pytest.raises(type(failure) if isinstance(failure, OSError) else KeyboardInterrupt):
        files.write(folder, "text", {}, "key")
    assert list(folder.iterdir()) == []


def test_a_person_is_asked_until_each_answer_fits(github: FaultyGitHub, folder: Path) -> None:
    """At a real terminal; the token and the key are not shown."""
    words = ("init", "--api-url", f"{github.url}api/v3/", "--isolation", "none")
    with at_a_terminal(*words, folder=folder) as terminal:
        for question, answer in (
            ("1. Repository (OWNER/NAME): ", "widgets"),
            ("expected OWNER/NAME, such as acme/widgets", None),
            ("1. Repository (OWNER/NAME): ", "acme/widgets"),
            ("poll GitHub) [none]: ", ""),
            ("3. Token of the bot's account: ", "mallorys"),
            ("has no write access", None),
            ("1. Repository (OWNER/NAME) [acme/widgets]: ", ""),
            ("poll GitHub) [none]: ", "none"),
            ("3. Token of the bot's account: ", "adas"),
            ("ada may write to acme/widgets.", None),
            ("[claude]: ", "claude"),
            ("[ANTHROPIC_API_KEY]: ", ""),
            ("mergewright.env later): ", "sk-ant-typed"),
            ("mergewright serve --config", None),
        ):
            terminal.reads(question)
            if answer is not None:
                terminal.types(answer)
    assert "adas" not in terminal.shown
    assert "sk-ant-typed" not in terminal.shown
    assert environment(folder / files.SECRETS)["ANTHROPIC_API_KEY"] == "sk-ant-typed"
