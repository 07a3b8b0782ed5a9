"""Removes one rule at a time from the agents' readers and demands that a test notices it."""

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
LIMIT_SECONDS = 60
#: Who uses what all agents' readers are made of.
SHARED = "shared"
#: What judges every agent's own modules.
COMMON = (
    "test_recordings.py",
    "test_messages.py",
    "test_looks.py",
    "test_dialogs.py",
    "test_forms.py",
    "test_boxes.py",
)


class Source(NamedTuple):
    """One module with rules, and what notices mistakes in it."""

    module: str
    agent: str
    tests: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it stands."""
        return ROOT / AGENTS / f"{self.module}.py"

    def asked(self) -> Sequence[Path | str]:
        """Which tests are to notice, for pytest."""
        files = self.tests if self.agent == SHARED else (*COMMON, *self.tests)
        apart = "dialog or forms or boxes"
        own = [] if self.agent == SHARED else ["-k", f"{self.agent} or {apart}"]
        return [*(ROOT / TESTS / name for name in files), *own]

    def tree(self) -> ast.Module:
        """Its source, as it is."""
        return ast.parse(self.path.read_text(encoding="utf-8"))


_CLAUDE = ("test_claude.py", "test_claude_screens.py", "test_claude_usage.py")
SOURCES = (
    Source("claude.reader", "claude", _CLAUDE),
    Source("claude.files", "claude", _CLAUDE),
    Source("claude.screen", "claude", _CLAUDE),
    Source("codex.reader", "codex", ("test_codex.py",)),
    Source("codex.files", "codex", ("test_codex.py",)),
    Source("codex.screen", "codex", ("test_codex.py",)),
    Source("gemini.reader", "gemini", ("test_gemini.py",)),
    Source("gemini.files", "gemini", ("test_gemini.py",)),
    Source("gemini.screen", "gemini", ("test_gemini.py",)),
    Source("opencode.reader", "opencode", ("test_opencode.py",)),
    Source("opencode.files", "opencode", ("test_opencode.py",)),
    Source("opencode.port", "opencode", ("test_opencode.py",)),
    Source("aider.reader", "aider", ("test_aider.py",)),
    Source("aider.files", "aider", ("test_aider.py",)),
    Source("aider.screen", "aider", ("test_aider.py",)),
    Source("shell.launch", "shell", ("test_shell.py", "test_endpoints.py", "test_preambles.py")),
    Source("shell.reader", "shell", ("test_shell.py",)),
    *(
        Source(f"{name}.messages", SHARED, ("test_records.py", "test_messages.py"))
        for name in ("aider", "claude", "codex", "gemini")
    ),
    Source("opencode.messages", SHARED, ("test_opencode_messages.py", "test_messages.py")),
    Source("shared.activity", SHARED, ("test_recordings.py", "test_codex.py", "test_gemini.py")),
    Source("shared.dialogs", SHARED, ("test_questions.py", "test_dialogs.py")),
    Source(
        "shared.files",
        SHARED,
        (
            "test_databases.py",
            "test_looks.py",
            "test_recordings.py",
            "test_troubled_files.py",
            "test_lines.py",
            "test_forms.py",
        ),
    ),
    Source("shared.hooks", SHARED, ("test_hooks.py", "test_troubled_files.py")),
    Source("shared.line_tail", SHARED, ("test_lines.py", "test_troubled_files.py")),
    Source("shared.messages", SHARED, ("test_messages.py",)),
    Source(
        "shared.question_forms",
        SHARED,
        ("test_forms.py", "test_dialogs.py", "test_recordings.py"),
    ),
    Source(
        "shared.usage",
        SHARED,
        ("test_limits.py", "test_tally.py", "test_recordings.py", "test_claude_usage.py"),
    ),
)

#: What no test can notice, and why.
EQUIVALENT = {
    ("shared.forms", "always one"): "all of them are choices there",
    ("shared.line_tail", "never (status.st_ino"): "it opens in vain",
    ("shared.line_tail", "no self._inode for (status.st_ino"): "it opens in vain",
    ("shared.line_tail", "no self.offset for (status.st_ino"): "it opens in vain",
    ("shared.usage_counter", "never before == (model, used)"): "it counts the same anew",
    ("shared.usage_counter", "no model for before"): "it counts the same anew",
    ("shared.usage_counter", "no used for before"): "it counts the same anew",
    ("shared.usage_counter", "without 0.0 in"): "False counts as nothing too",
    ("shared.watched_file", "not self._state, self._value"): "what comes back is another file",
    ("claude.reader", "always self._transcript.offset"): "it searches in vain once more",
    ("claude.reader", "without self._own in known"): "it is there where its word is known",
    ("claude.reader", "without record.timestamp is not None in record.message"): "_records sees to",
    ("aider.reader", "always '```' in words"): "it searches in vain",
    ("aider.reader", "always line.startswith(_MARKS)"): "the words are told apart there too",
    ("claude.files", "always native"): "it searches in vain",
    ("codex.files", "always native"): "it searches in vain",
    ("codex.files", "without asked in"): "only what was asked has a page",
    ("opencode.files", "never not conversation or not changed"): "it opens in vain",
    ("opencode.files", "without not conversation in"): "it opens in vain",
    ("opencode.files", "without not changed(written"): "it opens in vain",
    ("opencode.files", "always stat.S_ISREG"): "what is no file is not opened either",
    ("opencode.messages", "without changed in changed and"): "it opens in vain",
    ("opencode.reader", "without not changed in not changed"): "it opens in vain",
    ("opencode.reader", "not self._updated = max"): "it reads once more what it knows",
    ("opencode.reader", "without self._touched is not None"): "a turn that goes on has touched it",
    ("opencode.reader", "always files.began.year > 1"): "such a time is before all others too",
}


def main() -> None:
    """Judge every mistake; exit with 1 where one survived."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # They take half of a mutant's time.
    parser = argparse.ArgumentParser(prog="scripts/mutate-readers", description=__doc__)
    names = sorted({source.agent for source in SOURCES})
    parser.add_argument("--only", metavar="AGENT", choices=names, help=f"one of {names}")
    only = parser.parse_args().only
    counted = survived = 0
    for source in SOURCES:
        if only in (None, source.agent):
            for mistake, became in judged(source):
                counted += 1
                if became == SURVIVED and not _justified(source, mistake):
                    survived += 1
                    print(f"{became}: {source.module}:{mistake.says}", flush=True)
    print(f"{counted} mutants, {survived} survived")
    sys.exit(1 if survived else 0)


