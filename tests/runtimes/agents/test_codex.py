"""The adapter of Codex: its launch, and reading its rollout and hooks."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lifecycle.model.status import Activity
from runtimes.agents.base import AgentType, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.codex import Codex
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen
from tests.runtimes.agents.fake_codex import (
    ID,
    KIND,
    SPENT,
    call,
    complete,
    hook,
    limited,
    returned,
    rollout,
    settings,
    spent,
    started,
)
from tests.runtimes.agents.launches import command_line

NOW = datetime.now(UTC)


@pytest.fixture
def launch(files: RunFiles) -> LaunchSpec:
    return Codex(KIND).prepare(files, "Do it.", "")


@pytest.fixture
def reader(files: RunFiles, launch: LaunchSpec) -> Reader:
    return Codex(KIND).reader(files)


@pytest.fixture
def asking(files: RunFiles, launch: LaunchSpec) -> None:
    """Let one of two calls wait for a permission."""
    use = {"command": "make"}
    hook(files, launch, "UserPromptSubmit", prompt="go")
    hook(files, launch, "PreToolUse", tool_use_id="c1", tool_name="Bash", tool_input=use)
    more = {**use, "description": "why"}
    hook(files, launch, "PermissionRequest", tool_name="Bash", tool_input=more)
    rollout(files, started(), call("c1"), call("c2"))


def test_codex_is_started_without_its_daemon_and_with_the_prompt_last(launch: LaunchSpec) -> None:
    assert command_line(launch)[:2] == ("codex", "--no-daemon")
    assert command_line(launch)[-3:] == ("--search", "--", "Do it.")
    assert command_line(launch)[command_line(launch).index("--model") + 1] == "gpt-5.1-codex"
    assert launch.native_id == ""
    config = settings(launch)
    assert not config["features"]["daemon_auto_start"]
    assert not config["check_for_update_on_startup"]


def test_startup_dialogs_are_answered_in_advance(files: RunFiles) -> None:
    bare = files.workspace.parent / "repository.git"
    bare.mkdir()
    launch = Codex(KIND).prepare(files, "x", "")
    assert settings(launch)["projects"][str(bare)]["trust_level"] == "trusted"
    assert settings(launch)["notice"]["hide_rate_limit_model_nudge"]
    assert "--dangerously-bypass-hook-trust" in command_line(launch)


def test_the_system_prompt_is_a_setting(files: RunFiles, launch: LaunchSpec) -> None:
    limited = Codex(KIND).prepare(files, "Do it.", "", RunLimits(system='Be "kind",\n\\n ä.'))
    assert settings(limited)["developer_instructions"] == 'Be "kind",\n\\n ä.'
    assert "developer_instructions" not in settings(launch)


@pytest.mark.parametrize(
    ("mode", "own"),
    [
        ("auto", "--dangerously-bypass-approvals-and-sandbox"),
        ("confirm", "on-request"),
        ("reject", "never"),
    ],
)
def test_permission_modes_map_to_the_programs_own(files: RunFiles, mode: str, own: str) -> None:
    launch = Codex(AgentType(program="codex", permission_mode=mode)).prepare(files, "x", "")
    assert own in command_line(launch)


def test_the_sandbox_allows_commits_and_the_pull_requests_text(
    files: RunFiles, launch: LaunchSpec
) -> None:
    def writable(launch: LaunchSpec) -> list[str]:
        roots: list[str] = settings(launch)["sandbox_workspace_write"]["writable_roots"]
        return roots

    assert writable(launch) == [str(files.workspace / ".git"), str(files.summary.parent)]
    bare = files.workspace.parent / "repository.git"
    bare.mkdir()
    # The agent can write this file, so it does not count.
    (files.workspace / ".git").write_text("gitdir: /srv/secrets/worktrees/a\n")
    worktrees = Codex(KIND).prepare(files, "x", "")
    # Naming a file here breaks the sandbox, which protects the worktree's own folder by itself.
    own, common = f"{bare}/worktrees/checkout", str(bare)
    assert writable(worktrees) == [own, common, str(files.summary.parent)]


def test_the_key_is_only_in_the_programs_own_folder(files: RunFiles) -> None:
    kind = AgentType(program="codex", env={"OPENAI_API_KEY": "sk-1"})
    launch = Codex(kind).prepare(files, "x", "")
    key = files.home / ".codex" / "auth.json"
    assert json.loads(key.read_text()) == {"OPENAI_API_KEY": "sk-1"}
    assert key.stat().st_mode & 0o777 == 0o600
    assert launch.env["CODEX_HOME"] == str(key.parent)
    assert "sk-1" not in " ".join(command_line(launch))


def test_a_known_conversation_is_resumed_and_an_unknown_one_begins_a_new_one(
    files: RunFiles,
) -> None:
    gone = Codex(KIND).prepare(files, "Go on.", ID)
    assert "resume" not in command_line(gone)
    files.conversation.unlink()
    rollout(files, started())
    again = Codex(KIND).prepare(files, "Go on.", ID)
    assert command_line(again)[1] == "resume"
    assert command_line(again)[-3:] == ("--", ID, "Go on.")
    assert again.native_id == ID
    assert Codex(KIND).prepare(files, "Go on.", ID) == again
    assert Codex(KIND).records(files) == [rollout(files)]


def test_a_prompt_too_long_for_an_argument_is_read_from_its_file(files: RunFiles) -> None:
    launch = Codex(KIND).prepare(files, "ä" * 60_000, "")
    assert str(files.prompt) in command_line(launch)[-1]
    assert len(command_line(launch)[-1]) < 1000


def test_a_hook_appends_one_line_prints_nothing_and_cannot_fail(
    files: RunFiles, launch: LaunchSpec, reader: Reader
) -> None:
    assert hook(files, launch, "UserPromptSubmit", prompt='it\'s "mw-1" \\n $(id) %s\nend') == ""
    (line,) = files.spool.read_text().splitlines()
    assert json.loads(line)["hook"]["prompt"] == 'it\'s "mw-1" \\n $(id) %s\nend'
    assert reader.received("mw-1")
    assert not reader.received("mw-2")
    files.spool.unlink()
    files.spool.mkdir()
    assert hook(files, launch, "UserPromptSubmit") == ""


def test_a_message_is_received_if_only_the_transcript_contains_it(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    rollout(files, {"type": "user_message", "message": "do mw-1"})
    assert not reader.received("mw-1")  # The conversation has no id yet.
    hook(files, launch, "SessionStart")
    assert reader.read(alive, None, NOW).native_id == ID
    assert reader.received("mw-1")
    assert not reader.received("mw-2")
    hook(files, launch, "SessionStart", session_id="another")  # Of a side conversation.
    assert reader.read(alive, None, NOW).native_id == ID


def test_a_late_hook_of_an_earlier_run_is_ignored(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "PermissionRequest", run=1, tool_name="Bash")
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.native_id) == (Activity.NONE, "")


@pytest.mark.usefixtures("asking")
def test_only_the_same_call_or_the_turns_end_ends_waiting(
    files: RunFiles, reader: Reader, alive: Seen
) -> None:
    agent = reader.read(alive, None, NOW)
    assert agent.activity is Activity.WAITING_INPUT
    assert agent.question == "May I use Bash? make"
    rollout(files, returned("c2"), complete("t0"))
    assert reader.read(alive, None, NOW).activity is Activity.WAITING_INPUT
    rollout(files, started(), returned("c1"))
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE


@pytest.mark.usefixtures("asking")
def test_a_finished_turn_waits_for_nothing(files: RunFiles, reader: Reader, alive: Seen) -> None:
    rollout(files, {"type": "turn_aborted", "turn_id": "t1"})
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.question) == (Activity.READY, "")


@pytest.mark.usefixtures("asking")
def test_a_screen_without_the_dialog_ends_waiting_once_it_is_current(
    reader: Reader, alive: Seen
) -> None:
    now = datetime.now(UTC)
    later = now + timedelta(seconds=5)
    assert reader.read(alive, "$ make", now).activity is Activity.WAITING_INPUT
    assert reader.read(alive, "", later).activity is Activity.WAITING_INPUT  # A failed capture.
    dialog = "make\n\n› 1. Yes\n  2. No\n\nPress enter to confirm"
    assert reader.read(alive, dialog, later).activity is Activity.WAITING_INPUT
    agent = reader.read(alive, "$ make", later)
    assert (agent.activity, agent.calling) == (Activity.ACTIVE, True)


def test_questions_wait_whatever_the_screen_shows(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "SessionStart")
    rollout(files, started(), call("c1", name="request_user_input", arguments="odd"))
    for screen in ("something", "Which?\n\n› 1. Red\n\nenter submit · esc cancel"):
        agent = reader.read(alive, screen, NOW + timedelta(hours=1))
        assert agent.activity is Activity.WAITING_INPUT
        assert agent.question == "a question that cannot be shown here; see the agent's terminal"


def test_a_dialog_without_a_hook_keeps_its_start_time(reader: Reader, alive: Seen) -> None:
    screen = "Sign in?\n\n› 1. With 1. and 2.\n  2. Not at all\n\nPress enter to continue"
    agent = reader.read(alive, screen, NOW)
    assert agent.question == "Sign in? (With 1. and 2. / Not at all)"
    assert reader.read(alive, screen, NOW + timedelta(seconds=9)).since == agent.since == NOW
    other = reader.read(alive, "Hi.\nPress enter to continue", NOW + timedelta(seconds=9))
    assert (other.question, other.since) == ("Press enter to continue", NOW + timedelta(seconds=9))
    assert reader.read(alive, f"{screen}\n\n› Ask", NOW).activity is Activity.NONE


def test_a_retry_is_reported_during_the_turn(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "SessionStart")
    rollout(files, started(), call("c1"))
    screen = "› Do it\n\n{} (3s • esc to interrupt)\n  └ Last status: 429\n\n› Ask\n"
    for line in ("• Reconnecting... 2/5", "◦ Server is busy, reconnecting 4/5"):
        agent = reader.read(alive, screen.format(line), NOW)
        assert (agent.activity, agent.calling) == (Activity.ACTIVE, True)
        assert agent.evidence == "the agent's screen says that it retries after: Last status: 429"
    endless = screen.format("• Reconnecting... 2/5").replace("429", "x" * 3000)
    assert len(reader.read(alive, endless, NOW).evidence) == 2000
    for other in (None, screen.format("• Working"), "• Reconnecting... 2/5 (3s)\n\n› Ask\n"):
        assert (
            reader.read(alive, other, NOW).evidence
            == "the agent's transcript ends with: task_started"
        )
    rollout(files, complete())
    over = reader.read(alive, screen.format("• Reconnecting... 2/5"), NOW)
    assert over.evidence == "the agent's transcript ends with: task_complete"


def test_a_turn_begins_and_ends_and_its_calls_end_with_it(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "SessionStart")
    rollout(files, started(), call("c1"))
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.calling) == (Activity.ACTIVE, True)
    rollout(files, returned("c1"), {"type": "web_search_call"}, {"type": "_call_", "call_id": "c"})
    assert not reader.read(alive, None, NOW).calling
    rollout(files, call("c2"), {"type": "turn_aborted", "turn_id": "t1"}, started("t2"))
    assert not reader.read(alive, None, NOW).calling
    rollout(files, complete("t2"))
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.summary) == (Activity.READY, "ok")


def test_records_of_earlier_runs_are_ignored(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "SessionStart")
    past = NOW - timedelta(hours=1)
    earlier = complete(error={"message": "no"}), started("t0")
    rollout(files, spent("r0", 1000), call("c0"), *earlier, at=past)
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.seen, agent.usage.input) == (Activity.NONE, None, 0)
    rollout(files, started(), spent("r1", 500), spent("r1", 500))
    agent = reader.read(alive, None, NOW)
    assert (agent.calling, agent.usage.input, agent.usage.cost_usd) == (False, 500, None)
    written = {"input_tokens": 9, "cache_write_input_tokens": 2}
    rollout(files, {**spent("r2", 0), "usage": written})
    usage = reader.read(alive, None, NOW).usage
    assert (usage.input, usage.cache_write) == (507, 2)
    assert Codex(KIND).reader(files).read(alive, None, NOW).usage == usage


def test_a_usage_limit_has_a_reset_time_if_one_was_reported(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "SessionStart")
    full = {"used_percent": 100.0, "resets_at": 1795258800}
    free = {"used_percent": 41.0, "resets_at": 1795600000}
    error = {"message": "You've hit your usage limit.", "codex_error_info": "usage_limit_exceeded"}
    rollout(files, started(), complete(error=error))
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.limit_until) == (Activity.BLOCKED, None)
    error_payload = {**error, "message": "You've hit your usage limit. Try again in 2h."}
    rollout(files, complete(error=error_payload))
    agent = reader.read(alive, None, NOW)
    assert agent.since
    assert agent.limit_until == agent.since + timedelta(hours=2), "only the message has the time"
    limits = {"primary": full, "secondary": free}
    rollout(files, limited(limits), limited(None), complete(error=error))
    agent = reader.read(alive, None, NOW)
    assert agent.limit_until == datetime.fromtimestamp(1795258800, UTC)
    assert agent.error == "You've hit your usage limit."
    limits["secondary"] = {"used_percent": 100.0}
    rollout(files, limited(limits), complete(error=error))
    assert reader.read(alive, None, NOW).limit_until == agent.limit_until
    limits["secondary"] = {**free, "used_percent": 99.2}
    many = {"response_too_many_failed_attempts": {"http_status_code": 429}}
    rollout(files, limited(limits), complete(error={"codex_error_info": many}))
    agent = reader.read(alive, None, NOW)
    assert agent.limit_until == datetime.fromtimestamp(1795600000, UTC)
    assert agent.error == "response_too_many_failed_attempts"
    rollout(files, complete(error={**error, "codex_error_info": "internal_server_error"}))
    assert reader.read(alive, None, NOW).limit_until is None
    rollout(files, complete(error={}))
    assert reader.read(alive, None, NOW).error == ""
    rollout(files, started())
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.error) == (Activity.ACTIVE, "")


@pytest.mark.parametrize(
    ("info", "unauthorised"),
    [
        ("unauthorized", True),
        ({"http_connection_failed": {"http_status_code": 401}}, True),
        ({"http_connection_failed": {"http_status_code": 403}}, True),
        ({"http_connection_failed": {"http_status_code": 500}}, False),
        ("internal_server_error", False),
        ({"odd": []}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_rejected_key_or_login_is_unauthorised(
    files: RunFiles,
    launch: LaunchSpec,
    reader: Reader,
    alive: Seen,
    info: object,
    unauthorised: bool,
) -> None:
    hook(files, launch, "SessionStart")
    rollout(files, started(), complete(error={"message": "no", "codex_error_info": info}))
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.unauthorised) == (Activity.BLOCKED, unauthorised)


def test_partial_and_malformed_lines_change_nothing(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "SessionStart")
    path = rollout(files, started())
    with path.open("a") as file:
        file.write('null\n[\n{"timestamp": "x"}\n{"payload": ' + "[" * 5000 + "\n")
        for kind in ("event_msg", "turn_context", SPENT, "response_item"):
            odd = {"timestamp": datetime.now(UTC).isoformat(), "type": kind, "payload": []}
            file.write(json.dumps(odd) + "\n")
        other = {"timestamp": datetime.now(UTC).isoformat(), "type": "world_state"}
        file.write(json.dumps({**other, "payload": call("c1")}) + '\n{"timestamp":')
    with files.spool.open("a") as file:
        file.write("odd\n")
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.calling) == (Activity.ACTIVE, False)


def test_an_exit_overrides_the_files(
    files: RunFiles, launch: LaunchSpec, reader: Reader, dead: Seen
) -> None:
    hook(files, launch, "SessionStart")
    rollout(files, started())
    agent = reader.read(dead, None, NOW)
    assert (agent.activity, agent.exit, agent.native_id) == (Activity.EXITED, dead.exit, ID)


def test_start_problems_are_reported_with_remedies(tmp_path: Path) -> None:
    absent, credentials = Codex(AgentType(program="codex")).check({"PATH": str(tmp_path)})
    assert "npm install" in absent
    assert "`key` of the agent type" in credentials
    (tmp_path / "codex").touch(0o755)
    kind = AgentType(program="codex", pass_env=("OPENAI_API_KEY",))
    assert Codex(kind).check({"PATH": str(tmp_path), "OPENAI_API_KEY": "x"}) == []
    kind = AgentType(program="codex", args=("-c", "model_provider=mine"))
    assert Codex(kind).check({"PATH": str(tmp_path)}) == []


def test_the_version_is_the_number_it_prints(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho 'codex-cli 0.169.0'\n")
    program.chmod(0o755)
    assert Codex(AgentType(program="codex", command=(str(program),))).version() == "0.169.0"
    with pytest.raises(FileNotFoundError, match="npm install"):
        Codex(AgentType(program="codex", command=("no-such-codex",))).version()
