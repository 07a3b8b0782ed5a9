"""Whether an isolation works is found out by running a program once."""

from pathlib import Path

import pytest

from runtimes.base import Launch
from runtimes.isolation.trial import run_once


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("kill -KILL $$", "it ended with -9 and printed nothing"),
        ("exit 3", "it ended with 3 and printed nothing"),
        ("echo no namespaces >&2; exit 1", "no namespaces"),
        ("""printf '{"status": 0, "at": 1}' >&3""", ""),
    ],
)
def test_a_program_that_does_not_report_its_success_has_failed(
    tmp_path: Path, script: str, why: str
) -> None:
    launch = Launch(name="try", argv=("/bin/sh", "-c", script), cwd=tmp_path, env={}, dir=tmp_path)
    assert run_once(launch) == why
