"""Tests of the command `mergewright agents` and its subcommands `check` and `show`."""

import json
from pathlib import Path

import pytest

from bot.model_proxy.proxy import ModelProxy, UpstreamError
from runtimes.base import Unavailable
from runtimes.local_runs import LocalRuns
from tests.cli.conftest import CommandLine, Deployment

TYPES = """
[agent-types.coder]
program = "codex"
command = ["{codex}"]
version = "0.169.0"
key = "SERVER_KEY"
[agent-types.keyed]
program = "shell"
command = ["sh", "-c", "echo mergewright: {says}; exec cat"]
endpoint = "http://127.0.0.1:1"
key = "SERVER_KEY"
[agent-types.nowhere]
program = "shell"
command = ["true"]
key = "SERVER_KEY"
[agents.ada]
types = ["coder", "keyed"]
model-keys = {{coder = "ADA_KEY"}}
[projects.gadgets]
repository = "acme/gadgets"
agent = "shell"
model-keys = {{keyed = "GADGETS_KEY"}}
"""


@pytest.fixture(autouse=True)
def configured(deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codex = tmp_path / "codex"
    codex.write_text("#!/bin/sh\necho codex-cli 0.168.0\n")
    codex.chmod(0o755)
    monkeypatch.setenv("SERVER_KEY", "sk-of-the-server")
    writes(deployment, codex=str(codex), says="ready $MERGEWRIGHT_MODEL_URL$MERGEWRIGHT_MODEL_KEY")


def writes(deployment: Deployment, **values: str) -> None:
    known = deployment.file.read_text().partition("\n[agent-types.coder]")[0]
    deployment.file.write_text(known + TYPES.format(**values))


def words(text: str) -> str:
    return " ".join(text.split())


def test_types_are_listed_with_what_they_need(mergewright: CommandLine) -> None:
    printed = words(mergewright("agents").out)
    assert "coder codex 0.168.0 the server's SERVER_KEY" in printed
    assert "nowhere: there is a model key for nowhere but no endpoint" in printed
    assert "coder: version 0.168.0 is installed, 0.169.0 is expected" in printed
    assert "ada 0 0 0" in printed
    output = json.loads(mergewright("agents", "--json").out)
    assert [one["case"]["type"] for one in output["types"]][:2] == ["shell", "coder"]
    assert output["agents"][0]["agent"] == "ada"


def test_an_agent_is_checked_with_its_own_key_and_in_the_projects_that_have_one(
    mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = mergewright("agents", "check", "ada")
    printed = words(result.out)
    assert result.code == 1
    assert "signs in with its agent's ADA_KEY no model key: set ADA_KEY for the server" in printed
    assert "keyed in gadgets shell" in printed
    assert "signs in with its project's GADGETS_KEY no model key" in printed
    monkeypatch.setenv("ADA_KEY", "sk-1")
    monkeypatch.setenv("GADGETS_KEY", "sk-2")
    result = mergewright("agents", "check", "ada")
    assert result.code == 0
    assert words(result.out).count("can start") == 3
    assert "coder codex 0.168.0" in words(result.out)
    assert "version 0.168.0 is installed, 0.169.0 is expected" in words(result.out)


def test_an_agent_with_a_type_is_checked_with_its_own_key(mergewright: CommandLine) -> None:
    printed = words(mergewright("agents", "check", "ada coder").out)
    assert "signs in with its agent's ADA_KEY no model key" in printed


def test_a_missing_program_is_reported_with_a_remedy(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    writes(deployment, codex="no-such-codex", says="ready")
    (output,) = json.loads(mergewright("agents", "check", "coder", "--json").out)
    assert output["health"]["version"] == ""
    assert output["health"]["problems"] == [
        "no-such-codex is not installed: npm install -g @openai/codex"
    ]
    assert output["round_trip"] is None
    writes(deployment, codex="/no/such-codex", says="ready")
    printed = words(mergewright("agents", "check", "coder").out)
    assert "@openai/codex, or correct `command` of the agent type" in printed


def test_an_unknown_agent_gets_the_closest_name(mergewright: CommandLine) -> None:
    result = mergewright("agents", "check", "adda")
    assert (result.code, "did you mean 'ada'?" in result.err) == (2, True)


def test_a_round_trip_starts_the_program_with_a_run_token_and_shows_the_answer(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    result = mergewright("agents", "check", "keyed", "--round-trip", "--json")
    answers = [one["round_trip"] for one in json.loads(result.out)]
    assert answers[0]["succeeded"]
    assert answers[0]["says"].startswith("http://127.0.0.1:")
    assert "sk-of-the-server" not in result.out
    assert answers[1] is None  # Of the project without a key.
    writes(deployment, codex="codex", says="blocked no credit")
    result = mergewright("agents", "check", "keyed", "--round-trip")
    assert result.code == 1
    assert "no answer: no credit" in result.out
    assert "check" not in result.out, "the model was not asked for anything"


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (0, "api cannot be reached: check `endpoint` of [agent-types.keyed]"),
        (400, "api answered 400: check SERVER_KEY, and `model` and `endpoint` of"),
        (401, "api answered 401: SERVER_KEY was rejected: set it to a valid key"),
        (404, "api answered 404: correct `model` of [agent-types.keyed], or its `endpoint`"),
        (429, "api answered 429: SERVER_KEY is rate-limited: try again later"),
    ],
)
def test_a_failed_round_trip_shows_the_model_apis_error_with_a_remedy(
    mergewright: CommandLine,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    remedy: str,
) -> None:
    error = UpstreamError("api", status)
    fixed = property(lambda _: error, lambda *_: None)
    monkeypatch.setattr(ModelProxy, "last_error", fixed, raising=False)
    writes(deployment, codex="codex", says="blocked sorry")
    assert remedy in words(mergewright("agents", "check", "keyed", "--round-trip").out)


def test_a_round_trip_that_cannot_begin_says_why(
    mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object) -> None:
        raise Unavailable("tmux cannot be started")

    monkeypatch.setattr(LocalRuns, "start", start)
    result = mergewright("agents", "check", "keyed", "--round-trip")
    assert (result.code, result.err) == (1, "")
    assert "no answer: tmux cannot be started" in result.out


def test_a_round_trip_ends_early_when_the_key_is_refused(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = UpstreamError("api", 403, times=2)
    fixed = property(lambda _: error, lambda *_: None)
    monkeypatch.setattr(ModelProxy, "last_error", fixed, raising=False)
    writes(deployment, codex="codex", says="active")
    result = mergewright("agents", "check", "keyed", "--round-trip", "--patience", "10")
    assert "no answer: the model's API refuses the key: " in words(result.out)
    assert "api answered 403: SERVER_KEY was rejected" in words(result.out)


def test_tool_limits_are_refused_for_programs_without_them(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    text = deployment.file.read_text().replace("[agents.ada]", "[agents.ada]\ntools = ['read']")
    deployment.file.write_text(text)
    result = mergewright("agents")
    assert result.code == 2
    assert "agents.ada.tools: codex ([agent-types.coder]) cannot restrict" in result.err


@pytest.mark.parametrize(
    ("kind", "allowed", "says"),
    [
        ("keyed", "false", "= false: shell has no subagents"),
        ("keyed", "2", "= 2: shell has no subagents"),
        ("claude", "2", "= 2: claude cannot limit the number of subagents; use true or false"),
        ("keyed", "true", ""),
        ("claude", "false", ""),
        ("coder", "2", ""),
    ],
)
def test_subagent_limits_are_refused_for_programs_without_them(
    mergewright: CommandLine, deployment: Deployment, kind: str, allowed: str, says: str
) -> None:
    text = f"{deployment.file.read_text()}\n[agent-types.claude]\nprogram = 'claude'\n"
    table = f"[agent-types.{kind}]\n"
    deployment.file.write_text(text.replace(table, f"{table}subagents = {allowed}\n"))
    result = mergewright("agents")
    assert result.code == (2 if says else 0)
    assert (f"agent-types.{kind}.subagents {says}" in result.err) is bool(says)


def test_an_unsupported_preamble_is_refused(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    text = deployment.file.read_text()
    deployment.file.write_text(
        text.replace("[agent-types.keyed]", "[agent-types.keyed]\npreamble = 'instructions-file'")
    )
    result = mergewright("agents")
    assert result.code == 2
    assert (
        "agent-types.keyed.preamble = 'instructions-file': shell supports only first-message"
        in result.err
    )


def test_an_agent_is_shown_before_there_was_any_session(mergewright: CommandLine) -> None:
    assert "sessions 0" in words(mergewright("agents", "show", "ada").out)
    refused = mergewright("agents", "show", "adda")
    assert refused.code != 0
    assert "no agent 'adda'; did you mean 'ada'?" in refused.err


def test_profiles_are_refused_for_programs_that_cannot_enforce_them(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    text = deployment.file.read_text()
    profile = "[profiles.careful]\nhooks = false\n"
    limited = text.replace('program = "codex"', 'program = "codex"\nprofile = "careful"') + profile
    deployment.file.write_text(limited)
    result = mergewright("config", "check")
    assert result.code == 2
    assert "coder with profile careful: codex cannot enforce hooks" in result.err
    deployment.file.write_text(text.replace('agent = "shell"', 'agent = "shell"\nprofile = "x"', 1))
    assert "projects.widgets.profile = 'x': no [profiles.x]" in mergewright("config", "check").err
