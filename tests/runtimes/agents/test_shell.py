"""Any command as an agent: its launch, and the meaning of its report lines."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from lifecycle.model.facts import Usage
from lifecycle.model.status import Activity, Probe
from runtimes.agents.base import AgentType, RunFiles, RunLimits
from runtimes.agents.shared.reader import Reader
from runtimes.agents.shell import Shell
from runtimes.base import Seen

AT_THREE = datetime(2026, 11, 21, 15, tzinfo=UTC)
KIND = AgentType(program="shell", command=("./agent", "--prompt={prompt}"), args=("{resume}",))


@pytest.fixture
def reader(files: RunFiles) -> Reader:
    return Shell(KIND).reader(files)


def prints(files: RunFiles, text: str) -> None:
    with files.output.open("a") as output:
        output.write(text)


def test_the_prompt_is_a_private_file_and_placeholders_are_filled(files: RunFiles) -> None:
    launch = Shell(KIND).prepare(files, "Do it.\n", "")
    assert launch.argv == ("./agent", f"--prompt={files.prompt}")
    assert files.prompt.read_text() == "Do it.\n"
    assert files.prompt.stat().st_mode & 0o777 == 0o600
    assert launch.env["MERGEWRIGHT_PROMPT_FILE"] == str(files.prompt)
    assert launch.env["MERGEWRIGHT_RUN"] == "2"
    assert launch.env["MERGEWRIGHT_RESUME"] == ""
    assert launch.env["MERGEWRIGHT_SYSTEM_PROMPT"] == ""


def test_the_system_prompt_is_a_variable(files: RunFiles) -> None:
    env = Shell(KIND).prepare(files, "Do it.", "", RunLimits(system="Be kind.")).env
    assert env["MERGEWRIGHT_SYSTEM_PROMPT"] == "Be kind."


def test_a_later_run_gets_the_session_to_resume(files: RunFiles) -> None:
    first = Shell(KIND).prepare(files, "Do it.", "")
    later = Shell(KIND).prepare(files, "Go on.", first.native_id)
    assert later.argv[-1] == "widgets-12"
    assert later.env["MERGEWRIGHT_RESUME"] == "widgets-12"


def test_unknown_placeholders_are_kept(files: RunFiles) -> None:
    kind = AgentType(program="shell", command=("sh", "-c", "echo ${HOME} {x} {}", "{session}"))
    assert Shell(kind).prepare(files, "", "").argv[2:] == ("echo ${HOME} {x} {}", "widgets-12")


def test_only_named_variables_of_the_server_are_passed(
    files: RunFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOWED", "yes")
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    kind = AgentType(program="shell", command=("x",), env={"SET": "1"}, pass_env=("ALLOWED", "NO"))
    env = Shell(kind).prepare(files, "", "").env
    assert (env["ALLOWED"], env["SET"]) == ("yes", "1")
    assert "GITHUB_TOKEN" not in env
    assert "NO" not in env
    assert env["HOME"] == str(files.home)
    assert files.home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("line", "activity", "field", "text"),
    [
        ("mergewright: active writing a test", Activity.ACTIVE, "question", ""),
        ("mergewright: ready Added the test.", Activity.READY, "summary", "Added the test."),
        ("mergewright: waiting Which one?", Activity.WAITING_INPUT, "question", "Which one?"),
        ("mergewright: blocked No disk.", Activity.BLOCKED, "error", "No disk."),
        ("mergewright: received mw-1", Activity.ACTIVE, "error", ""),
        ("mergewright: calling make test", Activity.ACTIVE, "calling", True),
        ("mergewright: active", Activity.ACTIVE, "calling", False),
        ("mergewright: limited 2026-11-21T15:00:00Z No.", Activity.BLOCKED, "error", "No."),
        ("mergewright: limited 2026-11-21T15:00:00Z", Activity.BLOCKED, "limit_until", AT_THREE),
        (
            "mergewright: limited 2026-11-21T16:00:00+01:00 x",
            Activity.BLOCKED,
            "limit_until",
            AT_THREE,
        ),
        ("mergewright: limited soon, I hope", Activity.BLOCKED, "error", "soon, I hope"),
        ("mergewright: blocked 2026-11-21T15:00:00Z No.", Activity.BLOCKED, "limit_until", None),
        ("mergewright: limited 2026-11-21T15:00:00 No.", Activity.BLOCKED, "limit_until", None),
        ("mergewright: ready", Activity.READY, "summary", ""),
        ("\x1b[32mmergewright: ready\x1b[0m", Activity.READY, "summary", ""),
        ("50 %\r100 %\rmergewright: ready\r", Activity.READY, "summary", ""),
    ],
)
def test_a_report_line_sets_the_activity(
    reader: Reader,
    files: RunFiles,
    alive: Seen,
    now: datetime,
    line: str,
    activity: Activity,
    field: str,
    text: object,
) -> None:
    prints(files, f"noise\n{line}\n")
    agent = reader.read(alive, None, now)
    assert agent.activity is activity
    assert getattr(agent, field) == text
    assert agent.run == 2


@pytest.mark.parametrize(
    "line",
    ["say mergewright: ready", "mergewright: readying", "mergewright: merged", "mergewright"],
)
def test_other_lines_are_ignored(reader: Reader, files: RunFiles, alive: Seen, line: str) -> None:
    prints(files, f"{line}\n")
    assert reader.read(alive, None, datetime.now(UTC)).activity is Activity.ACTIVE


def test_the_last_complete_report_line_holds(
    reader: Reader, files: RunFiles, alive: Seen, now: datetime
) -> None:
    prints(files, "mergewright: active\nmergewright: ready done\nmergewright: wai")
    assert reader.read(alive, None, now).activity is Activity.READY
    prints(files, "ting Really?\n")
    agent = reader.read(alive, None, now)
    assert agent.activity is Activity.WAITING_INPUT
    assert agent.question == "Really?"
    assert agent.summary == "done"


def test_usage_lines_are_independent_and_the_last_one_holds(
    reader: Reader, files: RunFiles, alive: Seen, dead: Seen, now: datetime
) -> None:
    assert reader.read(alive, None, now).usage == Usage()
    prints(files, 'mergewright: usage {"input": 5, "output": 2}\nmergewright: waiting Which?\n')
    prints(files, 'mergewright: usage {"input": 9, "output": 4, "cost_usd": 0.25, "other": 1}\n')
    agent = reader.read(alive, None, now)
    assert agent.activity is Activity.WAITING_INPUT
    assert agent.usage == Usage(input=9, output=4, cost_usd=0.25)
    prints(files, 'mergewright: usage {"input": 9, "model": "m"}\n')
    assert reader.read(alive, None, now).usage == Usage(input=9, models={"m": Usage(input=9)})
    prints(files, 'mergewright: usage {"input": 9, "output": 4, "cost_usd": 0.25, "other": 1}\n')
    assert reader.read(alive, None, now).usage == agent.usage
    for broken in ("", "{", "[]", '{"input": -1}', '{"cost_usd": "x"}', "[" * 1999):
        prints(files, f"mergewright: usage {broken}\n")
    prints(files, "mergewright: ready\n")
    assert reader.read(alive, None, now).usage == agent.usage
    assert reader.read(dead, None, now).usage == agent.usage


@pytest.mark.parametrize(
    ("word", "activity"), [("waiting", Activity.WAITING_INPUT), ("limited", Activity.BLOCKED)]
)
def test_unrelated_records_do_not_end_waiting_or_blocked(
    reader: Reader, files: RunFiles, alive: Seen, now: datetime, word: str, activity: Activity
) -> None:
    prints(files, f"mergewright: {word} something\n")
    prints(files, 'a line\nmergewright: usage {"input": 5}\nand half a')
    assert reader.read(alive, None, now).activity is activity
    prints(files, "\nmergewright: received mw-1\n")  # A turn begins.
    agent = reader.read(alive, None, now)
    assert (agent.activity, agent.question, agent.error) == (Activity.ACTIVE, "", "")


def test_an_active_turn_keeps_its_start_time(
    reader: Reader, files: RunFiles, alive: Seen, now: datetime
) -> None:
    prints(files, "mergewright: active one\n")
    began = reader.read(alive, None, now).since
    assert began
    prints(files, "mergewright: active two\n")
    os.utime(files.output, (began.timestamp() + 60,) * 2)
    agent = reader.read(alive, None, now)
    assert agent.since == began
    assert agent.seen == began + timedelta(seconds=60)


def test_without_report_lines_activity_begins_with_output_after_silence(
    reader: Reader, files: RunFiles, alive: Seen, now: datetime
) -> None:
    for after, begins in ((0, 0), (20, 0), (60, 60), (80, 60)):
        prints(files, "hello\n")
        at = now + timedelta(seconds=after)
        os.utime(files.output, (at.timestamp(),) * 2)
        assert reader.read(alive, None, at).since == now + timedelta(seconds=begins)


def test_without_report_lines_output_is_activity_and_silence_is_ready(
    reader: Reader, files: RunFiles, alive: Seen
) -> None:
    assert reader.read(alive, None, datetime.now(UTC)).activity is Activity.NONE
    prints(files, "hello\n")
    printed = datetime.fromtimestamp(files.output.stat().st_mtime, UTC)
    assert reader.read(alive, None, printed).activity is Activity.ACTIVE
    quiet = reader.read(alive, None, printed + timedelta(seconds=31))
    assert quiet.activity is Activity.READY
    assert quiet.since == printed


def test_an_exit_is_reported_with_its_cause(
    reader: Reader, files: RunFiles, dead: Seen, now: datetime
) -> None:
    prints(files, "mergewright: waiting Which?\n")
    agent = reader.read(dead, None, now)
    assert agent.activity is Activity.EXITED
    assert agent.exit == dead.exit
    assert agent.exit
    assert agent.exit.code == 3
    assert agent.since == agent.exit.at
    assert "exited with 3" in agent.evidence
    assert agent.question == ""


def test_a_failed_probe_keeps_the_reported_activity(
    reader: Reader, files: RunFiles, now: datetime
) -> None:
    prints(files, "mergewright: waiting Which?\n")
    agent = reader.read(Seen(runtime=Probe.UNKNOWN, program=Probe.UNKNOWN), None, now)
    assert agent.activity is Activity.WAITING_INPUT
    assert agent.program is Probe.UNKNOWN


def test_a_message_is_received_when_its_key_was_printed(reader: Reader, files: RunFiles) -> None:
    assert not reader.received("mw-1")
    prints(files, "mergewright: received mw-1\n")
    assert reader.received("mw-1")


def test_a_missing_command_is_reported_with_its_remedy() -> None:
    assert "set `command`" in Shell(AgentType(program="shell")).check({})[0]
    missing = Shell(AgentType(program="shell", command=("no-such-agent",)))
    assert "no-such-agent is not installed" in missing.check({})[0]
    with pytest.raises(FileNotFoundError, match="no-such-agent"):
        missing.version()
    with pytest.raises(FileNotFoundError, match="set `command`"):
        Shell(AgentType(program="shell")).version()
    python = Shell(AgentType(program="shell", command=(sys.executable,)))
    assert (python.check({}), python.version()) == ([], sys.executable)


def test_a_prepared_command_runs(files: RunFiles) -> None:
    script = 'echo "mergewright: ready $(cat "$1")"'
    kind = AgentType(program="shell", command=("sh", "-c", script, "agent", "{prompt}"))
    launch = Shell(kind).prepare(files, "the work", "")
    with files.output.open("w") as output:
        subprocess.run(launch.argv, env={"PATH": os.environ["PATH"], **launch.env}, stdout=output)
    agent = (
        Shell(kind)
        .reader(files)
        .read(Seen(runtime=Probe.ALIVE, program=Probe.ALIVE), None, datetime.now(UTC))
    )
    assert agent.summary == "the work"
