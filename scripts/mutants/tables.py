"""Lists the tables of the core that are mutated, and makes the mutations of a row."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

Rows = tuple[Any, ...]
Rowed = Rows | Mapping[str, Any]  #: A table as the core has it: a tuple of rows, or rows by name.


class Table(NamedTuple):
    """One table of `lifecycle/`."""

    module: str
    name: str
    conditions: tuple[str, ...]  #: Fields of a row that say when it applies.
    results: tuple[str, ...]  #: Fields of a row with its result.
    tests: tuple[str, ...]  #: Files of tests/lifecycle that most likely fail for a mutant.
    of_signals: bool = False  #: Whether rows see only signals, all of which can be listed.


#: The fields of the `Finding` that a row which is a function returns, if it applies.
FUNCTION: Final = ("key", "reason", "because")

TABLES: Final = (
    Table(
        "lifecycle.judge.rules",
        "RULES",
        ("when",),
        ("status", "reason", "because"),
        ("test_rules.py", "test_sentences.py"),
        of_signals=True,
    ),
    Table(
        "lifecycle.judge.rules",
        "BLOCKERS",
        ("when",),
        ("name", "sentence"),
        ("test_rules.py", "test_sentences.py"),
        of_signals=True,
    ),
    Table(
        "lifecycle.react.reactions",
        "REACTIONS",
        ("statuses", "when"),
        ("then",),
        ("test_reactions.py", "test_messages.py", "test_runs.py"),
    ),
    Table(
        "lifecycle.judge.escalations",
        "ESCALATIONS",
        (),
        FUNCTION,
        (
            *("test_escalations.py", "test_escalation_order.py", "test_protected_paths.py"),
            *("test_missing_checks.py", "test_disputed_checks.py", "test_rewordings.py"),
            *("test_landing.py", "test_reruns.py", "test_person_pushes.py", "test_off_branch.py"),
        ),
    ),
    Table(
        "lifecycle.judge.stalls", "STALLS", (), FUNCTION, ("test_stalls.py", "test_sentences.py")
    ),
    Table("lifecycle.judge.waits", "WAITS", ("when",), ("seconds", "since"), ("test_overdue.py",)),
    Table("lifecycle.judge.pauses", "PAUSES", (), FUNCTION, ("test_pauses.py",)),
    Table(
        "lifecycle.read.budgets",
        "BUDGETS",
        (),
        # Not `dollars`: to the session's own dollars, more in proportion is the same.
        ("name", "setting", "spent", "says", "of_day", "seconds"),
        ("test_budgets.py",),
    ),
    Table(
        "lifecycle.judge.commands",
        "COMMAND_RULES",
        ("works", "ineffective"),
        ("applied", "otherwise", "if_ineffective", "fault"),
        ("test_command_answers.py", "test_commands.py"),
    ),
)


class Mutant(NamedTuple):
    """One mutation of one row of a table."""

    table: Table
    row: int  #: Its index, from 0.
    change: str  #: `drop`, `swap`, `negate FIELD`, `change FIELD`.
    says: str  #: The row, for people.

    def __str__(self) -> str:
        return f"{self.table.name} {self.says}: {self.change}"

    def of(self, table: Rowed) -> Rowed:
        """Return the mutated table. In a mapping, rows are swapped by exchanging their values."""
        if not isinstance(table, Mapping):
            return self._wrong(table)
        names = [*table]
        if self.change == "drop":
            del names[self.row]
        return dict(zip(names, self._wrong(tuple(table.values())), strict=True))

    def _wrong(self, rows: Rows) -> Rows:
        before, row, after = rows[: self.row], rows[self.row], rows[self.row + 1 :]
        what, _, field = self.change.partition(" ")
        if what == "drop":
            return before + after
        if what == "swap":
            return (*before, after[0], row, *after[1:])
        wrong = _changed_function if callable(row) else _changed
        return (*before, wrong(row, what, field, rows), *after)


def mutants_of(table: Table, rowed: Rowed) -> Iterator[Mutant]:
    """Yield every mutation that changes the table; fields with an empty text are not mutated."""
    rows = tuple(rowed.values()) if isinstance(rowed, Mapping) else rowed
    names = list(rowed) if isinstance(rowed, Mapping) else [_name(row) for row in rows]
    for place, row in enumerate(rows):
        # Without the reply `if_ineffective`, `ineffective` has no effect.
        asked = [f for f in table.conditions if f != "ineffective" or row.if_ineffective]
        negations = ["negate row"] if callable(row) else [f"negate {f}" for f in asked]
        swaps = ["swap"] if place + 1 < len(rows) else []
        there = [field for field in table.results if getattr(row, field, None) != ""]
        # A command that works in no status is refused before it is examined.
        unused = "fault" if getattr(row, "works", None) == frozenset() else ""
        changes = [f"change {field}" for field in there if field != unused]
        for change in ("drop", *swaps, *negations, *changes):
            mutant = Mutant(table, place, change, f"{place + 1} ({names[place]})")
            if mutant.of(rowed) != rowed:
                yield mutant


def _name(row: Any) -> str:
    name = getattr(row, "__name__", None) or getattr(row, "name", None) or row[0]
    return getattr(name, "__qualname__", str(name)).partition(".")[0]


def _changed(row: Any, what: str, field: str, rows: Rows) -> Any:
    value = getattr(row, field)
    if what == "negate":
        return row._replace(**{field: _negated(value, field, rows)})
    return row._replace(**{field: _other(value, [getattr(each, field) for each in rows])})


def _negated(value: Any, field: str, rows: Rows) -> Any:
    """Return the opposite of a row's field: the negated condition, or the complement of a set.

    The complement contains the values that are in other rows' sets but not in this one's.
    """
    if callable(value):
        return lambda *given: not value(*given)
    return frozenset().union(*(getattr(each, field) for each in rows)) - value


def _other(value: Any, values: list[Any]) -> Any:
    """Return a wrong result in place of `value`: a wrong sentence, or the result of another row."""
    if isinstance(value, str) and type(value) is str:
        return "something else"
    others = [other for other in values if other is not None and other != value]
    place = values.index(value)
    return next((other for other in values[place + 1 :] if other in others), others[0])


def _changed_function(row: Callable[..., Any], what: str, field: str, rows: Rows) -> Any:
    """Return a row with a wrong result where it applies, or that applies where it should not."""
    from lifecycle.judge.stalls import Finding
    from lifecycle.model import keys
    from lifecycle.model.status import Reason

    def negated(view: Any) -> Any:
        return None if row(view) else Finding(keys.stuck("mutant", None), Reason.NO_SLOT, "mutant")

    def changed(view: Any) -> Any:
        found = row(view)
        wrong: dict[str, Any] = {"reason": Reason.NO_SLOT, "key": keys.stuck("mutant", None)}
        if not isinstance(found, Finding):
            return found
        value: Any = wrong.get(field, "mutant")
        return found._replace(**{field: value})

    return negated if what == "negate" else changed