def judged(source: Source) -> Iterator[tuple[Mistake, str]]:
    """What becomes of each mistake in a module, in their order."""
    made = list(mistakes(source.tree()))
    processes = multiprocessing.get_context("fork")
    with processes.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        if pool.apply(judge, (source, None)) == KILLED:
            sys.exit(f"the tests of {source.agent} fail already: run scripts/test {TESTS}")
        became = pool.imap(_judge, [(source, place) for place in range(len(made))])
        yield from zip(made, became, strict=True)


def judge(source: Source, place: int | None) -> str:
    """What becomes of one mistake, in a process of its own that is thrown away afterwards."""
    end_after(LIMIT_SECONDS)
    tree = source.tree()
    if place is not None:
        list(mistakes(tree))[place].make()
    try:
        sys.meta_path.insert(0, _Mistaken(source, compile(tree, source.path, "exec")))
    except (SyntaxError, ValueError):
        return KILLED
    with tempfile.TemporaryDirectory(prefix="mw-", ignore_cleanup_errors=True) as own:
        options = [*source.asked(), "--basetemp", f"{own}/tests"]
        return SURVIVED if passes(options) else KILLED


class _Mistaken(MetaPathFinder, InspectLoader):
    """Imports one module with a mistake in it."""

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


def _justified(source: Source, mistake: Mistake) -> bool:
    what = mistake.says.partition(": ")[2]
    return any(source.module == module and what.startswith(how) for module, how in EQUIVALENT)


def _judge(given: tuple[Source, int]) -> str:
    return judge(*given)


if __name__ == "__main__":
    main()
