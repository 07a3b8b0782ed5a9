"""Claude Code's usage and limits, and records that do not end the states waiting and blocked."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lifecycle.model.status import Activity
from runtimes.agents.base import LaunchSpec, RunFiles
from runtimes.agents.claude import Claude
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen
from tests.runtimes.agents.fake_claude import KIND, NOW, status, transcript


@pytest.fixture
def launch(files: RunFiles) -> LaunchSpec:
    return Claude(KIND).prepare(files, "Do it.", "")


@pytest.fixture
def reader(files: RunFiles, launch: LaunchSpec) -> Reader:
    return Claude(KIND).reader(files)


def answer(id: str, output: int) -> dict[str, Any]:
    used = {"input_tokens": 1200, "output_tokens": output, "cache_read_input_tokens": 800}
    used["cache_creation_input_tokens"] = 100
    return {"type": "assistant", "message": {"id": id, "content": [], "usage": used}}


def status_line(files: RunFiles, **fields: object) -> None:
    """Call the prepared command of the status line."""
    settings = json.loads((files.inputs / "claude-settings.json").read_text())
    line = settings["statusLine"]["command"]
    shown = subprocess.run(
        ["sh", "-c", line], input=json.dumps(fields), text=True, capture_output=True, check=False
    )
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")


def test_tokens_count_once_for_each_response_of_this_run(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    earlier = {**answer("m0", 500), "timestamp": "2026-01-01T00:00:00Z"}
    transcript(files, launch, earlier, answer("m1", 1), answer("m1", 42), answer("m2", 42))
    usage = reader.read(alive, None, NOW).usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (2400, 84, 1600, 200)
    assert usage.cost_usd is None
    transcript(files, launch, answer("m3", 8))
    assert reader.read(alive, None, NOW).usage.output == 92
    assert Claude(KIND).reader(files).read(alive, None, NOW).usage.output == 92


def test_subagents_usage_counts_and_their_words_do_not(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    go = {"type": "user", "message": {"content": "go"}}
    path = transcript(files, launch, go, answer("m1", 1))
    assert reader.read(alive, None, NOW).usage.output == 1
    theirs = path.with_suffix("") / "subagents" / "agent-1.jsonl"
    theirs.parent.mkdir(parents=True)
    text = [{"type": "text", "text": "API Error"}]
    failed = {"type": "assistant", "isApiErrorMessage": True, "message": {"content": text}}
    odd = {"type": "system"}
    with theirs.open("a") as file:
        for record in (answer("s1", 40), failed, odd, answer("s1", 41)):
            at = (NOW + timedelta(days=3650)).isoformat()
            file.write(json.dumps({"timestamp": at, **record}) + "\n")
    transcript(files, launch, answer("m2", 1))
    status(files, launch, "idle")
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.usage.output) == (Activity.READY, 43)
    assert Claude(KIND).records(files) == [path, theirs]
    assert [each.text for each in Claude(KIND).messages(files).new()] == ["go"]


def test_a_run_costs_what_the_conversation_cost_since_the_run_began(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen, dead: Seen
) -> None:
    status_line(files, cost={"total_cost_usd": 0.0126})  # The cost of earlier runs.
    assert reader.read(alive, None, NOW).usage.cost_usd == 0
    status_line(files, cost={"total_cost_usd": 0.0189})
    status_line(files, cost={"total_cost_usd": 0.0252})
    assert reader.read(alive, None, NOW).usage.cost_usd == 0.0126
    assert reader.read(dead, None, NOW).usage.cost_usd == 0.0126


def test_a_malformed_status_line_has_no_cost(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    status_line(files, cost={"total_cost_usd": -1})
    assert reader.read(alive, None, NOW).usage.cost_usd is None


@pytest.mark.parametrize("line", ["first", "last"])
def test_a_single_status_line_has_no_cost(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen, line: str
) -> None:
    status_line(files, cost={"total_cost_usd": 0.5})
    (files.outputs / f"claude-line.{line}").unlink()
    assert reader.read(alive, None, NOW).usage.cost_usd is None


def test_an_error_message_is_not_counted_as_a_response(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    error = answer("e1", 9)
    error["message"]["model"] = "<synthetic>"
    transcript(files, launch, {**error, "isApiErrorMessage": True})
    usage = reader.read(alive, None, NOW).usage
    assert (usage.output, usage.models) == (0, {})


def test_a_usage_limit_has_a_reset_time_if_the_program_knows_it(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    text = [{"type": "text", "text": "You've hit your session limit · resets 3pm"}]
    error = {"type": "assistant", "isApiErrorMessage": True, "message": {"content": text}}
    transcript(files, launch, {"type": "user", "message": {"content": "go"}})
    transcript(files, launch, {**error, "error": "rate_limit"})
    status(files, launch, "idle")
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.limit_until) == (Activity.BLOCKED, None)
    resets = {"five_hour": 1795258800, "seven_day": 1795600000}
    used = {"five_hour": 100, "seven_day": 41.2}
    limits = {each: {"used_percentage": used[each], "resets_at": resets[each]} for each in resets}
    status_line(files, rate_limits=limits)
    agent = reader.read(alive, None, NOW)
    assert agent.limit_until == datetime.fromtimestamp(resets["five_hour"], UTC)
    status_line(files, rate_limits={"five_hour": {"used_percentage": 41, "resets_at": 1795258800}})
    assert reader.read(alive, None, NOW).limit_until is None  # Another limit is exhausted.
    status_line(files, rate_limits=limits)
    transcript(files, launch, {**error, "error": "server_error"})
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.limit_until) == (Activity.BLOCKED, None)
    transcript(files, launch, {**error, "error": "rate_limit"})
    assert reader.read(alive, None, NOW).limit_until
    transcript(files, launch, {"type": "user", "message": {"content": "go on"}})
    assert reader.read(alive, None, NOW).limit_until is None


@pytest.mark.parametrize(
    ("word", "unauthorised"),
    [
        ("authentication_failed", True),
        ("oauth_org_not_allowed", True),
        ("account_on_hold", True),
        ("server_error", False),
        (["odd"], False),
    ],
)
def test_a_rejected_key_or_login_is_unauthorised(
    files: RunFiles,
    launch: LaunchSpec,
    reader: Reader,
    alive: Seen,
    word: object,
    unauthorised: bool,
) -> None:
    error = {"type": "assistant", "isApiErrorMessage": True, "message": {"content": "401"}}
    transcript(files, launch, {"type": "user", "message": {"content": "go"}})
    transcript(files, launch, {**error, "error": word})
    path = status(files, launch, "idle")
    agent = reader.read(alive, None, NOW)
    assert (agent.activity, agent.unauthorised) == (Activity.BLOCKED, unauthorised)
    path.unlink()
    status(files, launch, "busy")
    assert not reader.read(alive, None, NOW).unauthorised


@pytest.mark.parametrize(
    ("word", "activity"), [("waiting", Activity.WAITING_INPUT), ("idle", Activity.BLOCKED)]
)
def test_unrelated_records_do_not_end_waiting_or_blocked(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen, word: str, activity: Activity
) -> None:
    call = {"type": "tool_use", "id": "t1"}
    result = {"type": "tool_result", "tool_use_id": "t1"}
    transcript(files, launch, {"type": "user", "message": {"content": "go"}})
    transcript(files, launch, {"type": "assistant", "message": {"content": [call]}})
    error = {"type": "assistant", "isApiErrorMessage": True, "message": {"content": "500"}}
    transcript(files, launch, *([error] if word == "idle" else []))
    path = status(files, launch, word)
    assert reader.read(alive, None, NOW).activity is activity
    path.unlink()  # A failing source changes nothing.
    transcript(files, launch, {"type": "user", "message": {"content": [result]}})
    transcript(files, launch, answer("m1", 1))
    assert reader.read(alive, None, NOW).activity is activity
    status(files, launch, "busy")
    agent = reader.read(alive, None, NOW)
    assert agent.activity is Activity.ACTIVE
    assert (agent.question, agent.error, agent.limit_until) == ("", "", None)
