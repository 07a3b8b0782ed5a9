"""Runs tests on a mutant in a process of its own."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import pytest

ROOT = Path(__file__).parents[2]
EQUIVALENT, KILLED, SURVIVED = "equivalent", "killed", "survived"


def end_after(seconds: int) -> None:
    """Fail tests that compute for longer than this, or wait for ten times as long.

    The mutant is killed then. A busy machine makes tests wait, so waiting alone counts less.
    """

    def too_long(signum: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"the tests took longer than {seconds} seconds")

    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(10 * seconds)


@contextmanager
def alone() -> Iterator[None]:
    """Discard output, and remove what tests write, so that processes can run tests at once."""
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        TemporaryDirectory(prefix="mw-", ignore_cleanup_errors=True) as own,
    ):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = own
        yield


def passes(paths: Sequence[Path | str], *plugins: object) -> bool:
    """Whether all tests pass."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--rootdir", str(ROOT)]
    with alone():
        ended = pytest.main([*options, *map(str, paths)], plugins=plugins)
    if ended == pytest.ExitCode.USAGE_ERROR:
        raise RuntimeError(f"pytest cannot run {' '.join(map(str, paths))}")
    return ended == pytest.ExitCode.OK
