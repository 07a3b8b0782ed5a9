"""Mutation test of the agent readers: breaks one rule at a time and requires a failing test.

A rule is a condition, a branch, a table's row or a step of a function: see `mistakes`.
"""

import argparse
import ast
import importlib.util
import multiprocessing
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from multiprocessing.pool import Pool
from pathlib import Path
from types import CodeType, ModuleType
from typing import Literal, NamedTuple

import pytest

from scripts.mutants import warm
from scripts.mutants.mistakes import mistakes
from scripts.mutants.trying import IMPORTED, KILLED, ROOT, SURVIVED, end_after, judged_alone, passes
from scripts.mutants.warm import Collected

AGENTS = ROOT / "runtimes/agents"
#: More processor time than the tests need; a mutant that exceeds this limit counts as killed.
LIMIT_SECONDS = 20
TESTS = ROOT / "tests/runtimes/agents"
#: The name of the modules that all adapters share.
SHARED = "shared"


class Source(NamedTuple):
    """A module whose rules the mutation test breaks, one at a time."""

    agent: str  #: The package below `runtimes.agents`, or the module itself.
    name: str = ""  #: The module in the package; empty: `agent` is a module.

    @property
    def module(self) -> str:
        """The module's name below `runtimes.agents`."""
        return f"{self.agent}.{self.name}".rstrip(".")

    @property
    def path(self) -> Path:
        """The module's file."""
        return AGENTS.joinpath(*self.module.split(".")).with_suffix(".py")

    def tree(self) -> ast.Module:
        """Parse the module's source."""
        return ast.parse(self.path.read_text(encoding="utf-8"))

    def code(self, place: int | None) -> CodeType:
        """Compile the module with the mistake of number `place`; None: without one.

        Raises `SyntaxError` or `ValueError` for a mistake that makes the code invalid.
        """
        tree = self.tree()
        if place is not None:
            list(mistakes(tree))[place].make()
        return compile(tree, self.path, "exec")


_SCREEN = ("reader", "files", "screen")
SOURCES = (
    *(Source(agent, name) for agent in ("claude", "codex", "gemini", "aider") for name in _SCREEN),
    *(Source("opencode", name) for name in ("reader", "port", "files")),
    Source("shell"),
    *(Source(SHARED, name) for name in ("reader", "dialogs", "files", "hooks", "messages")),
    *(Source(SHARED, name) for name in ("question_forms", "usage")),
)

#: Mistakes that change nothing, by module and beginning of the mistake's text, with the reason.
EQUIVALENT = {
    ("shared.question_forms", "always one"): "every answer is a choice there",
    ("shared.files", "never (status.st_ino"): "it opens a file without news",
    ("shared.files", "no self._inode for (status.st_ino"): "it opens a file without news",
    ("shared.files", "no self.offset for (status.st_ino"): "it opens a file without news",
    ("shared.usage", "never before == (model, used)"): "it counts the same usage again",
    ("shared.usage", "no model for before"): "it counts the same usage again",
    ("shared.usage", "no used for before"): "it counts the same usage again",
    ("shared.usage", "without 0.0 in"): "False counts as nothing too",
    ("shared.files", "not self._state, self._value"): "a file that comes back is another one",
    ("claude.reader", "always tail.offset != offset"): "it searches once more",
    ("claude.reader", "without self._subagents.get(other)"): "it reads again what it knows",
    ("gemini.reader", "without self._transcripts.get(path)"): "it reads again what it knows",
    ("claude.reader", "without self._status_file in known"): "a known status has a file",
    ("aider.reader", "always '```' in words"): "it searches for nothing",
    ("aider.reader", "always line[:1] in _NOT_WORDS"): "`_note_line` tells words apart too",
    ("claude.files", "always native"): "it searches for nothing",
    ("codex.files", "always native"): "it searches for nothing",
    ("opencode.files", "without state in state and"): "it opens no database",
    ("opencode.reader", "without not fingerprint in not fingerprint"): "it opens no database",
    ("opencode.reader", "not self._updated = max"): "it reads again what it knows",
    ("opencode.reader", "without self._touched is not None"): "an active turn has touched it",
}


