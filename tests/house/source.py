"""The source code as data: files and imports."""

import ast
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("bot", "config", "lifecycle", "runtimes")


@dataclass(frozen=True)
class Module:
    """One Python file of a package."""

    name: str  #: Dotted, e.g. `bot.store.schema`.
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        """Parsed on demand: every test worker collects the tests, but only one runs them."""
        return parsed(self.path.read_text(encoding="utf-8"))

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @cached_property
    def imports(self) -> set[str]:
        """The dotted names of all imported modules."""
        return _imported(ast.walk(self.tree))


def parsed(source: str) -> ast.Module:
    """Parse Python code; repeat this if it fails because another thread parses at the same time.

    Threads parse, for example, to print a traceback. In Python 3.11, all threads share a counter
    of the parser: CPython's issue 106905.
    """
    while True:
        try:
            return ast.parse(source)
        except SystemError as error:
            if "recursion depth mismatch" not in str(error):
                raise


@cache
def modules(*packages: str) -> tuple[Module, ...]:
    """All Python files of these packages."""
    return tuple(
        Module(_dotted(path), path)
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
    )


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that is committed or that `git add --all` would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(path for name in listed.split("\0") if name and (path := ROOT / name).is_file())


@cache
def texts() -> dict[str, str]:
    """The contents of every text file, by path in the repository."""
    found = {}
    for path in tracked():
        content = path.read_bytes()
        if b"\0" not in content:
            found[str(path.relative_to(ROOT))] = content.decode("utf-8")
    return found


def _imported(nodes: Iterable[ast.AST]) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from bot import app` names a module, `from bot.app.process import serve` does not.
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in inner if _is_module(name)} or {node.module}
    return found


def _dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()
