"""The command line itself: start-up, exit codes, configuration and errors."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.app import process
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.bubblewrap import Bubblewrap
from tests.cli.conftest import CommandLine, Deployment
from tests.cli.results import MERGEWRIGHT, Result

HEAVY = ("asyncio", "githubkit", "httpx", "libtmux", "litestar", "msgspec", "rich", "sqlite3")


def test_help_imports_no_heavy_modules() -> None:
    script = f"""
import sys
from bot.cli import main
sys.argv = ["mergewright", "--help"]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
print([name for name in {HEAVY} if name in sys.modules])
"""
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines()[-1] == "[]"


def test_the_installed_command_prints_its_version() -> None:
    printed = subprocess.run([MERGEWRIGHT, "--version"], capture_output=True, text=True, check=True)
    assert printed.stdout.startswith("mergewright 0.")


@pytest.mark.parametrize("words", [("lss",), ("show",), ("ls", "--wat"), ("logs", "x", "-n", "0")])
def test_wrong_usage_ends_with_2(mergewright: CommandLine, words: tuple[str, ...]) -> None:
    result = mergewright(*words)
    assert result.code == 2
    assert "Usage: mergewright" in result.err


@pytest.mark.usefixtures("secrets")
def test_a_missing_configuration_has_a_remedy(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.file.unlink()
    result = mergewright("ls")
    assert (result.code, result.out) == (2, "")
    assert "to create one: mergewright init; for a server" in result.err

    deployment.file.write_text(mergewright("config", "example").out)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k" * 32)
    assert mergewright("config", "check").code == 0


def test_a_named_configuration_must_exist(mergewright: CommandLine, deployment: Deployment) -> None:
    result = mergewright("ls", "--config", "elsewhere.toml")
    assert (result.code, result.err) == (2, "mergewright: elsewhere.toml: no such file\n")
    result = mergewright("ls", "--config", str(deployment.file.parent))
    assert result.err == f"mergewright: {deployment.file.parent}: is a directory\n"


def test_the_configuration_can_be_named_by_an_environment_variable(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = deployment.file.rename(deployment.file.with_name("other.toml"))
    deployment.has_session()
    monkeypatch.setenv("MERGEWRIGHT_CONFIG", str(moved))
    assert mergewright("ls").code == 0


@pytest.mark.usefixtures("secrets")
def test_a_configuration_is_checked(mergewright: CommandLine, deployment: Deployment) -> None:
    with deployment.file.open("a") as file:
        file.write('[runtime]\nisolation = "none"\n')
    result = mergewright("config", "check", str(deployment.file))
    assert (result.code, result.out) == (0, f"{deployment.file} is valid. Projects: widgets.\n")


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    ("added", "unset", "problems"),
    [
        (None, "", ["no project: add a table [projects.NAME]"]),
        ("[runtime]\nisolation = 'none'", "GITHUB_TOKEN", ["no GitHub token: set MERGEWRIGHT_GIT"]),
        ("[runtime]\nisolation = 'none'", "WEBHOOK_SECRET", ["no webhook secret: set MERGEWRIGHT"]),
        (
            "[runtime]\nisolation = 'none'\n[agent-types.x]\nprogram = 'shell'\nkey = 'X_KEY'",
            "",
            ["no model key: set X_KEY (named by agent-types.x.key)"],
        ),
        (
            "[runtime]\nisolation = 'none'\n[github]\napp-id = '7'\nallowed-owners = ['acme']\n"
            "private-key-file = 'missing.pem'",
            "",
            ["github.private-key-file: ", "missing.pem cannot be read: No such file"],
        ),
    ],
    ids=["empty", "token", "webhook secret", "model key", "key file"],
)
def test_a_configuration_with_which_no_agent_could_work_is_refused(
    mergewright: CommandLine,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    added: str | None,
    unset: str,
    problems: list[str],
) -> None:
    monkeypatch.delenv(f"MERGEWRIGHT_{unset}", raising=False)
    text = "" if added is None else f"{deployment.file.read_text()}\n{added}\n"
    deployment.file.write_text(text)
    result = mergewright("config", "check", str(deployment.file))
    assert (result.code, result.out) == (2, "")
    for problem in problems:
        assert problem in result.err


@pytest.mark.usefixtures("secrets")
def test_a_configuration_that_names_no_isolation_is_refused_where_none_works(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ISOLATIONS, "bubblewrap", Bubblewrap())  # It has not been tried yet.
    monkeypatch.setenv("PATH", str(deployment.file.parent))  # No bwrap is there.
    for engine in ("DOCKER_HOST", "CONTAINER_HOST"):
        monkeypatch.setenv(engine, f"unix://{deployment.file.parent}/none.sock")
    result = mergewright("config", "check", str(deployment.file))
    assert (result.code, result.out) == (2, "")
    assert "agents cannot be isolated here: bubblewrap is not installed: apt-get" in result.err
    assert 'write isolation = "none" under [runtime]' in result.err


def test_every_problem_of_a_configuration_is_printed(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.file.write_text("[server]\nprt = 1\n[limits]\nsessions = 0\n")
    result = mergewright("config", "check", str(deployment.file))
    assert result.code == 2
    assert "server.prt: unknown key; did you mean 'port'?" in result.err
    assert "limits.sessions = 0: expected a whole number >= 1" in result.err


@pytest.mark.usefixtures("secrets")
def test_custom_prompts_are_checked_with_the_configuration(
    mergewright: CommandLine, deployment: Deployment, tmp_path: Path
) -> None:
    (tmp_path / "tell.md").write_text("{{ actor }}: {{ words }}")
    deployment.file.write_text(f'[server]\nprompts = "{tmp_path}"\n')
    result = mergewright("config", "check", str(deployment.file))
    assert result.code == 2
    assert f"server.prompts: {tmp_path}/tell.md: unknown names: words" in result.err
    assert "no project: add a table [projects.NAME]" in result.err
    result = mergewright("serve", "--config", str(deployment.file))
    assert result.code == 2
    assert f"server.prompts: {tmp_path}/tell.md: unknown names: words" in result.err


def test_unknown_programs_and_runtimes_are_refused(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    wrong = deployment.file.read_text().replace('program = "shell"', 'program = "shel"')
    deployment.file.write_text(f'{wrong}\n[runtime]\nkind = "tmx"\n')
    result = mergewright("config", "check", str(deployment.file))
    assert result.code == 2
    assert "agent-types.shell.program = 'shel': did you mean 'shell'? known: " in result.err
    assert "runtime.kind = 'tmx': did you mean 'tmux'? known: " in result.err


def test_before_the_first_start_there_is_no_database(mergewright: CommandLine) -> None:
    result = mergewright("ls")
    assert result.code == 1
    assert "no database for this user; `mergewright serve` creates it" in result.err


@pytest.fixture
def serve(mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the server in this process, without its changes to log, limits and signal handlers."""
    monkeypatch.setattr(process, "set_up_log", lambda *_: None)
    monkeypatch.setattr(process, "raise_limit", lambda: 9999)
    monkeypatch.setattr(process, "_Signals", lambda: None)

    def served(secret: str = "hunter2") -> Result:
        for name in ("GITHUB_TOKEN", "WEBHOOK_SECRET"):
            monkeypatch.setenv(f"MERGEWRIGHT_{name}", secret)
        return mergewright("serve")

    return served


