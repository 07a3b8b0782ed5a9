"""Judges one mutant of a table in a process of its own."""

import ast
import itertools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

from scripts.mutants.tables import Mutant, Rowed, Table
from scripts.mutants.trying import (
    EQUIVALENT,
    KILLED,
    ROOT,
    SURVIVED,
    end_after,
    judged_alone,
    passes,
)

TESTS = ROOT / "tests/lifecycle"
#: Longer than the tests take; a mutant that exceeds this limit counts as killed.
LIMIT_SECONDS = 300

#: Files of tests that take seconds: tried last.
SLOW = (
    *("test_overdue.py", "test_receipts.py", "test_passed_over.py", "test_odd_values.py"),
    *("test_laws_of_change.py", "test_laws.py", "test_any_life.py"),
)

#: The core's answers without a mutant. The processes that judge are forked from one with them.
_known: list[bytes] = []


def remember(table: Table) -> None:
    """Record the core's answers, with which those of mutants are compared."""
    _known[:] = answers(table)


def judge(mutant: Mutant) -> str:
    """Return the result for a mutant of the table that was last given to `remember`."""
    return judged_alone(lambda: _judge(mutant))


def _judge(mutant: Mutant) -> str:
    end_after(LIMIT_SECONDS)
    install(mutant.table, mutant.of)
    likely = [TESTS / name for name in mutant.table.tests]
    slow = [TESTS / name for name in SLOW if name not in mutant.table.tests]
    others = sorted({*TESTS.glob("test_*.py")} - {*likely, *slow})
    if not passes(likely):
        return KILLED
    if mutant.change == "swap" and _alike(mutant.table):
        return EQUIVALENT
    return SURVIVED if passes(others) and passes(slow) else KILLED


def sound(table: Table) -> bool:
    """Whether the table's own tests pass with the unchanged table installed."""
    install(table, lambda rows: rows)
    return passes([TESTS / name for name in table.tests])


def answers(table: Table) -> Iterator[bytes]:
    """Yield the core's answers as JSON for every combination of signals, or of facts."""
    from msgspec import json

    from lifecycle.decide import decide
    from lifecycle.judge.rules import blockers_for, rule_for
    from lifecycle.model.policy import Mode, Policy
    from tests.lifecycle.troubles import every_trouble
    from tests.lifecycle.universe import NOW, every_fact, every_signal

    if table.of_signals:
        for signals in every_signal():
            rule = rule_for(signals)
            blockers = [(row.name, row.sentence) for row in blockers_for(signals)]
            yield json.encode((rule.status, rule.reason, rule.because, blockers))
        return
    policies = (Policy(), Policy(mode=Mode.MERGE))
    for facts in itertools.chain(every_fact(), every_trouble()):
        yield json.encode([decide(facts, policy, NOW) for policy in policies])


def install(table: Table, change: Callable[[Rowed], Rowed]) -> None:
    """Reimport the core with a changed table.

    The change is inserted right after the table, so that everything derived from it changes too.
    """
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("lifecycle", "tests"):
            del sys.modules[name]
    path = ROOT / f"{table.module.replace('.', '/')}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    place = next(i for i, line in enumerate(tree.body) if table.name in _assigned(line))
    tree.body.insert(place + 1, *ast.parse(f"{table.name} = _mutated({table.name})").body)
    module = ModuleType(table.module)
    module.__dict__.update({"__file__": str(path), "_mutated": change})
    sys.modules[table.module] = module
    exec(compile(tree, str(path), "exec"), module.__dict__)


def _assigned(line: ast.stmt) -> set[str]:
    targets = [line.target] if isinstance(line, ast.AnnAssign) else getattr(line, "targets", [])
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _alike(table: Table) -> bool:
    try:
        return all(one == other for one, other in zip(_known, answers(table), strict=True))
    except Exception:  # noqa: BLE001 - a mutant may fail in any way, and is not alike then
        return False
