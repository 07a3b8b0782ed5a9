"""Mutation testing covers every decision table and reader."""

import ast
import importlib
import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from lifecycle.judge.signals import Signals, Stage
from lifecycle.model.status import Status
from runtimes.agents import AGENTS
from scripts.mutants.mistakes import mistakes
from scripts.mutants.readers import SHARED, SOURCES
from scripts.mutants.tables import TABLES, Rowed, Rows, Table, mutants_of
from scripts.mutants.trying import KILLED, SURVIVED, end_after, judged_alone
from tests.house.source import ROOT, modules

#: Tables that decide nothing.
SENTENCES = {"lifecycle.judge.reasons.ADVICE"}
RULES = next(table for table in TABLES if table.name == "RULES")


def table_of(table: Table) -> Rowed:
    rowed: Rowed = getattr(importlib.import_module(table.module), table.name)
    return rowed


def rows_of(rowed: Rowed) -> Rows:
    return tuple(rowed.values()) if isinstance(rowed, Mapping) else rowed


def test_every_table_of_the_core_is_mutated() -> None:
    tables = {
        f"{module.name}.{line.target.id}"
        for module in modules("lifecycle")
        for line in module.tree.body
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and not line.target.id.startswith("_")
        and _holds_rows(line.value)
    }
    assert tables - SENTENCES == {f"{table.module}.{table.name}" for table in TABLES}


def _holds_rows(value: ast.expr | None) -> bool:
    """Whether the value is a tuple or dictionary of calls or names, and not one of strings."""
    members = value.elts if isinstance(value, ast.Tuple) else getattr(value, "values", [])
    return bool(members) and isinstance(members[0], ast.Call | ast.Name)


def test_the_tests_named_for_a_table_exist() -> None:
    first = {name for table in TABLES for name in table.tests}
    assert [name for name in first if not (ROOT / "tests/lifecycle" / name).is_file()] == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_mutant_differs_from_the_table_in_its_own_rows(table: Table) -> None:
    rows = rows_of(table_of(table))
    for mutant in mutants_of(table, table_of(table)):
        wrong = rows_of(mutant.of(table_of(table)))
        assert wrong != rows, mutant
        assert wrong[: mutant.row] == rows[: mutant.row]
        assert wrong[mutant.row + 2 :] == rows[mutant.row + 2 :] or mutant.change == "drop"


def test_each_row_is_dropped_swapped_negated_and_changed() -> None:
    rows = rows_of(table_of(RULES))
    of_first = [mutant for mutant in mutants_of(RULES, rows) if mutant.row == 0]
    assert [mutant.change for mutant in of_first] == [
        *("drop", "swap", "negate when"),
        *("change status", "change reason", "change because"),
    ]
    drop, swap, negate, *changes = (rows_of(mutant.of(rows)) for mutant in of_first)
    running = Signals(stage=Stage.RUNNING)
    assert drop == rows[1:]
    assert swap[:2] == (rows[1], rows[0])
    assert negate[0].when(running) is not rows[0].when(running)
    assert changes[0][0].status is not Status.CLEANUP


SOURCE = """
ROWS = ("a", "b")
PATTERN = re.compile(r"one|\\bt(wo|hree)")

def read(self, word):
    self.read = 1
    match word:
        case "c" if self.sure:
            return Agent(error=word)
    return 2 if word and self.read else word in ("d", "e")
"""


def test_reader_mutants_remove_conditions_branches_rows_and_steps() -> None:
    assert {source.agent for source in SOURCES} == {*AGENTS, SHARED}
    descriptions = [mistake.says.partition(": ")[2] for mistake in mistakes(ast.parse(SOURCE))]
    assert sorted(descriptions) == sorted(
        [
            *("ROWS without 'a'", "ROWS without 'b'"),
            *(f"no {each} in one|\\bt(wo|hree)" for each in ("one", "wo", "hree")),
            *("not self.read = 1", "no case 'c'", "no guard self.sure", "no error in Agent"),
            *("never word and self.read", "always word and self.read"),
            *(f"without {each} in word and self.read" for each in ("word", "self.read")),
            *("no 'd' for word", "no 'e' for word"),
        ]
    )


def test_every_reader_mutant_changes_its_source() -> None:
    right = ast.dump(ast.parse(SOURCE))
    for place in range(len(list(mistakes(ast.parse(SOURCE))))):
        tree = ast.parse(SOURCE)
        mistake = list(mistakes(tree))[place]
        mistake.make()
        assert ast.dump(tree) != right, mistake.says


def test_a_pattern_mutant_removes_a_whole_alternative() -> None:
    left = []
    for place in range(3):
        tree = ast.parse(r"P = re.compile(r'^(\(all\)|▲|\|.)')")
        [*mistakes(tree)][place].make()
        left.append(
            next(str(each.value) for each in ast.walk(tree) if isinstance(each, ast.Constant))
        )
    assert left == [r"^((?!)|▲|\|.)", r"^(\(all\)|(?!)|\|.)", r"^(\(all\)|▲|(?!))"]


def test_a_mutant_is_killed_where_it_waits_in_a_library_or_catches_everything(
    tmp_path: Path,
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe.db")

    def waits() -> str:
        end_after(0.02)
        database = sqlite3.connect(f"{pipe.as_uri()}?mode=ro", uri=True)
        database.execute("SELECT 1 FROM sqlite_master")  # Nobody writes to the pipe.
        return SURVIVED

    def computes() -> str:
        end_after(0.02)
        while True:
            with suppress(BaseException):
                sum(range(1000))

    assert (judged_alone(waits), judged_alone(computes)) == (KILLED, KILLED)
    assert judged_alone(lambda: SURVIVED) == SURVIVED


def test_a_mutant_that_cannot_be_judged_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="exited with 99"):
        judged_alone(lambda: "no result")
