"""The adapter of Claude Code: its launch, and reading its files."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lifecycle.model.status import Activity
from runtimes.agents.base import AgentType, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.claude import Claude
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen
from tests.runtimes.agents.fake_claude import KIND, NOW, hook, status, transcript
from tests.runtimes.agents.launches import command_line


@pytest.fixture
def launch(files: RunFiles) -> LaunchSpec:
    return Claude(KIND).prepare(files, "Do it.", "")


@pytest.fixture
def reader(files: RunFiles, launch: LaunchSpec) -> Reader:
    return Claude(KIND).reader(files)


def option(launch: LaunchSpec, name: str) -> str:
    return command_line(launch)[command_line(launch).index(name) + 1]


def test_the_first_run_chooses_a_conversation_id_and_passes_the_prompt_last(
    files: RunFiles, launch: LaunchSpec
) -> None:
    assert command_line(launch)[0] == "claude"
    assert option(launch, "--session-id") == launch.native_id
    assert option(launch, "--model") == "opus"
    assert option(launch, "--permission-mode") == "bypassPermissions"
    assert command_line(launch)[-3:] == ("--verbose", "--", "Do it.")
    assert launch.env["CLAUDE_CONFIG_DIR"].startswith(str(files.home))


def test_the_system_prompt_is_an_option_of_every_run(files: RunFiles, launch: LaunchSpec) -> None:
    limited = Claude(KIND).prepare(files, "Do it.", "", RunLimits(system="Be kind."))
    assert option(limited, "--append-system-prompt") == "Be kind."
    assert "--append-system-prompt" not in command_line(launch)


def test_preparing_again_keeps_the_conversation_id(files: RunFiles, launch: LaunchSpec) -> None:
    assert Claude(KIND).prepare(files, "Do it.", "") == launch


def test_a_known_conversation_is_resumed_and_an_unknown_one_begins_a_new_one(
    files: RunFiles,
) -> None:
    gone = Claude(KIND).prepare(files, "Go on.", "6b0d0d2e-0000-4000-8000-000000000000")
    assert "--resume" not in command_line(gone)
    (files.dir / "conversation").unlink()
    transcript(files, gone)
    again = Claude(KIND).prepare(files, "Go on.", gone.native_id)
    assert option(again, "--resume") == gone.native_id
    assert "--session-id" not in command_line(again)


@pytest.mark.parametrize(
    ("mode", "own"), [("auto", "bypassPermissions"), ("confirm", "default"), ("reject", "dontAsk")]
)
def test_permission_modes_map_to_the_programs_own(files: RunFiles, mode: str, own: str) -> None:
    kind = AgentType(program="claude", permission_mode=mode)
    assert option(Claude(kind).prepare(files, "x", ""), "--permission-mode") == own


def test_startup_dialogs_are_answered_in_advance_and_other_state_is_kept(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789-0123456789")
    bare = files.workspace.parent / "repository.git"
    bare.mkdir()
    own = files.home / ".claude" / ".claude.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"theme": "dark"}')
    kind = AgentType(program="claude", pass_env=("ANTHROPIC_API_KEY",))
    Claude(kind).prepare(files, "x", "")
    answers = json.loads(own.read_text())
    assert answers["theme"] == "dark"
    assert answers["hasCompletedOnboarding"]
    assert not answers["diffSidebarOpen"]
    assert answers["projects"][str(bare)]["hasTrustDialogAccepted"]
    assert answers["customApiKeyResponses"]["approved"] == ["0123456789-0123456789"[-20:]]
    assert own.stat().st_mode & 0o777 == 0o600


def test_a_prompt_too_long_for_an_argument_is_read_from_its_file(files: RunFiles) -> None:
    launch = Claude(KIND).prepare(files, "ä" * 60_000, "")
    assert len(command_line(launch)[-1]) < 1000
    assert str(files.prompt) in command_line(launch)[-1]
    settings = json.loads((files.inputs / "claude-settings.json").read_text())
    assert f"Read(/{files.prompt})" in settings["permissions"]["allow"]
    assert not settings["promptSuggestionEnabled"]


def test_the_pull_requests_text_is_written_without_a_permission(
    files: RunFiles, launch: LaunchSpec
) -> None:
    settings = json.loads((files.inputs / "claude-settings.json").read_text())
    assert f"Edit(/{launch.env['MERGEWRIGHT_SUMMARY_FILE']})" in settings["permissions"]["allow"]


def test_a_hook_appends_one_line_and_prints_nothing(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    called = hook(files, launch, "UserPromptSubmit", prompt='it\'s "mw-1" \\n $(id) `id` %s\nend')
    assert (called.returncode, called.stdout, called.stderr) == (0, "", "")
    (line,) = files.spool.read_text().splitlines()
    assert json.loads(line)["hook"]["prompt"] == 'it\'s "mw-1" \\n $(id) `id` %s\nend'
    assert reader.received("mw-1")
    assert not reader.received("mw-2")


def test_a_failing_hook_exits_with_zero(files: RunFiles, launch: LaunchSpec) -> None:
    files.spool.mkdir()
    called = hook(files, launch, "Stop")
    assert (called.returncode, called.stdout, called.stderr) == (0, "", "")


def test_a_message_is_received_if_only_the_transcript_contains_it(
    files: RunFiles, launch: LaunchSpec, reader: Reader
) -> None:
    transcript(files, launch, {"type": "user", "message": {"content": "do mw-1"}})
    assert reader.received("mw-1")
    assert not reader.received("mw-2")


def test_a_status_file_of_a_dead_process_is_ignored(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "UserPromptSubmit")
    status(files, launch, "idle", start="1")
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    status(files, launch, "idle")
    assert reader.read(alive, None, NOW).activity is Activity.READY


def test_a_status_file_of_another_conversation_is_ignored(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    status(files, launch, "busy", sessionId="other")
    assert reader.read(alive, None, NOW).activity is Activity.NONE


def test_a_status_file_may_change_its_conversation_or_its_name(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    def readings(path: Path, word: str, name: str, **more: Any) -> list[Activity]:
        """Write the status file as `name`, modified in 1970; read the agent's activity twice."""
        written = status(files, launch, word, **more).rename(path.with_name(name))
        os.utime(written, (0, len(name)))
        return [reader.read(alive, None, NOW).activity for _ in range(2)]

    path = status(files, launch, "busy")
    assert readings(path, "busy", "1.json") == [Activity.ACTIVE] * 2
    assert readings(path, "waiting", "1.json", sessionId="another") == [Activity.ACTIVE] * 2
    assert readings(path, "waiting", "1.json") == [Activity.WAITING_INPUT] * 2
    path.with_name("1.json").unlink()
    assert readings(path, "busy", "22.json") == [Activity.ACTIVE] * 2


