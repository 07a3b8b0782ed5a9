"""Mutates the core's tables, one change at a time, and fails if no test does."""

import argparse
import importlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from functools import partial

import hypothesis  # noqa: F401 - loaded once, before a process is made for each mutant

from scripts.mutants.child import answers, judge, sound
from scripts.mutants.tables import TABLES, Mutant, Table, mutants_of
from scripts.mutants.trying import EQUIVALENT, SURVIVED


def main() -> None:
    """Judge every mutant; exit with 1 where one survived."""
    parser = argparse.ArgumentParser(prog="scripts/mutate-rules", description=__doc__)
    names = [table.name for table in TABLES]
    parser.add_argument("--only", metavar="TABLE", choices=names, help=f"one of {names}")
    only = parser.parse_args().only
    counted = survived = 0
    for table in TABLES:
        if only in (None, table.name):
            for mutant, became in judged(table):
                counted += became != EQUIVALENT
                survived += became == SURVIVED
                if became in (EQUIVALENT, SURVIVED):
                    print(f"{became}: {mutant}", flush=True)
    print(f"{counted} mutants, {survived} survived")
    sys.exit(1 if survived else 0)


def judged(table: Table) -> Iterator[tuple[Mutant, str]]:
    """What becomes of each mutant of a table, in their order."""
    mutants = list(mutants_of(table, getattr(importlib.import_module(table.module), table.name)))
    known = list(answers(table))
    processes = multiprocessing.get_context("fork")
    with processes.Pool(os.cpu_count(), maxtasksperchild=1) as pool:
        if not pool.apply(sound, (table,)):
            sys.exit("tests/lifecycle fails already: run scripts/test tests/lifecycle")
        yield from zip(mutants, pool.imap(partial(judge, known=known), mutants), strict=True)


if __name__ == "__main__":
    main()
