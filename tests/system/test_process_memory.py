"""How a process that holds secrets hides them from other processes of its user."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.world.waiting import eventually

_ROOT = Path(__file__).parents[2]
_PR_CAPBSET_DROP = 24
#: CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_PERFMON look into all processes: capabilities(7).
_LOOKING = (19, 21, 38)
_SLEEPS = "import sys; {}; print('up', flush=True); sys.stdin.read()"
_CLOSES = "from bot.system.process_memory import close_to_others; close_to_others()"


#: Executes a command without root's rights to look into all processes. Both sides need it: who has
#: fewer rights than a process cannot look into it anyway.
_UNPRIVILEGED = (
    sys.executable,
    "-c",
    "import ctypes, os, sys; drop = ctypes.CDLL(None).prctl;"
    f"[drop({_PR_CAPBSET_DROP}, capability, 0, 0, 0) for capability in {_LOOKING}];"
    "os.execvp(sys.argv[1], sys.argv[1:])",
)


@contextmanager
def holder(beginning: str) -> Iterator[int]:
    """The pid of a process that has a secret in its environment."""
    with subprocess.Popen(
        [*_UNPRIVILEGED, sys.executable, "-c", _SLEEPS.format(beginning)],
        cwd=_ROOT,
        env={"SECRET": "hunter2", "PYTHONPATH": str(_ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid
        process.kill()


def neighbour(*argv: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*_UNPRIVILEGED, *argv], capture_output=True, check=False)


@pytest.mark.parametrize("file", ["environ", "mem", "fd/0", "maps"])
def test_a_process_of_the_same_user_cannot_look_inside(file: str) -> None:
    with holder(_CLOSES) as pid:
        looked = neighbour("dd", "bs=1", "count=1", f"if=/proc/{pid}/{file}")
        assert b"Permission denied" in looked.stderr


def test_without_that_the_environment_is_open() -> None:
    with holder("pass") as pid:
        assert b"hunter2" in neighbour("cat", f"/proc/{pid}/environ").stdout


def test_a_program_that_it_starts_is_as_usual() -> None:
    starts = f"{_CLOSES}; import os; os.execvp('sleep', ['sleep', '60'])"
    with subprocess.Popen(
        [*_UNPRIVILEGED, sys.executable, "-c", starts],
        cwd=_ROOT,
        env={**os.environ, "A": "1"},
    ) as process:
        read = f"/proc/{process.pid}/environ"
        eventually(lambda: b"A=1" in neighbour("cat", read).stdout, "its environment", 20)
        process.kill()


def test_every_command_begins_with_it() -> None:
    """`main` calls `close_to_others` before a file or a variable with a secret is read."""
    line = "from bot.cli import program; program.app = lambda **_: None; program.main()"
    with holder(line) as pid:
        assert b"Permission denied" in neighbour("cat", f"/proc/{pid}/environ").stderr
