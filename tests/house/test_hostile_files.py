"""Files that agents write are opened in two modules only, which follow no links and use no mmap."""

import ast

import pytest

from tests.house.source import Module, modules

#: Who reads what agents write.
READERS = (
    "runtimes.agents",
    "runtimes.files",
    "runtimes.local_records",
    "runtimes.local_runs",
    "runtimes.local_steps",
    "runtimes.workspaces.refs",
    "bot.archive.archiver",
)
#: The modules that open it, and a program that runs beside the agent, with the agent's rights.
OPENERS = (
    "runtimes.files",
    "runtimes.agents.shared.databases",
    "runtimes.agents.opencode.first_message",
)
#: `glob` and `iterdir` follow links to folders.
FORBIDDEN = {
    *("open", "read_text", "read_bytes", "write_text", "write_bytes", "connect", "mmap"),
    *("glob", "rglob", "iterdir", "walk"),
}
#: What is called like that and opens no file of an agent, by module.
ALLOWED = {
    "runtimes.agents.shared.adapter": {"glob"},  # Of the operator's own conversations.
    "runtimes.agents.opencode.port": {"connect"},  # To the program's port.
    "runtimes.local_records": {"iterdir"},  # Of the folder of all sessions.
    "bot.archive.archiver": {"open", "walk", "iterdir"},  # Of the archive.
}
#: Functions of `runtimes.files` with such a name.
OURS = {"read_text", "read_bytes", "walk"}


def _reads_agents(module: Module) -> bool:
    return module.name.startswith(READERS) and module.name not in OPENERS


@pytest.mark.parametrize(
    "module",
    [module for module in modules("runtimes", "bot") if _reads_agents(module)],
    ids=lambda module: module.name,
)
def test_readers_open_files_of_agents_through_one_module(module: Module) -> None:
    found = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name not in OURS:
                found.add(name)
            case ast.Call(func=ast.Attribute(attr=name)):
                found.add(name)
    assert found & FORBIDDEN <= ALLOWED.get(module.name, set())
    assert "mmap" not in module.imports
