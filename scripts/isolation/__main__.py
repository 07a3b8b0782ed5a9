"""`scripts/test-isolation`: runs the tests of the contract and the attacks on every isolation.

Docker and Podman are started in network namespaces of their own and ended afterwards; no image
comes from a registry. Exit codes: 0 if everything ran and passed, 1 if something failed, 3 if
something could not run here.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.table import Table

from runtimes.isolation import ISOLATIONS
from tests.runtimes import engines

_TESTS = {
    "contract": (
        *("test_isolation_contract", "test_isolated_commands"),
        *("test_containers", "test_engine_restart"),
    ),
    "attacks": ("test_attacks", "workspaces/test_hostile_repositories"),
}
#: Programs and their packages of Debian and Ubuntu.
_PACKAGES = {
    "bwrap": ("bubblewrap",),
    "dockerd": ("docker.io", "containerd", "runc"),
    "podman": ("podman", "conmon", "runc"),
}
_VARIABLES = {"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"}
_OTHERS = "others"  #: Tests whose names contain no isolation.
_INCOMPLETE = 3


def main() -> int:
    """Run the tests and print a table; return the exit code."""
    if os.geteuid() != 0:
        print("needs root, to start engines of its own", file=sys.stderr)
        return _INCOMPLETE
    _install()
    reasons: dict[str, str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mw-")))
        for name, start in (("docker", engines.docker), ("podman", engines.podman)):
            place = folder / name
            if not (why := engines.missing(name)):
                try:
                    daemon = stack.enter_context(start(place))
                    os.environ[_VARIABLES[name]] = f"unix://{daemon.socket}"
                    continue
                except AssertionError as failed:
                    log = place / "log"
                    why = f"{failed}\n{log.read_text()[-1000:] if log.exists() else ''}"
            reasons[name] = why
            os.environ[_VARIABLES[name]] = f"unix://{place}/none.sock"
        report = folder / "report.xml"
        files = [f"tests/runtimes/{file}.py" for some in _TESTS.values() for file in some]
        command = (sys.executable, "-m", "pytest", "-q", "-n", "2", "-rs", f"--junitxml={report}")
        status = subprocess.run((*command, *files), check=False).returncode
        counts = _counts(report)
    return _print(counts, reasons, failed=status != 0)


def _install() -> None:
    packages = [
        one for program, some in _PACKAGES.items() if not shutil.which(program) for one in some
    ]
    if not packages or not shutil.which("apt-get"):
        return
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)
    for command in (("apt-get", "update", "-qq"), install):
        subprocess.run(command, env=env, check=False, stdout=subprocess.DEVNULL)


def _counts(report: Path) -> Counter[tuple[str, str, str]]:
    """Return the number of tests by isolation, part of `_TESTS` and result in a JUnit report."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for case in ET.parse(report).iter("testcase"):
        results = {child.tag for child in case}
        result = "failed" if results & {"failure", "error"} else "skipped" if results else "passed"
        place = case.get("classname", "").rpartition(".")[2]
        part = next(part for part, some in _TESTS.items() if place in map(_name, some))
        for isolation in _isolations(case.get("name", ""), place):
            counts[isolation, part, result] += 1
    return counts


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def _isolations(test: str, file: str) -> Iterator[str]:
    """Yield the isolations that a test is about, by its name; otherwise by its file."""
    words = test.partition("[")[2].rstrip("]").split("-")
    found = [name for name in ISOLATIONS if name in words]
    yield from found or (["docker"] if file == "test_engine_restart" else [_OTHERS])


def _print(counts: Counter[tuple[str, str, str]], reasons: dict[str, str], *, failed: bool) -> int:
    table = Table("isolation", *_TESTS, "")
    incomplete = bool(reasons)
    for name in (*ISOLATIONS, _OTHERS):
        cells = []
        for part in _TESTS:
            said = [
                f"{count} {result}"
                for result in ("passed", "failed", "skipped")
                if (count := counts[name, part, result])
            ]
            incomplete |= bool(counts[name, part, "skipped"])
            cells.append(", ".join(said))
        incomplete |= name != _OTHERS and not counts[name, "contract", "passed"]
        note = "where each attack works, as the others' tests show" if name == "none" else ""
        table.add_row(name, *cells, reasons.get(name, note))
    Console().print(table)
    if failed:
        return 1
    if incomplete:
        print("not everything could run here; see what was skipped", file=sys.stderr)
        return _INCOMPLETE
    return 0


if __name__ == "__main__":
    sys.exit(main())