def test_serving_without_secrets_is_refused_with_what_is_missing(
    serve: Callable[..., Result],
) -> None:
    refused = serve(secret="")
    assert refused.code == 2
    assert "MERGEWRIGHT_GITHUB_TOKEN" in refused.err
    assert "MERGEWRIGHT_WEBHOOK_SECRET" in refused.err


def test_serving_where_a_program_is_missing_is_refused_with_what_to_install(
    serve: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    refused = serve()
    assert refused.code == 1
    assert "git: not found: install git 2.31 or newer\ntmux: not found: install tmux" in refused.err


def test_the_comment_command_status_points_to_show(mergewright: CommandLine) -> None:
    result = mergewright("status", "widgets-12")
    assert (result.code, "`show widgets-12`" in result.err) == (2, True)


def test_a_port_in_use_is_a_one_line_error(deployment: Deployment) -> None:
    """In a process of its own, which logs to standard error."""
    secrets = {"MERGEWRIGHT_GITHUB_TOKEN": "hunter2", "MERGEWRIGHT_WEBHOOK_SECRET": "hunter2"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = deployment.file.read_text().replace("[server]", f"[server]\nport = {port}")
        deployment.file.write_text(text)
        ended = subprocess.run(
            [MERGEWRIGHT, "serve", "--config", deployment.file],
            env=os.environ | secrets,
            capture_output=True,
            text=True,
        )
    assert ended.returncode == 1
    assert f"mergewright: cannot listen on 127.0.0.1, port {port}: another program" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_impossible_data_directory_is_a_one_line_error(
    deployment: Deployment, serve: Callable[..., Result]
) -> None:
    below = deployment.file / "data"  # There is a file of this name.
    deployment.file.write_text(
        f"{deployment.file.read_text()}\n".replace(str(deployment.paths.data), str(below))
    )
    refused = serve()
    assert refused.code == 1
    problem = f"server.data = {below}: this folder cannot be created: Not a directory; name one"
    assert problem in refused.err
    assert "Traceback" not in refused.err


def test_an_invalid_database_is_a_one_line_error(
    mergewright: CommandLine, deployment: Deployment, serve: Callable[..., Result]
) -> None:
    deployment.paths.database.write_text("no database at all")
    for refused in (serve(), mergewright("ls")):
        assert refused.code == 3
        assert "it is not a database" in refused.err
        assert "Traceback" not in refused.err


@pytest.mark.parametrize("command", ["show", "why", "attach", "logs"])
def test_an_unknown_session_gets_the_closest_id(
    mergewright: CommandLine, deployment: Deployment, command: str
) -> None:
    deployment.has_session(12)
    result = mergewright(command, "widget-12")
    expected = "mergewright: no session 'widget-12'; did you mean widgets-12?\n"
    assert (result.code, result.err) == (2, expected)


def test_an_unknown_session_without_a_similar_id_points_to_ls(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session(12)
    assert "`mergewright ls --all` lists all sessions" in mergewright("show", "x").err


def test_colors_are_printed_only_to_terminals(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    piped = mergewright("ls").out
    terminal, inner = os.openpty()
    subprocess.run(
        [MERGEWRIGHT, "ls"], stdout=inner, check=True, env={**os.environ, "TERM": "xterm"}
    )
    shown = os.read(terminal, 10_000).decode()
    os.close(inner)
    os.close(terminal)
    assert "\x1b[" in shown
    assert session in piped
    assert "\x1b[" not in piped


def test_ls_show_and_why_print_json_on_request(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    deployment.has_a_red_check(session)
    (row,) = json.loads(mergewright("ls", "--json").out)
    assert (row["id"], row["status"], row["activity"]) == (session, "ci_failed", "active")
    (pull,) = row["pulls"]
    assert (pull["number"], pull["url"]) == (34, "https://example.com/pull/34")
    assert (pull["checks"], pull["failed"]) == ({"passed": 1, "failed": 1}, ["unit"])
    shown = json.loads(mergewright("show", session, "--json").out)
    assert shown["session"]["id"] == session
    assert shown["history"][0]["status"] == "ci_failed"
    explained = json.loads(mergewright("why", session, "--json").out)
    assert explained["decision"]["status"] == "queued"
    assert explained["facts"]["session"] == session


def test_a_damaged_or_missing_database_is_refused_with_the_remedy(
    deployment: Deployment, mergewright: CommandLine, serve: Callable[..., Result]
) -> None:
    deployment.has_session(12)
    (deployment.paths.archive / "widgets-12").mkdir(parents=True)
    database = deployment.paths.database
    assert checked(mergewright) == "ok intact"
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])
    refused = serve()
    assert (refused.code, "restore it from a backup" in refused.err) == (3, True)
    assert mergewright("why", "widgets-12").code == 3
    assert "restore it from a backup" in checked(mergewright)
    database.unlink()
    assert "is missing or empty, but" in checked(mergewright)
    refused = serve()
    assert refused.code == 1
    assert "holds the files of sessions, such as archive/widgets-12" in refused.err
    assert "mergewright serve --new-database" in refused.err
    assert not database.exists()


def checked(mergewright: CommandLine) -> str:
    """What `doctor` finds about the database."""
    found = json.loads(mergewright("doctor", "--json").out)
    (one,) = [one for one in found if one["name"] == "database"]
    return f"{one['severity']} {one['says']}"
