"""githubkit's own requirements admit a library with which it cannot be imported."""

import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_hishel_stays_below_2() -> None:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    (pin,) = [need for need in project["dependencies"] if need.startswith("hishel")]
    assert pin.endswith("<2")
    assert version("hishel").startswith("1.")


def test_githubkit_can_be_imported() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", "import githubkit"], check=True)
