"""The text of an action's key is written and read in `lifecycle/model/key.py` alone."""

import ast
from collections.abc import Iterator

from lifecycle.model.key import KeyKind
from tests.house.source import PACKAGES, modules

WRITES_KEYS = "lifecycle.model.key"
#: String methods that split a text or compare a part of it.
TAKES_APART = frozenset(
    {"endswith", "partition", "removeprefix", "replace", "rpartition", "rsplit", "split"}
    | {"startswith"}
)


def literals(tree: ast.Module) -> Iterator[ast.expr]:
    """The strings of a module that start like the text of a key."""
    kinds = tuple(f"{kind}{mark}" for kind in KeyKind for mark in ":#")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if node.value.startswith(kinds) and " " not in node.value:
            yield node


def parts(tree: ast.Module) -> Iterator[ast.expr]:
    """The expressions of a module that use a part of `str(key)` or of an attribute `key`."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else node
        if not isinstance(node, ast.expr) or not isinstance(called, ast.Attribute | ast.Subscript):
            continue
        method = called.attr in TAKES_APART if isinstance(called, ast.Attribute) else True
        if method and _is_key(called.value):
            yield node


def _is_key(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return any(_is_key(argument) for argument in node.args)
    return isinstance(node, ast.Attribute) and node.attr == "key"


def test_no_module_writes_the_text_of_a_key_or_takes_one_apart() -> None:
    found = [
        f"{module.name}:{node.lineno}: {ast.unparse(node)}"
        for module in modules(*PACKAGES)
        if module.name != WRITES_KEYS
        for node in (*literals(module.tree), *parts(module.tree))
    ]
    assert found == []
