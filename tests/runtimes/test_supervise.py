"""Tests of the supervisor without a runtime: starts, records, ends."""

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from lifecycle.model.facts import Exit
from runtimes import supervise, supervised
from runtimes.base import Launch
from tests.world.waiting import PATIENCE, eventually

_SAYS_IGNORED = "grep ^SigIgn /proc/self/status; exec sleep 60"


def launch(folder: Path, *argv: str, cwd: Path | None = None) -> Launch:
    return Launch(name="app-1", argv=argv, cwd=cwd or folder, env={}, dir=folder)


def supervised_run(folder: Path) -> subprocess.Popen[str]:
    """A supervisor without a terminal."""
    command = [sys.executable, "-I", "-S", supervise.__file__, str(folder)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def state(pid: int) -> str:
    """The kernel's state of the process: `T` is stopped, `Z` has ended."""
    return Path(f"/proc/{pid}/stat").read_text().split()[2]


def run(folder: Path, *argv: str, cwd: Path | None = None) -> tuple[int, str]:
    """Supervise a program to its end; returns the supervisor's exit code and what was printed."""
    supervised.prepare(launch(folder, *argv, cwd=cwd), {"PATH": os.environ["PATH"]})
    process = supervised_run(folder)
    printed, _ = process.communicate()
    return process.returncode, printed


def test_the_exit_is_recorded_and_the_launch_file_removed(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "exit 7") == (7, "")
    end = supervised.outcome(tmp_path)
    assert end is not None
    assert (end.code, end.signal, end.lost) == (7, None, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exit.json", "pid.json"]


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    code, printed = run(tmp_path, "no-such-program")
    assert code == 127
    assert "cannot run ['no-such-program']" in printed


def test_a_program_reads_files_and_contents_at_its_descriptors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file, ")
    files = {number: tmp_path / "file" if number % 2 else b"a content, " for number in range(8, 12)}
    reads = launch(tmp_path, "cat", *(f"/dev/fd/{number}" for number in files))
    reads = replace(reads, contained=True, opens=files)
    supervised.prepare(reads, {"PATH": os.environ["PATH"]})
    printed, _ = supervised_run(tmp_path).communicate()
    assert printed == "a content, a file, a content, a file, "


@pytest.mark.parametrize("members", ["tasks", "cgroup.procs"])
def test_a_group_of_version_1_is_joined_by_its_threads(tmp_path: Path, members: str) -> None:
    group, run = tmp_path / "group", tmp_path / "run"
    for folder in (group, run):
        folder.mkdir()
    (group / members).touch()
    limited = replace(launch(run, "true"), groups={str(group): {"pids.max": "5"}})
    supervised.prepare(limited, {"PATH": os.environ["PATH"]})
    supervised_run(run).communicate()
    written = {file.name: file.read_text() for file in group.iterdir()}
    assert written == {"pids.max": "5", members: "0"}


def test_the_record_has_the_signal_that_killed_the_program(tmp_path: Path) -> None:
    assert run(tmp_path, "sh", "-c", "kill -SEGV $$") == (128 + signal.SIGSEGV, "")
    end = supervised.outcome(tmp_path)
    assert end is not None
    assert (end.code, end.signal) == (None, signal.SIGSEGV)


@pytest.mark.parametrize("record", ['{"at": 1e18}', '{"at": -1e18}', '{"at": 1e999}', "[[", "\xff"])
def test_odd_values_in_the_record_make_no_look_fail(tmp_path: Path, record: str) -> None:
    run(tmp_path, "true")
    (tmp_path / "exit.json").write_bytes(record.encode("latin-1"))
    end = supervised.outcome(tmp_path)
    assert end is not None
    assert msgspec.json.decode(msgspec.json.encode(end), type=Exit) == end


def test_a_program_starts_with_default_signal_handling(tmp_path: Path) -> None:
    _, printed = run(tmp_path, "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    assert [int(line.split()[1], 16) for line in printed.splitlines()] == [0, 0]


def test_signals_that_the_parent_ignores_are_not_ignored_in_the_program(tmp_path: Path) -> None:
    # As under `nohup`.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        supervised.prepare(
            launch(tmp_path, "sh", "-c", _SAYS_IGNORED), {"PATH": os.environ["PATH"]}
        )
        process = supervised_run(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.stdout is not None
    assert int(process.stdout.readline().split()[1], 16) == 0
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE)
    end = supervised.outcome(tmp_path)
    assert end is not None
    assert (end.signal, end.lost) == (signal.SIGTERM, "its terminal was closed")


def test_an_exit_with_the_terminals_end_counts_as_ordered(
    tmp_path: Path,
) -> None:
    script = "trap 'exit 0' HUP; echo $$; while :; do sleep 0.05; done"
    supervised.prepare(launch(tmp_path, "sh", "-c", script), {"PATH": os.environ["PATH"]})
    with supervised_run(tmp_path) as process:
        assert process.stdout is not None
        program = int(process.stdout.readline())
        process.send_signal(signal.SIGSTOP)  # Both signals arrive at once.
        os.waitpid(process.pid, os.WUNTRACED)
        os.kill(program, signal.SIGHUP)
        eventually(lambda: Path(f"/proc/{program}/stat").read_text().split()[2] == "Z", "its end")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGCONT)
        process.communicate()
    end = supervised.outcome(tmp_path)
    assert end is not None
    assert (end.code, end.lost) == (0, "its terminal was closed")


def test_a_missing_run_folder_is_named(tmp_path: Path) -> None:
    code, printed = run(tmp_path, "true", cwd=tmp_path / "gone")
    assert code == 127
    assert str(tmp_path / "gone") in printed


def test_a_run_starts_only_once(tmp_path: Path) -> None:
    run(tmp_path, "true")
    code, printed = run(tmp_path, "echo", "again")
    assert code == 125
    assert "File exists" in printed
    assert "again" not in printed


def test_files_with_an_environment_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    supervised.prepare(launch(folder, "true"), {"KEY": "secret"})
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "launch").stat().st_mode) == 0o600


