"""What `.ci/run --all` makes of the results of its tiers."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.source import ROOT

_RUN = ROOT / ".ci" / "run"
_TIERS = re.search(r"<<'TIERS'\n(.*?)\nTIERS\n", _RUN.read_text(), re.DOTALL)


def tiers() -> list[str]:
    """The scripts of the slow tiers."""
    assert _TIERS
    return [line.split()[0] for line in _TIERS[1].splitlines()]


@pytest.mark.parametrize(
    ("codes", "code", "said"),
    [
        ({}, 0, "passed"),
        ({"test-isolation": 3}, 3, "NOT RUN, or not all of it,"),
        ({"test-isolation": 1}, 1, "FAILED"),
        ({"test-isolation": 3, tiers()[0]: 1}, 1, "NOT RUN, or not all of it,"),
        ({"test-isolation": 3, tiers()[-1]: 2}, 1, "NOT RUN, or not all of it,"),
    ],
)
def test_a_tier_that_cannot_run_has_not_passed(
    tmp_path: Path, codes: dict[str, int], code: int, said: str
) -> None:
    for folder in (".ci", "scripts"):
        (tmp_path / folder).mkdir()
    shutil.copy(_RUN, tmp_path / ".ci")
    named = re.findall(r"^scripts/([\w-]+)$", _RUN.read_text(), re.MULTILINE)
    for name in (*named, *tiers()):
        script = tmp_path / "scripts" / name
        script.write_text(f"#!/bin/sh\nexit {codes.get(name, 0)}\n")
        script.chmod(0o700)
    done = subprocess.run(
        (tmp_path / ".ci" / "run", "--all"), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    (line,) = (line for line in done.stdout.splitlines() if line.endswith("scripts/test-isolation"))
    assert line.startswith(f"{said} after ")
