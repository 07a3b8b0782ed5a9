"""The adapter of OpenCode: its launch, and reading its database and port."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lifecycle.model.status import Activity, Probe
from runtimes.agents.base import AgentType, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.opencode import OpenCode, port
from runtimes.agents.opencode import files as opencode_files
from runtimes.agents.opencode.reader import OpenCodeReader
from runtimes.base import Seen
from runtimes.files import write_private
from tests.runtimes.agents.fake_opencode import ID, Agent
from tests.runtimes.agents.fake_port import answering
from tests.runtimes.agents.launches import command_line
from tests.world.waiting import PATIENCE

KIND = AgentType(program="opencode", model="fake/model", args=("--pure",))
NOW = datetime.now(UTC)


@pytest.fixture
def launch(files: RunFiles) -> LaunchSpec:
    return OpenCode(KIND).prepare(files, "Do it.", "")


@pytest.fixture
def agent(files: RunFiles, launch: LaunchSpec) -> Iterator[Agent]:
    agent = Agent(files)
    with answering(agent.answers, "secret") as number:
        write_private(port.server_file(files), json.dumps({"port": number, "password": "secret"}))
        yield agent


@pytest.fixture
def reader(files: RunFiles, launch: LaunchSpec) -> OpenCodeReader:
    return OpenCode(KIND).reader(files)


def settings(launch: LaunchSpec) -> dict[str, Any]:
    return dict(json.loads(launch.env["OPENCODE_CONFIG_CONTENT"]))


def test_opencode_is_started_with_prompt_port_and_password(
    files: RunFiles, launch: LaunchSpec
) -> None:
    assert command_line(launch)[0] == "opencode"
    assert command_line(launch)[-2:] == ("--pure", "--prompt=Do it.")
    server = json.loads(port.server_file(files).read_text())
    assert command_line(launch)[command_line(launch).index("--port") + 1] == str(server["port"])
    assert launch.env["OPENCODE_SERVER_PASSWORD"] == server["password"]
    assert server["password"] not in " ".join(command_line(launch))
    assert port.server_file(files).stat().st_mode & 0o777 == 0o600
    assert launch.env["OPENCODE_DISABLE_AUTOUPDATE"] == "1"
    assert settings(launch)["model"] == "fake/model"
    assert settings(launch)["share"] == "disabled"
    assert OpenCode(KIND).prepare(files, "Do it.", "") == launch


@pytest.mark.parametrize(("mode", "word"), [("confirm", "ask"), ("reject", "deny")])
def test_permission_modes_map_to_the_programs_own(files: RunFiles, mode: str, word: str) -> None:
    own = json.dumps({"permission": {"bash": {"git *": "allow"}}, "theme": "dark"})
    env = {"OPENCODE_CONFIG_CONTENT": own}
    kind = AgentType(program="opencode", permission_mode=mode, env=env)
    config = settings(OpenCode(kind).prepare(files, "x", ""))
    assert config["permission"]["edit"] == word
    assert config["permission"]["bash"] == {"git *": "allow"}
    assert config["theme"] == "dark"


def test_the_default_permission_mode_allows_everything(launch: LaunchSpec) -> None:
    assert settings(launch)["permission"] == {"*": "allow"}


def test_the_system_prompt_is_an_instructions_file(files: RunFiles, launch: LaunchSpec) -> None:
    env = {"OPENCODE_CONFIG_CONTENT": '{"instructions": ["RULES.md"]}'}
    kind = AgentType(program="opencode", env=env)
    kindly = OpenCode(kind).prepare(files, "x", "", RunLimits(system="Be kind."))
    own, added = settings(kindly)["instructions"]
    assert (own, Path(added).read_text()) == ("RULES.md", "Be kind.")
    assert "instructions" not in settings(launch)


def test_a_prompt_too_long_for_an_argument_is_read_from_its_file(files: RunFiles) -> None:
    assert str(files.prompt) in command_line(OpenCode(KIND).prepare(files, "ä" * 60_000, ""))[-1]


def test_a_known_conversation_is_resumed_and_an_unknown_one_begins_a_new_one(
    files: RunFiles,
) -> None:
    gone = OpenCode(KIND).prepare(files, "Go on.", ID)
    assert "--session" not in command_line(gone)
    files.conversation.unlink()
    agent = Agent(files)
    assert "--session" not in command_line(OpenCode(KIND).prepare(files, "Go on.", ID))
    files.conversation.unlink()
    agent.session()
    again = OpenCode(KIND).prepare(files, "Go on.", ID)
    assert command_line(again)[-2:] == ("--session", ID)
    assert again.native_id == ID
    assert OpenCode(KIND).records(files)[0] == opencode_files.database(files)


def test_the_first_message_of_a_resumed_conversation_is_posted_to_the_port(
    files: RunFiles, agent: Agent
) -> None:
    agent.session()
    messages = [{"parts": [{"type": "text", "text": "Go on: ä"}]}]
    agent.answers[f"/session/{ID}/message"] = messages
    files.conversation.unlink()
    kind = AgentType(program="opencode", command=("sleep",))
    launch = OpenCode(kind).prepare(files, "Go on: ä", ID)
    assert command_line(launch)[0] == str(Path(sys.executable).resolve())
    assert command_line(launch)[command_line(launch).index("--") + 1] == "sleep"
    place = command_line(launch).index("--")
    with subprocess.Popen((*command_line(launch)[:place], "--", "sleep", "60")) as program:
        asked = agent.answers["posted"].get(timeout=PATIENCE)
        program.kill()  # Its server process ends too.
    assert asked == (f"/session/{ID}/prompt_async", messages[0])


def test_a_message_is_received_when_the_conversation_contains_its_key(
    agent: Agent, reader: OpenCodeReader
) -> None:
    agent.session("ses_other", parent=ID)
    agent.session()
    agent.message("m1", "user")
    agent.part("m1", type="text", text="do mw-1")
    agent.part("m2", session="ses_other", type="text", text="do mw-2")
    assert reader.received("mw-1")
    assert not reader.received("mw-2")


def test_a_turn_begins_with_a_prompt_and_ends_with_a_response_without_calls(
    agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    seen = reader.read(alive, None, NOW)
    assert (seen.activity, seen.run) == (Activity.NONE, 2)
    agent.session()
    agent.message("m1", "user")
    seen = reader.read(alive, None, NOW)
    assert (seen.activity, seen.native_id) == (Activity.ACTIVE, ID)
    assert (seen.since, seen.run) == (datetime.fromtimestamp(agent.at / 1000, UTC), 2)
    agent.complete("m2", finish="tool-calls")
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    agent.complete("m3")
    agent.part("m3", type="text", text="All done.")
    seen = reader.read(alive, None, NOW)
    assert (seen.activity, seen.summary) == (Activity.READY, "All done.")


def test_a_pending_tool_call_counts_as_calling(
    agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    agent.session()
    agent.message("m1", "assistant")
    agent.part("m1", type="tool", tool="bash", state={"status": "completed"})
    assert not reader.read(alive, None, NOW).calling
    agent.part("m1", type="tool", tool="bash", state={"status": "pending"})
    assert reader.read(alive, None, NOW).calling
    agent.answers["/session/status"] = {ID: {"type": "retry", "attempt": 3}}
    assert not reader.read(alive, None, NOW).calling


def test_a_retry_is_kept_until_the_port_reports_a_change(
    files: RunFiles, agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    agent.session()
    agent.message("m1", "user")
    retry = {"type": "busy", "attempt": 3, "message": "Overloaded"}
    agent.answers["/session/status"] = {ID: retry}
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    retry["type"] = "retry"
    agent.answers["/question"] = [{}]
    seen = reader.read(alive, None, NOW)
    assert seen.activity is Activity.WAITING_INPUT
    assert seen.question == "a question that cannot be shown here; see the agent's terminal"
    agent.answers["/question"] = []
    assert reader.read(alive, None, NOW).activity is Activity.BLOCKED
    port.server_file(files).unlink()
    seen = reader.read(Seen(runtime=Probe.UNKNOWN, program=Probe.UNKNOWN), None, NOW)
    assert (seen.activity, seen.error) == (Activity.BLOCKED, "Overloaded")
    assert (seen.runtime, seen.program) == (Probe.UNKNOWN, Probe.UNKNOWN)


def test_pending_requests_come_from_the_port_and_are_kept_if_it_fails(
    files: RunFiles, agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    agent.session()
    agent.message("m1", "user")
    leave = {"permission": "bash", "metadata": {"command": "make"}}
    agent.answers["/permission"] = [leave]
    for _ in range(2):
        seen = reader.read(alive, None, NOW)
        assert seen.activity is Activity.WAITING_INPUT
        asks = "May I use bash? make (Allow once / Allow always / Reject)"
        assert seen.question == asks
        agent.answers["/permission"] = {"odd": []}
    agent.answers["/permission"] = [{"permission": "edit", "patterns": ["a.txt"]}]
    assert "use edit? a.txt" in reader.read(alive, None, NOW).question
    agent.answers["/permission"] = [{"permission": "edit", "metadata": {"filepath": "/b.txt"}}]
    assert "use edit? /b.txt" in reader.read(alive, None, NOW).question
    agent.answers["/permission"] = []
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    agent.answers["/permission"] = [leave]
    assert reader.read(alive, None, NOW).activity is Activity.WAITING_INPUT
    port.server_file(files).write_text("{}")
    assert reader.read(alive, None, NOW).activity is Activity.WAITING_INPUT
    agent.at += 1000
    agent.part("m1", type="tool", tool="bash", state={"status": "completed"})
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE


def test_a_subagents_conversation_ends_no_turn(
    agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    agent.session()
    agent.session("ses_child", parent=ID)
    agent.message("m1", "user")
    time = {"created": agent.at, "completed": agent.at}
    data = {"role": "assistant", "finish": "stop", "time": time}
    agent.write("message", "m2", "ses_child", agent.at, agent.at, json.dumps(data))
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE


def test_a_question_is_found_in_the_database_without_the_port(
    files: RunFiles, agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    port.server_file(files).unlink()
    agent.session()
    agent.message("m1", "assistant")
    agent.part("m1", type="tool", tool="bash", state={"status": "running"})
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    asks = [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]
    state = {"status": "running", "input": {"questions": asks}}
    agent.part("m1", type="tool", tool="question", state=state)
    assert reader.read(alive, None, NOW).question == "Which? (A / B)"
    agent.part("m1", type="tool", tool="question", state={"status": "pending"})
    agent.complete("m2")
    assert reader.read(alive, None, NOW).activity is Activity.READY


@pytest.mark.parametrize(
    ("message", "limited", "unauthorised"),
    [
        ("Rate limit exceeded", True, False),
        ("scripted 429", True, False),
        ("Invalid API key", False, True),
        ("scripted 401", False, True),
        ("Overloaded", False, False),
        ("Quota exceeded", True, False),
        ("Too Many Requests", True, False),
        ("Unauthorized", False, True),
        ("Authentication failed", False, True),
        ("AuthError", False, True),
    ],
)
def test_the_third_retry_blocks(
    agent: Agent,
    reader: OpenCodeReader,
    alive: Seen,
    message: str,
    limited: bool,
    unauthorised: bool,
) -> None:
    agent.session()
    agent.message("m1", "user")
    soon = int(NOW.timestamp() * 1000) + 60_000
    retry = {"type": "retry", "attempt": 2, "message": message, "next": soon}
    agent.answers["/session/status"] = {"ses_other": {**retry, "attempt": 9}}
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    agent.answers["/session/status"] = {ID: retry}
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    agent.answers["/session/status"] = {ID: {**retry, "attempt": 3}}
    seen = reader.read(alive, None, NOW)
    assert (seen.activity, seen.error) == (Activity.BLOCKED, message)
    assert (seen.limit_until is not None, seen.unauthorised) == (limited, unauthorised)
    if seen.limit_until:
        assert seen.limit_until.timestamp() * 1000 == soon


def test_a_long_retry_wait_blocks_at_once(
    agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    agent.session()
    agent.message("m1", "user")
    until = NOW + timedelta(hours=2)
    retry = {"type": "retry", "attempt": 1, "message": "Later", "next": until.timestamp() * 1000}
    agent.answers["/session/status"] = {ID: retry}
    seen = reader.read(alive, None, NOW)
    assert (seen.activity, seen.limit_until) == (Activity.BLOCKED, until)
    assert reader.read(alive, None, until).activity is Activity.ACTIVE


@pytest.mark.parametrize(
    ("error", "text", "unauthorised"),
    [
        ({"name": "MessageAbortedError"}, "", False),
        ({"name": "ProviderAuthError", "data": {"message": "no"}}, "no", True),
        ({"name": "APIError", "data": {"statusCode": 403}}, "APIError", True),
        ({"name": "MessageOutputLengthError"}, "MessageOutputLengthError", False),
    ],
)
def test_a_failed_response_blocks_unless_a_person_aborted_it(
    agent: Agent,
    reader: OpenCodeReader,
    alive: Seen,
    error: dict[str, object],
    text: str,
    unauthorised: bool,
) -> None:
    agent.session()
    agent.message("m1", "user")
    agent.complete("m2", finish="", error=error)
    seen = reader.read(alive, None, NOW)
    activity = Activity.BLOCKED if text else Activity.READY
    assert (seen.activity, seen.error, seen.unauthorised) == (activity, text, unauthorised)


def test_usage_of_this_run_counts_once(agent: Agent, reader: OpenCodeReader, alive: Seen) -> None:
    used = {"input": 400, "output": 35, "reasoning": 7, "cache": {"read": 800, "write": 1}}
    agent.session(at=1)
    agent.session("ses_child", parent=ID)
    agent.message("m0", "assistant", at=1000, tokens=used, cost=9.0)  # Of an earlier run.
    agent.message("m1", "assistant", tokens=used, cost=0.002)
    agent.message("m2", "assistant", session="ses_child", tokens=used, cost=0.001)
    reader.read(alive, None, NOW)
    agent.message("m3", "user", tokens=used)
    usage = reader.read(alive, None, NOW).usage
    assert (usage.input, usage.output, usage.reasoning) == (800, 70, 14)
    assert (usage.cache_read, usage.cache_write, usage.cost_usd) == (1600, 2, 0.003)
    assert opencode_files.OpenCodeTokens().usage(0.0).cost_usd is None  # No price is known.


def test_a_new_conversation_is_not_confused_with_an_earlier_one(
    agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    agent.session("ses_earlier", at=1000)
    agent.message("m0", "user", session="ses_earlier", at=1000)
    seen = reader.read(alive, None, NOW)
    assert (seen.activity, seen.native_id) == (Activity.NONE, "")


def test_an_unreadable_database_changes_nothing(
    files: RunFiles, agent: Agent, reader: OpenCodeReader, alive: Seen
) -> None:
    agent.session()
    agent.write("message", "m0", ID, agent.at, agent.at, "{odd")
    agent.message("m1", "user")
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    opencode_files.database(files).write_text("no database")
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    assert not reader.received("mw-1")
    opencode_files.database(files).unlink()
    os.mkfifo(opencode_files.database(files))
    assert reader.read(alive, None, NOW).activity is Activity.ACTIVE
    assert opencode_files.query(files, "select 1") is None


def test_an_exit_overrides_the_files(agent: Agent, reader: OpenCodeReader, dead: Seen) -> None:
    agent.session()
    agent.message("m1", "user")
    seen = reader.read(dead, None, NOW)
    assert (seen.activity, seen.exit, seen.native_id) == (Activity.EXITED, dead.exit, ID)


def test_start_problems_are_reported_with_remedies(tmp_path: Path) -> None:
    absent, credentials = OpenCode(AgentType(program="opencode")).check({"PATH": str(tmp_path)})
    assert "npm install" in absent
    assert "`key` of the agent type" in credentials
    program = tmp_path / "opencode"
    program.write_text("#!/bin/sh\necho 1.18.33\n")
    program.chmod(0o755)
    kind = AgentType(program="opencode", command=(str(program),), pass_env=("KEY",))
    assert OpenCode(kind).check({}) == []
    assert OpenCode(kind).version() == "1.18.33"
