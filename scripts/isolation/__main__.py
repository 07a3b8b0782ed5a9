"""`scripts/test-isolation`: runs the tests of the contract and the attacks on every isolation.

Docker and Podman are started in network namespaces of their own and ended afterwards; no image
comes from a registry. Exit codes: 0 if everything ran and passed, 1 if something failed, 3 if
something could not run here.
"""

import os
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
from scripts import engines

_TESTS = {
    "contract": (
        *("test_isolation_contract", "test_isolated_commands"),
        *("test_containers", "test_engine_restart"),
    ),
    "attacks": ("test_attacks", "workspaces/test_hostile_repositories"),
}
_OTHERS = "others"  #: Tests whose names contain no isolation.


def main() -> int:
    """Run the tests and print a table; return the exit code."""
    if os.geteuid() != 0:
        print("needs root, to start engines of its own", file=sys.stderr)
        return engines.INCOMPLETE
    engines.install()
    reasons: dict[str, str] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mw-")))
        for name, variable in engines.VARIABLES.items():
            try:
                stack.enter_context(engines.engine(name, folder / name))
            except engines.CannotRun as why:
                reasons[name] = str(why)
                os.environ[variable] = f"unix://{folder / name}/none.sock"
        report = folder / "report.xml"
        files = [f"tests/runtimes/{file}.py" for some in _TESTS.values() for file in some]
        command = (sys.executable, "-m", "pytest", "-q", "-n", "2", "-rs", f"--junitxml={report}")
        status = subprocess.run((*command, *files), check=False).returncode
        counts = _counts(report)
    return _print(counts, reasons, failed=status != 0)


def _counts(report: Path) -> Counter[tuple[str, str, str]]:
    """Return the number of tests by isolation, part of `_TESTS` and result in a JUnit report."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for case in ET.parse(report).iter("testcase"):
        results = {child.tag for child in case}
        result = "failed" if results & {"failure", "error"} else "skipped" if results else "passed"
        # A file that cannot be imported is reported as a case with its own name and no class.
        place = (case.get("classname", "") or case.get("name", "")).rpartition(".")[2]
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
        note = "not attacked: without isolation, each attack works" if name == "none" else ""
        table.add_row(name, *cells, reasons.get(name, note))
    Console().print(table)
    if failed:
        return 1
    if incomplete:
        print("not everything could run here; see what was skipped", file=sys.stderr)
        return engines.INCOMPLETE
    return 0


if __name__ == "__main__":
    sys.exit(main())