def main() -> None:
    """Try every mistake; exit with 1 if the tests passed with any."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # Plugins take half of a mutant's time.
    parser = argparse.ArgumentParser(prog="scripts/mutate-readers", description=__doc__)
    names = sorted({name for source in SOURCES for name in (source.agent, source.module)})
    parser.add_argument("--only", metavar="NAME", choices=names, help=f"one of {names}")
    only = parser.parse_args().only
    chosen = [source for source in SOURCES if only in (None, source.agent, source.module)]
    survived: list[int] = []
    collected = Collected(
        [source.path for source in chosen],
        lambda tests: survived.extend(_survivors(source, tests) for source in chosen),
    )
    if not passes(["-s", TESTS], collected) or len(survived) < len(chosen):
        sys.exit(f"the tests of the readers fail already: run scripts/test {TESTS}")
    print(f"{sum(survived)} survived")
    sys.exit(1 if any(survived) else 0)


def _survivors(source: Source, collected: Collected) -> int:
    """Try every mistake in a module; print and count those with which the tests pass."""
    made = [mistake.says for mistake in mistakes(source.tree())]
    tried = partial(_judge_afresh, source, first=collected.names(source.path))
    with _processes("fork") as forked, _processes("forkserver") as fresh:
        results = forked.map(partial(_judge, source), range(len(made)), chunksize=1)
        imported = [place for place, result in enumerate(results) if result == IMPORTED]
        for place, result in zip(imported, fresh.map(tried, imported, chunksize=1), strict=True):
            results[place] = result
    survived = [
        says
        for says, result in zip(made, results, strict=True)
        if result == SURVIVED and not _is_equivalent(source, says)
    ]
    for says in survived:
        print(f"{SURVIVED}: {source.module}:{says}", file=sys.__stdout__)
    counts = f"{source.module}: {len(made)} mutants, {len(survived)} survived"
    print(counts, file=sys.__stdout__, flush=True)
    return len(survived)


def _processes(method: Literal["fork", "forkserver"]) -> Pool:
    """Return a pool that runs each task in a new process.

    With "fork", each new process is a copy of the current process. With "forkserver", each new
    process starts without the modules that the tests import.
    """
    context = multiprocessing.get_context(method)
    context.set_forkserver_preload([warm.__name__])
    return context.Pool(os.cpu_count(), maxtasksperchild=1)


def _judge(source: Source, place: int) -> str:
    try:
        after = source.code(place)
    except (SyntaxError, ValueError):
        return KILLED
    return warm.judge(source.code(None), after)


def _judge_afresh(source: Source, place: int, first: frozenset[str]) -> str:
    """Import the module with a mistake, and run all tests, those in `first` first."""

    def judge() -> str:
        end_after(LIMIT_SECONDS)
        sys.meta_path.insert(0, _Importer(source, source.code(place)))
        return SURVIVED if passes([TESTS], _Sorted(first)) else KILLED

    return judged_alone(judge)


class _Sorted:
    """A pytest plugin that runs tests with these ids before the others."""

    def __init__(self, first: frozenset[str]) -> None:
        self._first = first

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: item.nodeid not in self._first)


class _Importer(MetaPathFinder, InspectLoader):
    """Imports one module from code with a mistake."""

    def __init__(self, source: Source, code: CodeType) -> None:
        self._name = f"runtimes.agents.{source.module}"
        self._path = source.path
        self._code = code

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_loader(name, self, origin=str(self._path))

    def get_source(self, name: str) -> str:
        return self._path.read_text(encoding="utf-8")

    def get_code(self, name: str) -> CodeType:
        return self._code


def _is_equivalent(source: Source, says: str) -> bool:
    what = says.partition(": ")[2]
    return any(source.module == module and what.startswith(how) for module, how in EQUIVALENT)


if __name__ == "__main__":
    main()
