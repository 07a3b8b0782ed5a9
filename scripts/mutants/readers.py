"""Mutation test of the agent readers: breaks one rule at a time and demands that a test fails.

A rule is a condition, a branch, a table's row or a step of a function: see `mistakes`.
"""

import argparse
import ast
import importlib.util
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple

from scripts.mutants.mistakes import Mistake, mistakes
from scripts.mutants.trying import KILLED, ROOT, SURVIVED, end_after, passes

AGENTS = Path("runtimes/agents")
TESTS = Path("tests/runtimes/agents")
LIMIT_SECONDS = 20
#: The name of the modules that all adapters share.
SHARED = "shared"
#: Tests of every agent's own modules.
COMMON = (
    "test_recordings.py",
    "test_messages.py",
    "test_repeated_reads.py",
    "test_dialogs.py",
    "test_question_forms.py",
    "test_input_boxes.py",
)


class Source(NamedTuple):
    """A module with rules, and the tests that have to fail for each mistake in it."""

    module: str  #: Below `runtimes.agents`.
    agent: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The module's file."""
        return (ROOT / AGENTS).joinpath(*self.module.split(".")).with_suffix(".py")

    def arguments(self) -> Sequence[Path | str]:
        """Return pytest's arguments that select the tests."""
        files = self.tests if self.agent == SHARED else (*COMMON, *self.tests)
        for_all = "dialog or form or box"
        own = [] if self.agent == SHARED else ["-k", f"{self.agent} or {for_all}"]
        return [*(ROOT / TESTS / name for name in files), *own]

    def tree(self) -> ast.Module:
        """Parse the module's source."""
        return ast.parse(self.path.read_text(encoding="utf-8"))


def _sources(agent: str, modules: Sequence[str], *tests: str) -> Sequence[Source]:
    return [Source(f"{agent}.{module}", agent, tests) for module in modules]


def _shared(module: str, *tests: str) -> Source:
    return Source(module, SHARED, tests)


_PARSERS = ("test_message_parsers.py", "test_messages.py")
_SCREEN = ("reader", "files", "screen")
SOURCES = (
    *_sources(
        "claude",
        _SCREEN,
        *("test_claude.py", "test_claude_without_status.py", "test_claude_screen.py"),
        *("test_claude_usage.py", *_PARSERS),
    ),
    *_sources("codex", _SCREEN, "test_codex.py", *_PARSERS),
    *_sources("gemini", _SCREEN, "test_gemini.py", *_PARSERS),
    *_sources("opencode", ("reader", "port"), "test_opencode.py"),
    *_sources("opencode", ("files",), "test_opencode.py", "test_opencode_messages.py"),
    *_sources("aider", _SCREEN, "test_aider.py", *_PARSERS),
    Source("shell", "shell", ("test_shell.py", "test_endpoints.py", "test_system_prompts.py")),
    _shared(
        "shared.reader",
        *("test_reader.py", "test_recordings.py", "test_damaged_files.py", "test_codex.py"),
    ),
    _shared("shared.dialogs", "test_answer_choices.py", "test_dialogs.py", "test_input_boxes.py"),
    _shared("shared.files", "test_files.py", "test_line_tail.py", "test_damaged_files.py"),
    _shared("shared.hooks", "test_hooks.py", "test_damaged_files.py"),
    _shared("shared.messages", "test_messages.py"),
    _shared(
        "shared.question_forms", "test_question_forms.py", "test_dialogs.py", "test_recordings.py"
    ),
    _shared("shared.usage", "test_usage.py", "test_recordings.py", "test_claude_usage.py"),
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
    ("claude.reader", "without self._status_file in known"): "a known status has a file",
    ("aider.reader", "always '```' in words"): "it searches for nothing",
    ("aider.reader", "always line.startswith(_NOT_WORDS)"): "`_note_line` tells words apart too",
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
    counted = survived = 0
    for source in SOURCES:
        if only in (None, source.agent, source.module):
            for mistake, result in judged(source):
                counted += 1
                if result == SURVIVED and not _is_equivalent(source, mistake):
                    survived += 1
                    print(f"{result}: {source.module}:{mistake.says}", flush=True)
    print(f"{counted} mutants, {survived} survived")
    sys.exit(1 if survived else 0)


def judged(source: Source) -> Iterator[tuple[Mistake, str]]:
    """Yield every mistake in a module with its result, in order."""
    made = list(mistakes(source.tree()))
    processes = multiprocessing.get_context("fork")
    with processes.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        if pool.apply(judge, (source, None)) == KILLED:
            sys.exit(f"the tests of {source.module} fail already: run scripts/test {TESTS}")
        results = pool.imap(_judge, [(source, place) for place in range(len(made))])
        yield from zip(made, results, strict=True)


def judge(source: Source, place: int | None) -> str:
    """Run the tests with one mistake, or None, in this process, which must end afterwards."""
    end_after(LIMIT_SECONDS)
    tree = source.tree()
    if place is not None:
        list(mistakes(tree))[place].make()
    try:
        sys.meta_path.insert(0, _Importer(source, compile(tree, source.path, "exec")))
    except (SyntaxError, ValueError):
        return KILLED
    with tempfile.TemporaryDirectory(prefix="mw-", ignore_cleanup_errors=True) as own:
        options = [*source.arguments(), "--basetemp", f"{own}/tests"]
        return SURVIVED if passes(options) else KILLED


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


def _is_equivalent(source: Source, mistake: Mistake) -> bool:
    what = mistake.says.partition(": ")[2]
    return any(source.module == module and what.startswith(how) for module, how in EQUIVALENT)


def _judge(given: tuple[Source, int]) -> str:
    return judge(*given)


if __name__ == "__main__":
    main()
