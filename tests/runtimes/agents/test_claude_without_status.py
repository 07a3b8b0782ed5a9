"""Claude Code without its status file: hooks and transcript are enough."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents.base import LaunchSpec, RunFiles
from runtimes.agents.claude import Claude
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen
from tests.runtimes.agents.fake_claude import KIND, NOW, status, transcript
from tests.runtimes.agents.recordings import CASES, Recording, each_recording

#: What only the status file says: an interruption before the first response, and, without a screen,
#: the answer to a permission request whose tool runs.
UNRECORDED = ("interrupted", "tool_runs")
RECORDED = [
    case
    for case in CASES
    if case.parts[-3] == "claude" and case.parts[-2] != "none" and case.name not in UNRECORDED
]


@pytest.fixture
def launch(files: RunFiles) -> LaunchSpec:
    return Claude(KIND).prepare(files, "Do it.", "")


@pytest.fixture
def reader(files: RunFiles, launch: LaunchSpec) -> Reader:
    return Claude(KIND).reader(files)


@each_recording(RECORDED)
def test_a_recording_without_its_status_file_is_read_as_the_same_activity(
    case: Path, recording: Recording
) -> None:
    for path in (recording.files.home / ".claude" / "sessions").glob("*"):
        path.unlink()
    agent, expects = recording.look(), recording.moment.expects
    assert agent.activity == case.parts[-2]
    for field in ("question", "error", "calling", "limit_until", "unauthorised"):
        value = getattr(agent, field) or None
        value = value.isoformat() if field == "limit_until" and value else value
        assert value == expects.get(field)


A = Activity
WRITE: dict[str, Any] = {"tool_name": "Write", "tool_input": {"path": "a"}}
BASH: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": "ls"}}


class FakeClaude:
    """A Claude Code that writes hooks and a transcript, and no status file."""

    def __init__(self, files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen) -> None:
        self._files, self._launch, self._reader, self._alive = files, launch, reader, alive
        self.at, self.hooks, self.records = NOW, True, True

    def calls(self, event: str, **payload: object) -> "FakeClaude":
        if self.hooks:
            payload = {"hook_event_name": event, **payload}
            line = {"run": 2, "at": int(self.at.timestamp()), "hook": payload}
            with self._files.spool.open("a") as file:
                file.write(json.dumps(line) + "\n")
        return self

    def writes(self, type: str, content: object = None, **fields: object) -> "FakeClaude":
        if self.records:
            message = {} if content is None else {"message": {"content": content}}
            record = {"type": type, "timestamp": self.at.isoformat(), **message, **fields}
            transcript(self._files, self._launch, record)
        return self

    def prompts(self, text: str = "go") -> "FakeClaude":
        self.at += timedelta(seconds=5)
        return self.calls("UserPromptSubmit").writes("user", text)

    def uses(self, call: str, tool: Any) -> "FakeClaude":
        block = {"type": "tool_use", "id": call, "name": tool["tool_name"]}
        return self.writes("assistant", [{**block, "input": tool["tool_input"]}])

    def returns(self, call: str) -> "FakeClaude":
        self.at += timedelta(seconds=2)
        return self.writes("user", [{"type": "tool_result", "tool_use_id": call}])

    def ends_its_turn(self) -> "FakeClaude":
        self.at += timedelta(seconds=0.3)
        return self.calls("Stop").writes("system", subtype="turn_duration")

    def reads(self, activity: Activity, screen: str | None = None) -> Agent:
        agent = self._reader.read(self._alive, screen, self.at)
        assert agent.activity is activity, agent.evidence
        return agent


@pytest.fixture
def claude(files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen) -> FakeClaude:
    return FakeClaude(files, launch, reader, alive)


@pytest.mark.parametrize(("hooks", "records"), [(True, True), (True, False), (False, True)])
def test_turns_begin_and_end_with_either_source(
    claude: FakeClaude, hooks: bool, records: bool
) -> None:
    claude.hooks, claude.records = hooks, records
    claude.reads(A.NONE)
    for _ in range(2):
        tick = timedelta(seconds=hooks)  # Hooks record whole seconds.
        began = claude.prompts().at
        assert began - tick <= (claude.reads(A.ACTIVE).since or NOW) <= began
        claude.ends_its_turn()
        ended = claude.reads(A.READY).since
        assert ended
        assert claude.at - tick <= ended <= claude.at
        claude.at += timedelta(hours=1)
        assert claude.reads(A.READY).since == ended


@pytest.mark.parametrize("hooks", [True, False])
def test_an_error_ends_the_turn_by_either_source(claude: FakeClaude, hooks: bool) -> None:
    claude.hooks, claude.records = hooks, not hooks
    claude.prompts()
    claude.at += timedelta(seconds=2)
    claude.calls("StopFailure", last_assistant_message="Overloaded.")
    claude.writes("assistant", [{"type": "text", "text": "Overloaded."}], isApiErrorMessage=True)
    assert claude.reads(A.BLOCKED).error == "Overloaded."


def test_a_turn_may_fail_within_the_second_of_its_prompt(
    files: RunFiles, launch: LaunchSpec, claude: FakeClaude
) -> None:
    claude.records = False
    claude.at = NOW.replace(microsecond=0)
    claude.prompts().calls("StopFailure", last_assistant_message="Overloaded.")
    status(files, launch, "idle", ago=(NOW - claude.at).total_seconds() - 0.2)
    claude.at += timedelta(seconds=2)
    assert claude.reads(A.BLOCKED).error == "Overloaded."


def test_a_transcript_with_the_prompt_ends_the_turn_within_a_second(claude: FakeClaude) -> None:
    claude.at = NOW.replace(microsecond=0)
    claude.prompts()
    claude.hooks = False
    claude.ends_its_turn().reads(A.READY)


def test_an_answer_about_an_interruption_is_none(claude: FakeClaude) -> None:
    text = "[Request interrupted by user for tool use]"
    claude.prompts().writes("assistant", [{"type": "text", "text": text}]).reads(A.ACTIVE)


def test_a_transcript_without_the_prompt_ends_the_turn(claude: FakeClaude) -> None:
    claude.records = False
    claude.prompts()
    claude.records = True
    claude.at += timedelta(seconds=2)
    claude.writes("system", subtype="turn_duration").reads(A.READY)


def test_hooks_that_stop_working_hide_no_turn_of_the_transcript(claude: FakeClaude) -> None:
    claude.prompts().ends_its_turn()
    claude.hooks = False
    claude.prompts().reads(A.ACTIVE)
    claude.ends_its_turn().reads(A.READY)


def test_the_end_of_the_last_turn_does_not_end_the_next(claude: FakeClaude) -> None:
    claude.prompts()
    claude.records = False
    claude.ends_its_turn()
    late = claude.at
    claude.prompts().reads(A.ACTIVE)
    claude.records = True
    claude.writes("system", subtype="turn_duration", timestamp=late.isoformat())
    claude.reads(A.ACTIVE)


def test_the_programs_own_remarks_begin_no_turn(claude: FakeClaude) -> None:
    claude.prompts().ends_its_turn()
    claude.at += timedelta(seconds=3)
    claude.writes("user", "<local-command-caveat>", isMeta=True).reads(A.READY)


@pytest.mark.parametrize("listed", [True, False])
def test_an_interruption_ends_the_turn(claude: FakeClaude, listed: bool) -> None:
    text = "[Request interrupted by user for tool use]"
    claude.prompts().uses("t1", BASH).reads(A.ACTIVE)
    claude.at += timedelta(seconds=3)
    claude.writes("user", [{"type": "text", "text": text}] if listed else text)
    assert not claude.reads(A.READY).calling
    assert claude.prompts().reads(A.ACTIVE)


def test_a_request_lasts_until_its_call_returns(claude: FakeClaude) -> None:
    claude.prompts().uses("t1", BASH).uses("t2", WRITE)
    asked = claude.calls("PermissionRequest", **WRITE).reads(A.WAITING_INPUT)
    assert asked.since == claude.at.replace(microsecond=0)
    assert "Write" in asked.question
    claude.returns("t1").reads(A.WAITING_INPUT)
    claude.returns("t2").reads(A.ACTIVE)


def test_a_request_of_a_subagent_lasts_until_its_call_returns(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen, claude: FakeClaude
) -> None:
    claude.prompts().calls("PermissionRequest", **BASH).reads(A.WAITING_INPUT)
    below = replace(launch, native_id=f"{launch.native_id}/subagents/agent-1")
    subagent = FakeClaude(files, below, reader, alive)
    subagent.at = claude.at
    subagent.uses("t1", BASH).returns("t1")
    claude.at = subagent.at
    claude.writes("assistant", []).reads(A.ACTIVE)


def test_an_answered_request_whose_tool_runs_gives_way_to_the_input_box(claude: FakeClaude) -> None:
    claude.prompts().uses("t1", BASH).calls("PermissionRequest", **BASH)
    rule = "─" * 40
    assert claude.reads(A.ACTIVE, screen=f"✻ Running…\n{rule}\n❯ \n{rule}\n").calling
    claude.reads(A.WAITING_INPUT)


def test_a_request_like_an_answered_one_is_open(claude: FakeClaude) -> None:
    claude.prompts().uses("t1", BASH).calls("PermissionRequest", **BASH).returns("t1")
    claude.at += timedelta(seconds=2)
    claude.uses("t2", BASH).calls("PermissionRequest", **BASH).reads(A.WAITING_INPUT)


def test_a_request_of_an_interrupted_turn_is_over(claude: FakeClaude) -> None:
    claude.prompts().calls("PermissionRequest", **BASH).reads(A.WAITING_INPUT)
    claude.hooks = False
    claude.at += timedelta(seconds=3)
    claude.writes("user", "[Request interrupted by user for tool use]").reads(A.READY)
    claude.prompts().reads(A.ACTIVE)


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit"])
def test_a_request_does_not_outlast_its_turn(claude: FakeClaude, event: str) -> None:
    claude.prompts().calls("PermissionRequest", **BASH).reads(A.WAITING_INPUT)
    claude.at += timedelta(seconds=3)
    claude.calls(event).reads(A.READY if event == "Stop" else A.ACTIVE)
    assert claude.prompts().reads(A.ACTIVE)


def test_a_status_word_that_is_not_known_hides_nothing(
    files: RunFiles, launch: LaunchSpec, claude: FakeClaude
) -> None:
    claude.prompts()
    status(files, launch, "meditating")
    claude.reads(A.ACTIVE)


def test_a_status_file_that_vanishes_leaves_its_word_until_the_records_contradict_it(
    files: RunFiles, launch: LaunchSpec, claude: FakeClaude
) -> None:
    claude.prompts()
    path = status(files, launch, "waiting", ago=-10)
    claude.reads(A.WAITING_INPUT)
    path.unlink()
    claude.reads(A.WAITING_INPUT)
    claude.at += timedelta(seconds=20)
    claude.ends_its_turn().reads(A.READY)


def test_another_tools_result_does_not_contradict_the_status_file(
    files: RunFiles, launch: LaunchSpec, claude: FakeClaude
) -> None:
    claude.prompts().uses("t1", BASH)
    path = status(files, launch, "waiting", ago=-10, waitingFor="dialog open")
    claude.reads(A.WAITING_INPUT)
    path.unlink()
    claude.at += timedelta(seconds=20)
    claude.returns("t1").reads(A.WAITING_INPUT)


def test_an_answered_request_contradicts_the_status_file(
    files: RunFiles, launch: LaunchSpec, claude: FakeClaude
) -> None:
    claude.prompts().uses("t1", BASH).calls("PermissionRequest", **BASH)
    path = status(files, launch, "waiting", ago=-10)
    claude.reads(A.WAITING_INPUT)
    path.unlink()
    claude.at += timedelta(seconds=20)
    claude.returns("t1").reads(A.ACTIVE)


def test_a_project_folder_without_the_conversation_hides_no_transcript(
    files: RunFiles, launch: LaunchSpec, claude: FakeClaude
) -> None:
    claude.calls("SessionStart").writes("user", "go")
    path = transcript(files, launch)
    for number in range(30):  # Claude Code keeps notes about a repository in one.
        (path.parents[1] / f"-{number}" / "memory").mkdir(parents=True)
    claude.reads(A.ACTIVE)
