"""The mutations of the core's tables: that all tables are in, and that a mutant is what it says."""

import ast
import importlib

import pytest

from lifecycle.signals import Signals, Stage
from lifecycle.status import Status
from scripts.mutants.tables import TABLES, Table, mutants_of
from tests.house.source import modules

RULES = next(table for table in TABLES if table.name == "RULES")


def rows_of(table: Table) -> tuple[object, ...]:
    return tuple(getattr(importlib.import_module(table.module), table.name))


def test_every_table_of_the_core_is_mutated() -> None:
    tables = {
        f"{module.name}.{line.target.id}"
        for module in modules("lifecycle")
        for line in module.tree.body
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and not line.target.id.startswith("_")
        and isinstance(line.value, ast.Tuple)
        and isinstance(line.value.elts[0], ast.Call | ast.Name)
    }
    assert tables == {f"{table.module}.{table.name}" for table in TABLES}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_no_mutant_is_the_table_itself_and_each_differs_in_its_own_rows(table: Table) -> None:
    rows = rows_of(table)
    for mutant in mutants_of(table, rows):
        wrong = mutant.of(rows)
        assert wrong != rows, mutant
        assert wrong[: mutant.row] == rows[: mutant.row]
        assert wrong[mutant.row + 2 :] == rows[mutant.row + 2 :] or mutant.change == "drop"


def test_each_row_is_dropped_swapped_negated_and_changed() -> None:
    rows = rows_of(RULES)
    of_first = [mutant for mutant in mutants_of(RULES, rows) if mutant.row == 0]
    assert [mutant.change for mutant in of_first] == [
        *("drop", "swap", "negate when"),
        *("change status", "change reason", "change because"),
    ]
    drop, swap, negate, *changes = (mutant.of(rows) for mutant in of_first)
    running = Signals(stage=Stage.RUNNING)
    assert drop == rows[1:]
    assert swap[:2] == (rows[1], rows[0])
    assert negate[0].when(running) is not rows[0].when(running)  # type: ignore[attr-defined]
    assert changes[0][0].status is not Status.CLEANUP