def test_a_program_that_outlasts_the_grace_period_is_killed(tmp_path: Path) -> None:
    script = "trap 'sleep 0.5; exit 0' TERM; echo >up; while :; do sleep 0.1; done"
    supervised.prepare(launch(tmp_path, "sh", "-c", script), {"PATH": os.environ["PATH"]})
    (tmp_path / "grace").write_text("0")
    with supervised_run(tmp_path) as process:
        eventually((tmp_path / "up").exists, "the program")
        assert supervised.outcome(tmp_path) is None
        process.send_signal(signal.SIGTERM)
        process.communicate()
    end = supervised.outcome(tmp_path)
    assert end is not None
    assert (end.signal, end.lost) == (signal.SIGKILL, "it was asked to end")


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ({"boot": "another"}, "the machine was restarted"),
        ({"start": 1}, "its supervisor vanished"),
    ],
)
def test_a_reused_pid_is_not_taken_for_the_supervisor(
    tmp_path: Path, change: dict[str, object], lost: str
) -> None:
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        try:
            born = supervise.identity(stranger.pid)
            assert born is not None
            (tmp_path / "pid.json").write_text(json.dumps(born))
            assert supervised.outcome(tmp_path) is None
            (tmp_path / "pid.json").write_text(json.dumps(born | change))
            end = supervised.outcome(tmp_path)
            assert end is not None
            assert (end.code, end.signal, end.lost) == (None, None, lost)
            supervised.end(tmp_path, 0.0)
            assert stranger.poll() is None
        finally:
            stranger.kill()


@pytest.mark.parametrize("forged", ["[]", '{"pid": "1"}', "{}", "no JSON"])
def test_a_forged_pid_record_counts_as_a_vanished_supervisor(tmp_path: Path, forged: str) -> None:
    (tmp_path / "pid.json").write_text(forged)
    end = supervised.outcome(tmp_path)
    assert end is not None
    assert (end.code, end.signal, end.lost) == (None, None, "its supervisor vanished")
    supervised.end(tmp_path, 0.0)


def test_the_tail_is_the_last_lines_as_plain_text(
    tmp_path: Path,
) -> None:
    log = tmp_path / "output.log"
    assert supervised.tail(log) == ""
    lines = "".join(f"\x1b[3{n % 8}mline {n}\x1b[0m\r\n" for n in range(3000))
    log.write_text(f"{lines}10%\r50%\r100%\r\n\x1b]0;title\x07\x1b(Bthe\x08 end\x1b[?2004l\r\n")
    tail = supervised.tail(log).splitlines()
    assert len(tail) == 20
    assert tail[-2:] == ["100%", "the end"]
