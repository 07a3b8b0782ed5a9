"""Tries mistakes in processes forked from one that has collected the tests.

A forked process replaces the code of functions, which needs no import, and runs only the tests that
call this code, the fastest first.
"""

import gc
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import NamedTuple

import pytest

from scripts.mutants.trying import IMPORTED, KILLED, SURVIVED, alone, end_after, judged_alone

Place = tuple[str, str, int]  #: The file, qualified name and first line of code.


class Reached(NamedTuple):
    """The code that a test calls."""

    item: int  #: The index of the test among those collected.
    seconds: float  #: The processor time of the test.
    places: frozenset[Place]


class Collected:
    """A pytest plugin that calls `use` with the collected tests instead of running them."""

    def __init__(self, files: Sequence[Path], use: Callable[["Collected"], None]) -> None:
        self._files = {str(file) for file in files}
        self._use = use
        self._items: list[pytest.Item] = []
        self._functions: list[FunctionType] = []
        self._imported: frozenset[Place] = frozenset()
        self._tests: list[Reached] = []
        self._seen: set[Place] = set()
        sys.settrace(self._note)  # The imports of the tests follow.

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Record which tests call which code, then call `use`."""
        global _collected
        sys.settrace(None)
        _collected, self._items, self._imported = self, session.items, frozenset(self._seen)
        gc.unfreeze()
        functions = (each for each in gc.get_objects() if isinstance(each, FunctionType))
        self._functions = [each for each in functions if each.__code__.co_filename in self._files]
        gc.freeze()
        with get_context("fork").Pool(1) as pool:
            self._tests = pool.apply(_reached)
        self._use(self)
        return True

    def names(self, file: Path) -> frozenset[str]:
        """Return the ids of the tests that call code of a file."""
        return frozenset(
            self._items[test.item].nodeid
            for test in self._tests
            if any(place[0] == str(file) for place in test.places)
        )

    def reached(self) -> list[Reached]:
        """Run every test and return the code each calls, the fastest test first.

        Raises `RuntimeError` if a test fails.
        """
        found = []
        sys.settrace(self._note)
        threading.settrace(self._note)
        for number, item in enumerate(self._items):
            self._seen, begun = set(), time.process_time()
            if not _passes(item, None):
                raise RuntimeError(f"{item.nodeid} fails already")
            found.append(Reached(number, time.process_time() - begun, frozenset(self._seen)))
        return sorted(found, key=lambda test: test.seconds)

    def judge(self, before: CodeType, after: CodeType) -> str:
        """Run each test that calls a function whose code differs between `before` and `after`.

        `before` and `after` are two versions of a module. Returns `KILLED` if a test fails, else
        `SURVIVED`. Returns `IMPORTED`, without running tests, if code that differs runs at import.
        """
        old, new = _codes(before), _codes(after)
        changed = {place for place in new if [*map(_own, new[place])] != [*map(_own, old[place])]}
        if changed & self._imported:
            return IMPORTED
        tests = [test for test in self._tests if test.places & changed]
        for function in self._functions:
            for code in new[_place(function.__code__)]:
                function.__code__ = code
        items = [self._items[test.item] for test in tests]
        for test, item, following in zip(tests, items, [*items[1:], None], strict=True):
            end_after(2 + 10 * test.seconds)  # A mutant may compute without end.
            if not _passes(item, following):
                return KILLED
        return SURVIVED

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_filename in self._files:
            self._seen.add(_place(frame.f_code))


_collected: Collected  #: In this process and in those forked from it.


def judge(before: CodeType, after: CodeType) -> str:
    """Judge a mistake in a process of its own, forked from the one that collected the tests."""
    return judged_alone(lambda: _collected.judge(before, after))


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return not item.session.testsfailed


def _reached() -> list[Reached]:
    with alone():
        return _collected.reached()


def _codes(code: CodeType) -> dict[Place, list[CodeType]]:
    """Return the code and all code within it. Comprehensions on one line share their place."""
    found, waiting = defaultdict(list), [code]
    while waiting:
        one = waiting.pop()
        found[_place(one)].append(one)
        waiting += [each for each in one.co_consts if isinstance(each, CodeType)]
    return found


def _own(code: CodeType) -> CodeType:
    """Return a copy of the code in which nested code is replaced by its file, name and line.

    So two copies are equal if only nested code differs.
    """
    consts = (_place(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_consts=tuple(consts))


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno
