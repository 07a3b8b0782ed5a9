"""Runs tests on a mutant in a process of its own."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
EQUIVALENT, KILLED, SURVIVED = "equivalent", "killed", "survived"
#: The result for code that runs at import, so that replacing it later has no effect.
IMPORTED = "imported"
RESULTS = (EQUIVALENT, KILLED, SURVIVED, IMPORTED)
FAILED = 99  #: The exit status of a process that could not judge.


def judged_alone(judge: Callable[[], str]) -> str:
    """Return what `judge` returns in a forked process; `KILLED` if `end_after` ends the process.

    Raises `RuntimeError` if the process fails in another way.
    """
    with alone():
        child = os.fork()
        if not child:
            os.setsid()
            try:
                os._exit(RESULTS.index(judge()))
            except BaseException:  # noqa: BLE001 - the process must end here, whatever a mutant does
                traceback.print_exc(file=sys.__stderr__)
            os._exit(FAILED)
        try:
            status = os.waitpid(child, 0)[1]
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # Including what a mutant left running.
    if os.WIFSIGNALED(status):
        return KILLED
    if (code := os.WEXITSTATUS(status)) not in range(len(RESULTS)):
        raise RuntimeError(f"the process that judges a mutant exited with {code}")
    return RESULTS[code]


def end_after(seconds: float) -> None:
    """End this process after `seconds` of processor time, or ten times as long in real time.

    A busy machine makes tests wait, so waiting counts less. The kernel ends the process, because a
    mutant may catch every exception, or wait in a library where Python handles no signal.
    """
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 10 * seconds)


@contextmanager
def alone() -> Iterator[None]:
    """Discard output and give tests a temporary folder, so that processes can run tests at once."""
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        TemporaryDirectory(prefix="mw-", ignore_cleanup_errors=True) as own,
    ):
        os.environ["PYTEST_DEBUG_TEMPROOT"] = own
        yield


def passes(paths: Sequence[Path | str], *plugins: object) -> bool:
    """Whether all tests in these paths pass.

    Raises `RuntimeError` if pytest reports a usage error, such as a missing path.
    """
    options = ["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", "--rootdir", str(ROOT)]
    with alone():
        ended = pytest.main([*options, *map(str, paths)], plugins=plugins)
    if ended == pytest.ExitCode.USAGE_ERROR:
        raise RuntimeError(f"pytest cannot run {' '.join(map(str, paths))}")
    return ended == pytest.ExitCode.OK
