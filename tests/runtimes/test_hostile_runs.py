"""What an agent without isolation lays in its run's folder affects no other run's state."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from runtimes import supervised
from runtimes.supervise import _reported, identity

#: What an agent puts in the place of a file, with another session's file.
REPLACED: dict[str, Callable[[Path, Path], object]] = {
    "a pipe": lambda file, victim: os.mkfifo(file),
    "a folder": lambda file, victim: file.mkdir(),
    "a link": lambda file, victim: file.symlink_to(victim),
    "a list": lambda file, victim: file.write_text("[]"),
    "another type": lambda file, victim: file.write_text('{"pid": "x", "at": []}'),
    "numbers beyond all": lambda file, victim: file.write_text(
        '{"pid": 99999999999999999999, "start": -1, "boot": "", "at": 1e308, "code": 1e30}'
    ),
    "deep nesting": lambda file, victim: file.write_text('{"x": ' + "[" * 60_000),
    "no text": lambda file, victim: file.write_bytes(b"\xff\xfe\0"),
    "terabytes": lambda file, victim: subprocess.run(["truncate", "-s", "4T", file], check=True),
    "nothing": lambda file, victim: None,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A symbolic link to the folder of an ended run, as the tmux runtime makes one."""
    run = tmp_path / "widgets-12_r1"
    run.mkdir()
    (run / "pid.json").write_text('{"pid": 4000000, "start": 1, "boot": "an earlier one"}')
    (run / "exit.json").write_text('{"at": 1000, "code": 3, "signal": null, "ordered_by": 0}')
    (run / "output.log").write_text("its last words\n")
    link = tmp_path / "link"
    link.symlink_to(run)
    return link


def test_a_run_that_left_its_records_alone_has_exited(folder: Path) -> None:
    end = supervised.outcome(folder)
    assert end is not None
    assert (end.code, end.tail, end.lost) == (3, "its last words", "")


@pytest.mark.parametrize("name", ["pid.json", "exit.json", "output.log"])
@pytest.mark.parametrize("what", REPLACED)
def test_a_replaced_record_raises_nothing_and_shows_nothing(
    folder: Path, tmp_path: Path, what: str, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text(json.dumps({"secret": "of another session", **(identity(os.getpid()) or {})}))
    (folder / name).unlink()
    REPLACED[what](folder / name, victim)
    end = supervised.outcome(folder)
    assert end is None or "secret" not in end.tail
    if name != "pid.json":
        assert end is not None


@pytest.mark.parametrize(
    "report",
    [
        *("[]", "1", "no JSON", '{"status": 1e999, "at": 1}', '{"status": null, "at": 1}'),
        *('{"status": 1180591620717411303424, "at": 1}', '{"status": 127, "at": 1}'),
        *('{"status": 0, "at": []}', "[" * 200),
    ],
)
def test_a_forged_report_of_the_end_does_not_stop_the_supervisor(report: str) -> None:
    """The program in a sandbox can open the descriptors of its first process."""
    reads, writes = os.pipe()
    os.write(writes, report.encode())
    os.close(writes)
    assert _reported(reads, 137, 5.0) == (-9, 5.0)
    os.close(reads)
