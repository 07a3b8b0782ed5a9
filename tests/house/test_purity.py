"""The core is pure; only the packages that serve HTTP are asynchronous."""

import ast

import pytest

from tests.house.source import PACKAGES, Module, modules

#: Modules of the standard library without side effects.
PURE = {
    "collections",
    "collections.abc",
    "datetime",
    "enum",
    "functools",
    "hashlib",
    "itertools",
    "msgspec",
    "msgspec.structs",
    "re",
    "string",
    "typing",
}

#: Calls with side effects. `datetime` is pure except for its clocks.
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}
CLOCKS = {"now", "utcnow", "today"}

#: The only packages with async functions.
ASYNC_ROOMS = ("bot.web", "bot.model_proxy", "bot.system.http_server", "bot.demo")


@pytest.mark.parametrize("module", modules("lifecycle"), ids=lambda module: module.name)
def test_the_core_imports_only_pure_modules(module: Module) -> None:
    foreign = {name for name in module.imports if not name.startswith("lifecycle")}
    assert foreign <= PURE


@pytest.mark.parametrize("module", modules("lifecycle"), ids=lambda module: module.name)
def test_the_core_calls_no_clock_and_no_io(module: Module) -> None:
    calls = [node.func for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    names = {call.id for call in calls if isinstance(call, ast.Name)}
    methods = {call.attr for call in calls if isinstance(call, ast.Attribute)}
    assert names & IMPURE_CALLS == set()
    assert methods & CLOCKS == set()


def test_only_the_web_packages_are_asynchronous() -> None:
    coloured = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    wrong = [
        f"{module.path}:{node.lineno}"
        for module in modules(*PACKAGES)
        if not module.name.startswith(ASYNC_ROOMS)
        for node in ast.walk(module.tree)
        if isinstance(node, coloured)
    ]
    assert wrong == []
