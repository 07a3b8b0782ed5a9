"""Finds the possible mistakes in source code: a missing condition, branch, row or step."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

#: One alternative of a regular expression, without its brackets.
_ALTERNATIVE = re.compile(r"(?<![^|(])(?<!\\[|(])(?!\?)(?:\\.|[^|()\\])+(?![^|)])")
#: Calls whose named arguments are what a reader reports; each is left out once.
_ANSWERS = ("Agent", "replace", "Usage", "_Request")


class Mistake(NamedTuple):
    """A mistake, which `make` makes in the syntax tree that it was found in."""

    says: str  #: The line number and the mistake, in words.
    make: Callable[[], object]


def mistakes(tree: ast.Module) -> Iterator[Mistake]:
    """Yield all mistakes of a module, in an order that depends only on its source."""
    for node in [*ast.walk(tree)]:
        for what, make in _of(node):
            yield Mistake(f"{getattr(node, 'lineno', 1)}: {what}", make)


def _of(node: ast.AST) -> Iterator[tuple[str, Callable[[], object]]]:
    match node:
        case ast.If() | ast.IfExp():
            for says, value in (("never", False), ("always", True)):
                yield f"{says} {ast.unparse(node.test)}", partial(_put, node, "test", value)
        case ast.BoolOp():
            for place, each in enumerate(node.values):
                nothing = ast.Constant(isinstance(node.op, ast.And))
                make = partial(node.values.__setitem__, place, _placed(nothing, each))
                yield f"without {ast.unparse(each)} in {ast.unparse(node)}", make
        case ast.Match():
            for case in node.cases:
                yield f"no case {ast.unparse(case.pattern)}", partial(node.cases.remove, case)
                if case.guard:
                    yield f"no guard {ast.unparse(case.guard)}", partial(_put, case, "guard", True)
        case ast.MatchOr():
            for pattern in node.patterns:
                make = partial(node.patterns.remove, pattern)
                yield f"no case {ast.unparse(pattern)} in {ast.unparse(node)}", make
        case ast.comprehension():
            for asked in node.ifs:
                yield f"always {ast.unparse(asked)}", partial(node.ifs.remove, asked)
        case ast.Compare(left=left, comparators=[ast.Tuple() as row]):
            for each in row.elts:
                make = partial(row.elts.remove, each)
                yield f"no {ast.unparse(each)} for {ast.unparse(left)}", make
        case ast.Call(func=ast.Name(id=name)) if name in _ANSWERS:
            for word in node.keywords:
                yield f"no {word.arg} in {name}", partial(node.keywords.remove, word)
        case ast.Call(func=ast.Attribute(attr="compile"), args=[ast.Constant() as text, *_]):
            yield from _patterns(text)
        case ast.Module():
            yield from _rows(node)
        case ast.FunctionDef() if node.name != "__init__":
            yield from _steps(node)


def _patterns(text: ast.Constant) -> Iterator[tuple[str, Callable[[], object]]]:
    pattern = str(text.value)
    for found in _ALTERNATIVE.finditer(pattern) if "|" in pattern else ():
        without = f"{pattern[: found.start()]}(?!){pattern[found.end() :]}"
        yield f"no {found[0]} in {pattern}", partial(setattr, text, "value", without)


def _rows(module: ast.Module) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the removal of each row of each table of a module."""
    for line in module.body:
        match line:
            case ast.Assign(value=ast.Tuple() as table, targets=[ast.Name(id=name)]):
                for row in table.elts:
                    yield f"{name} without {ast.unparse(row)}", partial(table.elts.remove, row)
            case ast.Assign(value=ast.Dict() as by, targets=[ast.Name(id=name)]):
                for key, value in zip(by.keys, by.values, strict=True):
                    make = partial(_drop_pair, by, key, value)
                    yield f"{name} without {ast.unparse(key or value)}", make


def _steps(function: ast.FunctionDef) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the removal of each call and each assignment to an attribute, item or tuple."""
    for node in ast.walk(function):
        for body in (getattr(node, "body", []), getattr(node, "orelse", [])):
            for place, step in enumerate(body if isinstance(body, list) else []):
                match step:
                    case (
                        ast.Expr(value=ast.Call())
                        | ast.Assign(targets=[ast.Attribute() | ast.Subscript() | ast.Tuple()])
                    ):
                        make = partial(body.__setitem__, place, _placed(ast.Pass(), step))
                        yield f"not {ast.unparse(step)}", make


def _put(node: ast.AST, field: str, value: bool) -> None:
    setattr(node, field, _placed(ast.Constant(value), getattr(node, field)))


def _drop_pair(table: ast.Dict, key: ast.expr | None, value: ast.expr) -> None:
    table.keys.remove(key)
    table.values.remove(value)


def _placed(new: ast.AST, old: ast.AST) -> ast.AST:
    return ast.copy_location(new, old)
