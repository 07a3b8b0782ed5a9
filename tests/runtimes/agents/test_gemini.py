"""The adapter of Gemini CLI: its launch, and reading its hooks and transcripts."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lifecycle.model.status import Activity
from runtimes.agents.base import AgentType, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.gemini import Gemini
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen
from tests.runtimes.agents.launches import command_line

KIND = AgentType(program="gemini", model="pro", args=("--debug",))
#: When the run begins: a test may run long after its collection.
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def launch(files: RunFiles) -> LaunchSpec:
    prepared = Gemini(KIND).prepare(files, "Do it.", "")
    os.utime(files.conversation, (NOW.timestamp(), NOW.timestamp()))
    return prepared


@pytest.fixture
def reader(files: RunFiles, launch: LaunchSpec) -> Reader:
    return Gemini(KIND).reader(files)


def settings(files: RunFiles) -> dict[str, Any]:
    return dict(json.loads((files.home / ".gemini" / "settings.json").read_text()))


def hook(files: RunFiles, event: str, *, run: int = 2, after: float = 0, **more: object) -> str:
    """Call a hook by its prepared command line."""
    line = settings(files)["hooks"][event][0]["hooks"][0]["command"]
    at = (NOW + timedelta(seconds=after)).isoformat()
    payload = {"session_id": "s", "hook_event_name": event, "timestamp": at, **more}
    done = subprocess.run(["sh", "-c", line.replace('"run":2', f'"run":{run}')], text=True,
                          input=json.dumps(payload) + "\n", capture_output=True)  # fmt: skip
    assert done.returncode == 0
    return done.stdout + done.stderr


def record(files: RunFiles, id: str, kind: str, *, after: float = 1, **more: object) -> Path:
    native = files.conversation.read_text()
    name = f"session-2026-11-21T09-55-{native[:8]}.jsonl"
    path = files.home / ".gemini" / "tmp" / "checkout" / "chats" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    at = (NOW + timedelta(seconds=after)).isoformat()
    with path.open("a") as file:
        file.write(json.dumps({"id": id, "timestamp": at, "type": kind, **more}) + "\n")
    return path


def asks(files: RunFiles) -> None:
    """Let the second of two tool calls wait for a permission."""
    hook(files, "BeforeAgent", prompt="go")
    hook(files, "BeforeTool", after=1, tool_name="read_file", tool_input={"file_path": "a"})
    hook(files, "BeforeTool", after=1, tool_name="shell", tool_input={"command": "make"})
    hook(files, "Notification", after=2, notification_type="ToolPermission")


def test_the_first_run_chooses_a_conversation_id_and_passes_the_prompt_last(
    files: RunFiles, launch: LaunchSpec
) -> None:
    assert command_line(launch)[:3] == ("gemini", "--session-id", launch.native_id)
    assert command_line(launch)[-2:] == ("--debug", "--prompt-interactive=Do it.")
    assert command_line(launch)[command_line(launch).index("--model") + 1] == "pro"
    assert Gemini(KIND).prepare(files, "Do it.", "") == launch


def test_a_known_conversation_is_resumed_and_an_unknown_one_begins_a_new_one(
    files: RunFiles,
) -> None:
    gone = Gemini(KIND).prepare(files, "Go on.", "6b0d0d2e-0000-4000-8000-000000000000")
    assert "--resume" not in command_line(gone)
    path = record(files, "1", "user")
    files.conversation.unlink()
    again = Gemini(KIND).prepare(files, "Go on.", gone.native_id)
    assert command_line(again)[1:3] == ("--resume", gone.native_id)
    assert Gemini(KIND).records(files) == [path]


@pytest.mark.parametrize(
    ("mode", "own"), [("auto", "yolo"), ("confirm", "default"), ("reject", "plan")]
)
def test_permission_modes_map_to_the_programs_own(files: RunFiles, mode: str, own: str) -> None:
    argv = command_line(
        Gemini(AgentType(program="gemini", permission_mode=mode)).prepare(files, "x", "")
    )
    assert argv[argv.index("--approval-mode") + 1] == own


def test_the_settings_sign_in_and_disable_updates_and_session_deletion(
    files: RunFiles,
) -> None:
    kind = AgentType(program="gemini", env={"GEMINI_API_KEY": "k"})
    Gemini(kind).prepare(files, "x", "", RunLimits(system="Be kind."))
    config = settings(files)
    assert config["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert not config["security"]["folderTrust"]["enabled"]
    assert not config["general"]["enableAutoUpdate"]
    assert not config["general"]["sessionRetention"]["enabled"]
    assert (files.home / ".gemini" / "GEMINI.md").read_text() == "Be kind."
    Gemini(KIND).prepare(files, "x", "")
    assert settings(files)["security"]["auth"] == {}
    assert (files.home / ".gemini" / "GEMINI.md").read_text() == ""


def test_a_hook_appends_one_line_and_prints_nothing(
    files: RunFiles, launch: LaunchSpec, reader: Reader
) -> None:
    assert hook(files, "BeforeAgent", prompt='it\'s "mw-1" $(id) %s\nend') == ""
    assert reader.received("mw-1")
    assert not reader.received("mw-2")
    record(files, "1", "user", content="mw-2")
    assert reader.received("mw-2")


def test_a_late_hook_of_an_earlier_run_is_ignored(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, "BeforeAgent", run=1)
    with files.spool.open("a") as file:
        file.write("odd\n")
    assert reader.read(alive, None, NOW).activity is Activity.NONE


def test_only_the_same_tool_call_or_the_next_prompt_ends_waiting(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    asks(files)
    agent = reader.read(alive, None, NOW)
    assert agent.activity is Activity.WAITING_INPUT
    assert agent.question == "May I use shell? make"
    assert agent.since == agent.seen == NOW + timedelta(seconds=2)
    hook(files, "Notification", after=3, notification_type="Other")
    hook(files, "AfterTool", after=3, tool_name="read_file", tool_input={"file_path": "a"})
    assert reader.read(alive, None, NOW).activity is Activity.WAITING_INPUT
    hook(files, "AfterTool", after=4, tool_name="shell", tool_input={"command": "make"})
    hook(files, "Notification", after=4, notification_type="Other")
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.calling) == (Activity.ACTIVE, False)
    asks(files)
    hook(files, "BeforeAgent", after=5)
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.calling) == (Activity.ACTIVE, False)


@pytest.mark.parametrize(
    ("tool", "given", "question"),
    [
        ("", None, "May I use a tool?"),
        ("shell", ["odd"], "May I use shell?"),
        ("poll", {"questions": [{"question": "?"}]}, "May I use poll?"),
        ("ask_user", {"questions": [{"question": "Which?"}]}, "Which?"),
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
    hook(files, "BeforeAgent", after=1)
    hook(files, "Notification", notification_type="Other")
    assert reader.read(alive, None, NOW).seen == NOW + timedelta(seconds=1)
    if tool:
        hook(files, "BeforeTool", tool_name=tool, tool_input=given)
    hook(files, "Notification", notification_type="ToolPermission")
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.question) == (Activity.WAITING_INPUT, question)


@pytest.mark.parametrize(
    ("error", "unauthorised"),
    [
        ("[API Error: 403]", True),
        ("[API Error: API key not valid.]", True),
        ("[API Error: UNAUTHENTICATED]", True),
        ("[API Error: 4010 tokens]", False),
    ],
)
def test_a_rejected_key_or_login_is_unauthorised(
    files: RunFiles,
    launch: LaunchSpec,
    reader: Reader,
    alive: Seen,
    error: str,
    unauthorised: bool,
) -> None:
    hook(files, "BeforeAgent")
    record(files, "1", "error", content=error)
    hook(files, "AfterAgent", after=2)
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.unauthorised) == (Activity.BLOCKED, unauthorised)


def test_a_screen_without_the_dialog_ends_waiting_once_it_is_current(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    asks(files)
    later = NOW + timedelta(seconds=9)
    assert reader.read(alive, "$ make", NOW).activity is Activity.WAITING_INPUT
    assert reader.read(alive, "", later).activity is Activity.WAITING_INPUT
    agent = reader.read(alive, "1. a list of its own", later)
    assert (agent.activity, agent.calling) == (Activity.ACTIVE, True)
    screen = "Tips:\n1. Read.\n2. Think.\n╭─╮\n│ Go? │\n│ ● 1. Yes │\n│   2. No  │"
    assert reader.read(alive, screen, later).question.endswith("make (Yes / No)")


def test_a_dialog_without_a_hook_counts_once_it_is_newer_than_the_hooks(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    screen = " ╭─╮\n │ Loop? │\n │ ● 1. Go on │\n │   2. Stop │\n ╰─╯"
    began = reader.read(alive, screen, NOW)
    assert began.run == files.run
    assert (began.activity, began.question) == (Activity.WAITING_INPUT, "Loop? (Go on / Stop)")
    hook(files, "BeforeAgent")
    hook(files, "BeforeTool", tool_name="shell", tool_input={"command": "make"})
    soon, later = NOW + timedelta(seconds=3), NOW + timedelta(seconds=4)
    assert reader.read(alive, screen, soon).calling
    agent = reader.read(alive, screen, later)
    assert (agent.activity, agent.calling) == (Activity.WAITING_INPUT, False)
    assert reader.read(alive, screen, later + timedelta(minutes=9)).since == later
    record(files, "1", "error", content="[API Error: 401 Please retry in 9s.]")
    hook(files, "AfterAgent", after=1)
    agent = reader.read(alive, screen.replace("Loop", "Login"), later + timedelta(minutes=9))
    assert (agent.activity, agent.question) == (Activity.WAITING_INPUT, "Login? (Go on / Stop)")
    assert (agent.error, agent.limit_until, agent.unauthorised) == ("", None, False)
    assert agent.since == later + timedelta(minutes=9)
    for words in ("x · Enter to submit", "Enter to submit · Esc to cancel"):
        there = reader.read(alive, f"╭─╮\n│ ● 0. All │\n│ {words} │", later)
        assert there.activity is Activity.BLOCKED
    over = reader.read(alive, f"{screen}\n *   Type your message", later)
    assert (over.activity, over.unauthorised) == (Activity.BLOCKED, True)
    assert over.limit_until == NOW + timedelta(seconds=10)


def test_a_turn_ends_by_hook_or_cancellation_and_an_error_blocks_only_its_turn(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    hook(files, "BeforeAgent")
    record(files, "0", "gemini", content="ok")
    record(files, "0", "gemini", content=[{"text": "of history"}])
    record(files, "1", "error", content="[API Error: 401]")
    hook(files, "AfterAgent", after=60)
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.error) == (Activity.BLOCKED, "[API Error: 401]")
    assert (agent.unauthorised, agent.summary) == (True, "ok")
    hook(files, "BeforeAgent", after=90)
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    record(files, "2", "info", content="This request failed.", after=100)
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    record(files, "3", "gemini", content="Request cancelled.", after=100)
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    record(files, "3", "info", content="Request cancelled.", after=100)
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.error, agent.unauthorised) == (Activity.READY, "", False)
    hook(files, "BeforeAgent", after=200)
    record(files, "4", "error", content="[API Error: 500]", after=210)
    hook(files, "AfterAgent", after=220)
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.unauthorised) == (Activity.BLOCKED, False)


def test_a_response_counts_once_with_its_last_record_in_its_run(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    used = {"input": 1200, "output": 42, "cached": 800, "thoughts": 7, "total": 1249}
    record(files, "0", "gemini", tokens=used, after=-3600)
    record(files, "1", "gemini", tokens={**used, "output": 1})
    record(files, "1", "gemini", tokens=used)
    record(files, "1", "gemini", tokens=None)
    path = record(files, "2", "user", tokens=used)
    stub = path.with_name(path.name.replace("09-55", "10-16"))
    stub.write_text(json.dumps({"id": "3", "timestamp": NOW.isoformat(), "type": "x"}) + "\nodd\n")
    usage = reader.read(alive, None, NOW).usage
    assert (usage.input, usage.output, usage.cache_read, usage.reasoning) == (400, 42, 800, 7)
    assert usage.cost_usd is None


def test_an_exit_overrides_the_files(
    files: RunFiles, launch: LaunchSpec, reader: Reader, dead: Seen
) -> None:
    hook(files, "BeforeAgent")
    agent = reader.read(dead, None, NOW)
    assert (agent.activity, agent.exit) == (Activity.EXITED, dead.exit)
    assert agent.native_id == launch.native_id


def test_start_problems_are_reported_with_remedies(tmp_path: Path) -> None:
    absent, credentials = Gemini(AgentType(program="gemini")).check({"PATH": str(tmp_path)})
    assert "npm install" in absent
    assert "`key` of the agent type" in credentials
    program = tmp_path / "gemini"
    program.write_text("#!/bin/sh\necho 0.61.0\n")
    program.chmod(0o755)
    kind = AgentType(program="gemini", command=(str(program),), pass_env=("GEMINI_API_KEY",))
    assert Gemini(kind).check({"GEMINI_API_KEY": "x"}) == []
    assert Gemini(kind).version() == "0.61.0"