@pytest.mark.parametrize(
    "content", ["", "[", "null", '{"more":' + "[" * 5000, '{"pid":"x"}', "\x00"]
)
def test_a_malformed_status_file_changes_nothing(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen, content: str
) -> None:
    path = status(files, launch, "busy")
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    path.write_text(content)
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE


def test_a_dialog_without_a_hook_is_described_by_the_status_file(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    status(files, launch, "waiting", waitingFor="dialog open")
    assert reader.read(alive, None, NOW).question == "It waits: dialog open."


def test_progress_is_the_newest_record_or_status(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    earlier, latest = (NOW + timedelta(seconds=each) for each in (10, 20))
    for at in (latest, earlier):
        transcript(files, launch, {"type": "system", "timestamp": at.isoformat()})
    status(files, launch, "busy")
    assert reader.read(alive, None, NOW).seen == latest


def test_an_impossible_time_changes_nothing(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    status(files, launch, "busy", statusUpdatedAt=1e300)
    assert reader.read(alive, None, NOW).activity is Activity.NONE
    transcript(files, launch, {"type": "user", "timestamp": "2026-11-21T09:44:42"})
    assert reader.read(alive, None, NOW).activity is Activity.NONE


def test_a_late_hook_of_an_earlier_run_is_ignored(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "UserPromptSubmit", run=1)
    with files.spool.open("a") as file:
        file.write("odd\n")
    status(files, launch, "idle")
    assert reader.read(alive, None, NOW).activity is Activity.NONE


def test_a_turn_has_ended_once_its_error_would_be_recorded(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "UserPromptSubmit")
    status(files, launch, "busy")
    reader.read(alive, None, NOW)
    status(files, launch, "idle", ago=0.1)
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    hook(files, launch, "StopFailure", error="server_error")
    agent = reader.read(alive, None, NOW + timedelta(seconds=1))
    assert agent.activity is Activity.BLOCKED
    assert agent.error == "server_error"
    hook(files, launch, "StopFailure", error="server_error", last_assistant_message="It broke.")
    assert reader.read(alive, None, NOW + timedelta(seconds=1)).error == "It broke."


def test_an_idle_status_from_before_the_prompt_does_not_end_the_turn(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    ago = (NOW - datetime.now(UTC)).total_seconds()
    hook(files, launch, "UserPromptSubmit")
    status(files, launch, "idle", ago=ago)
    assert reader.read(alive, None, NOW).activity is Activity.NONE  # Hooks record whole seconds.
    transcript(files, launch, {"type": "user", "message": {"content": "go"}})
    assert reader.read(alive, None, NOW).activity is Activity.NONE
    status(files, launch, "idle", ago=ago - 60)  # An interruption calls no hook.
    assert reader.read(alive, None, NOW).activity is Activity.READY


def test_a_turn_of_less_than_a_second_has_ended(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, launch, "UserPromptSubmit")
    hook(files, launch, "Stop", last_assistant_message="Done.")
    status(files, launch, "idle", ago=(NOW - datetime.now(UTC)).total_seconds())
    assert reader.read(alive, None, NOW).activity is Activity.READY


def test_an_error_lasts_until_the_next_prompt_or_a_successful_turn(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    ago = (NOW - datetime.now(UTC)).total_seconds()
    for event, after in (("UserPromptSubmit", 60), ("Stop", 0)):
        hook(files, launch, "UserPromptSubmit")
        hook(files, launch, "StopFailure", error="server_error")
        status(files, launch, "idle", ago=ago)
        assert reader.read(alive, None, NOW).error == "server_error", "it took no second"
        hook(files, launch, event)
        status(files, launch, "idle", ago=ago - after)
        assert reader.read(alive, None, NOW).activity is Activity.READY


@pytest.mark.parametrize(
    ("tool", "given", "question"),
    [
        ("ExitPlanMode", {"plan": "Do it."}, "May I continue with this plan? Do it."),
        ("ExitPlanMode", {}, "May I continue with this plan?"),
        (
            "Poll",
            {"questions": [{"question": "?"}]},
            "May I use Poll? (Yes / Always / No)",
        ),
        ("AskUserQuestion", {"questions": [{"question": "Which?"}]}, "Which?"),
    ],
)
def test_requests_are_described_in_words(
    files: RunFiles,
    launch: LaunchSpec,
    reader: Reader,
    alive: Seen,
    tool: str,
    given: object,
    question: str,
) -> None:
    call = {"type": "tool_use", "id": "t1"}
    transcript(files, launch, {"type": "assistant", "message": {"content": [call]}})
    status(files, launch, "busy")
    assert reader.read(alive, None, NOW).calling
    hook(files, launch, "PermissionRequest", tool_name=tool, tool_input=given)
    status(files, launch, "waiting")
    agent = reader.read(alive, None, NOW)
    assert (agent.question, agent.calling) == (question, False)


def test_an_error_lasts_until_the_next_prompt(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    text = [{"type": "odd"}, {"type": "text", "text": "You've hit your limit · resets 3pm"}]
    error = {"type": "assistant", "isApiErrorMessage": True, "message": {"content": text}}
    transcript(files, launch, {"type": "user", "message": {"content": "go"}}, error)
    status(files, launch, "idle")
    agent = reader.read(alive, None, NOW)
    assert agent.activity is Activity.BLOCKED
    assert agent.error == "You've hit your limit · resets 3pm"
    transcript(files, launch, {"type": "user", "message": {"content": "go on"}})
    assert reader.read(alive, None, NOW).activity is Activity.READY


def test_an_error_of_an_earlier_run_is_ignored(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    old = {"isApiErrorMessage": True, "timestamp": "2026-01-01T00:00:00Z"}
    transcript(files, launch, {"type": "assistant", "message": {"content": "no"}, **old})
    hook(files, launch, "UserPromptSubmit")
    status(files, launch, "idle")
    assert reader.read(alive, None, NOW).activity is Activity.READY


def test_a_long_tool_call_counts_as_calling(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    call = {"type": "tool_use", "id": "t1"}
    transcript(files, launch, {"type": "assistant", "message": {"content": [call]}})
    status(files, launch, "busy", ago=900)
    later = NOW + timedelta(hours=1)
    agent = reader.read(alive, None, later)
    assert agent.calling
    assert agent.seen
    assert agent.seen < later - timedelta(minutes=30)
    result = {"type": "tool_result", "tool_use_id": "t1"}
    transcript(files, launch, {"type": "user", "message": {"content": [result]}})
    assert not reader.read(alive, None, later).calling
    calls = [{"content": [{"type": "tool_use", "id": call}]} for call in ("t2", "t3")]
    transcript(files, launch, *({"type": "assistant", "message": each} for each in calls))
    result["tool_use_id"] = "t3"
    transcript(files, launch, {"type": "user", "message": {"content": [result]}})
    progress = {"type": "tool_progress", "tool_use_id": "t2"}
    transcript(files, launch, {"type": "user", "message": {"content": [progress]}})
    transcript(files, launch, {"type": "assistant", "message": {"content": "Meanwhile."}})
    assert reader.read(alive, None, later).calling, "one of them has not returned"


def test_an_interrupted_call_counts_neither_while_idle_nor_in_the_next_turn(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    call = {"type": "tool_use", "id": "t1"}
    transcript(files, launch, {"type": "user", "message": {"content": "Do it."}})
    transcript(files, launch, {"type": "assistant", "message": {"content": [call]}})
    status(files, launch, "busy", ago=1000)
    assert reader.read(alive, None, NOW).calling
    status(files, launch, "idle", ago=950)
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.calling) == (Activity.READY, False)
    transcript(files, launch, {"type": "user", "message": {"content": "something else"}})
    status(files, launch, "busy", ago=900)
    assert not reader.read(alive, None, NOW + timedelta(hours=1)).calling


def test_an_exit_overrides_the_files(
    files: RunFiles, launch: LaunchSpec, reader: Reader, dead: Seen
) -> None:
    status(files, launch, "busy")
    agent = reader.read(dead, None, NOW)
    assert agent.activity is Activity.EXITED
    assert agent.exit
    assert agent.exit.tail == "last words"
    assert agent.native_id == launch.native_id


def test_start_problems_are_reported_with_remedies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    program = tmp_path / "claude"
    missing, credentials, root = Claude(AgentType(program="claude")).check({"PATH": str(tmp_path)})
    assert "npm install" in missing
    assert "`key` of the agent type" in credentials
    assert "IS_SANDBOX" in root
    program.touch(0o755)
    kind = AgentType(program="claude", permission_mode="confirm", pass_env=("ANTHROPIC_API_KEY",))
    environ = {"PATH": str(tmp_path), "ANTHROPIC_API_KEY": "x"}
    assert Claude(kind).check(environ) == []


def test_the_version_is_the_number_it_prints(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho '2.1.329 (Claude Code)'\n")
    program.chmod(0o755)
    assert Claude(AgentType(program="claude", command=(str(program),))).version() == "2.1.329"
    with pytest.raises(FileNotFoundError, match="npm install"):
        Claude(AgentType(program="claude", command=("no-such-claude",))).version()
