"""Mutates the core's tables, one change at a time, and fails if no test notices a change."""

import argparse
import importlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from typing import Any

import hypothesis  # noqa: F401 - loaded once, before a process is made for each mutant

from scripts.mutants.child import TESTS, judge, remember, sound
from scripts.mutants.tables import TABLES, Mutant, Table, mutants_of
from scripts.mutants.trying import EQUIVALENT, SURVIVED, passes


def main() -> None:
    """Judge every mutant; exit with 1 if one survived."""
    parser = argparse.ArgumentParser(prog="scripts/mutate-rules", description=__doc__)
    names = [table.name for table in TABLES]
    parser.add_argument(
        "--only", metavar="TABLE", nargs="+", choices=names, default=names, help=f"of {names}"
    )
    only = parser.parse_args().only
    counted = survived = 0
    _check(passes, [TESTS])
    for table in TABLES:
        if table.name in only:
            for mutant, became in judged(table):
                counted += became != EQUIVALENT
                survived += became == SURVIVED
                if became in (EQUIVALENT, SURVIVED):
                    print(f"{became}: {mutant}", flush=True)
    print(f"{counted} mutants, {survived} survived")
    sys.exit(1 if survived else 0)


def judged(table: Table) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant of a table with its result, a value of `RESULTS`."""
    mutants = list(mutants_of(table, getattr(importlib.import_module(table.module), table.name)))
    _check(sound, table)
    remember(table)
    with _processes() as pool:
        yield from zip(mutants, pool.imap(judge, mutants), strict=True)


def _check(tests: Callable[[Any], bool], of: object) -> None:
    with _processes() as pool:
        if not pool.apply(tests, (of,)):
            sys.exit("tests/lifecycle fails already: run scripts/test tests/lifecycle")


def _processes() -> Pool:
    """Return a pool that runs each call in a copy of this process, on the cores it may use."""
    context = multiprocessing.get_context("fork")
    return context.Pool(len(os.sched_getaffinity(0)), maxtasksperchild=1)


if __name__ == "__main__":
    main()
