"""Which package may import which. A new arrow is a decision, made by adding it to a table here."""

import ast
import re

import pytest

from tests.house.source import PACKAGES, Module, modules

#: Between the top-level packages, exactly five arrows.
BETWEEN_PACKAGES = {
    "bot": {"lifecycle", "runtimes", "config"},
    "runtimes": {"lifecycle.model"},
    "config": {"lifecycle.model"},
    "lifecycle": set[str](),
}

#: Inside `bot`: each package with those it imports. Every package may import `system`.
INSIDE_BOT = {
    "cli": {"app", "web", "setup", "act", "archive", "decide", "github", "intake"}
    | {"model_proxy", "notify", "show", "store", "text"},
    "app": {"web", "act", "archive", "decide", "github", "intake", "model_proxy", "notify"}
    | {"observe", "show", "store", "text"},
    "web": {"github", "intake", "model_proxy", "show", "store", "text"},
    "setup": {"github", "intake"},
    "act": {"archive", "github", "model_proxy", "store", "text"},
    "intake": {"github", "store", "text"},
    "observe": {"github", "store", "text"},
    "decide": {"store"},
    "show": {"archive", "store", "text"},
    "archive": {"store"},
    "model_proxy": {"store"},
    "notify": {"store", "text"},
    "github": set[str](),
    "store": set[str](),
    "text": set[str](),
    "system": set[str](),
    "demo": set[str](),  # The stand-in for GitHub shares no code with the bot.
}

#: Layers of the pure core: each may import those before it.
LAYERS = ("model", "read", "judge", "react")

#: Libraries that are slow to import or bind to one service, and who may import them.
KEEPERS = {
    "githubkit": {"bot.github"},
    "libtmux": {"runtimes.tmux_servers"},
    "litestar": {"bot.web", "bot.model_proxy", "bot.system.http_server", "bot.demo"},
    "uvicorn": {"bot.system.http_server", "bot.demo"},
    "apscheduler": {"bot.app.workers"},
    # OpenCode keeps its conversations in a database of its own, which is archived as one.
    "sqlite3": {"bot.store", "bot.archive.archiver", "bot.cli.doctor", "bot.cli.completion"}
    | {"runtimes.agents", "runtimes.local_records"},
    "markdown_it": {"bot.text.markdown", "bot.text.markdown_parser"},
    "typer": {"bot.cli", "bot.demo"},
    "textual": {"bot.cli.top", "bot.cli.top_dialogs"},
    "pythonjsonlogger": {"bot.system.log"},
    "prometheus_client": {"bot.system.metrics", "bot.web.metrics"},
    "opentelemetry": {"bot.system.tracing"},
    "apprise": {"bot.notify.apprise_sender"},
}

#: Modules inside a host, which open files, processes or terminals of sessions.
HOST_SIDE = (
    "runtimes.agents.shared.files",
    "runtimes.local_runs",
    "runtimes.local_steps",
    "runtimes.supervise",
    "runtimes.supervised",
    "runtimes.tmux",
    "runtimes.workspaces.refs",
    "runtimes.workspaces.repositories",
    "runtimes.workspaces.steering",
)

#: What observers may not do in the store: create sessions, grant commands, order actions.
_CREATES = r"sessions\.create|outbox\.add\w*|commands\.(add\w*|authorize|grant|refuse)$"

ALL = modules(*PACKAGES)


def part(name: str) -> str:
    """The second part of a module name, such as `store` in `bot.store.schema`; empty for `bot`."""
    return name.split(".")[1] if "." in name else ""


def inside(module: str, place: str) -> bool:
    return module == place or module.startswith(f"{place}.")


def test_top_level_packages_import_only_what_their_arrows_allow() -> None:
    wrong = [
        f"{module.name} -> {name}"
        for module in ALL
        for name in module.imports
        if name.partition(".")[0] in PACKAGES
        and name.partition(".")[0] != module.package
        and not any(inside(name, allowed) for allowed in BETWEEN_PACKAGES[module.package])
    ]
    assert wrong == []


def test_packages_of_the_bot_import_only_what_their_arrows_allow() -> None:
    wrong = {
        f"{module.name} -> {name}"
        for module in modules("bot")
        for name in module.imports
        if inside(name, "bot") and part(name) not in {part(module.name), "", "system"}
        if part(name) not in INSIDE_BOT[part(module.name)]
    }
    assert wrong == set()


def test_every_package_of_the_bot_is_in_the_table_of_arrows() -> None:
    assert {part(module.name) for module in modules("bot")} - {""} == INSIDE_BOT.keys()


def test_layers_of_the_core_import_only_lower_layers() -> None:
    wrong = {
        f"{module.name} -> {name}"
        for module in modules("lifecycle")
        if part(module.name) in LAYERS
        for name in module.imports
        if inside(name, "lifecycle") and part(name) not in {part(module.name), ""}
        if part(name) not in LAYERS[: LAYERS.index(part(module.name))]
    }
    assert wrong == set()


@pytest.mark.parametrize("library", KEEPERS)
def test_a_library_is_imported_only_where_it_belongs(library: str) -> None:
    wrong = [
        module.name
        for module in ALL
        if any(inside(name, library) for name in module.imports)
        and not any(inside(module.name, keeper) for keeper in KEEPERS[library])
    ]
    assert wrong == []


def test_the_bot_opens_no_file_or_terminal_of_a_session_beside_the_host() -> None:
    wrong = [
        f"{module.name} -> {name}"
        for module in modules("bot")
        for name in module.imports
        if any(inside(name, place) for place in HOST_SIDE)
    ]
    assert wrong == []


def test_only_the_outbox_writes_to_github() -> None:
    wrong = [
        f"{module.name}: {chain}"
        for module in modules("bot")
        if part(module.name) not in {"act", "github", "demo"}
        for chain in _chains(module)
        if re.search(r"github\.(write|reviews|reports|merges)(\.|$)", chain)
    ]
    assert wrong == []


def test_observers_only_record_facts() -> None:
    wrong = [
        f"{module.name}: {chain}"
        for module in modules("bot")
        if part(module.name) == "observe"
        for chain in _chains(module)
        if re.search(_CREATES, chain)
    ]
    assert wrong == []


def _chains(module: Module) -> set[str]:
    """Every chain of attributes in a module, such as `self._github.write.comment`."""
    return {ast.unparse(node) for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}


def test_there_are_no_import_cycles() -> None:
    known = {module.name: _own(module) for module in ALL}
    circles = [name for name in known if name in _reached(name, known)]
    assert circles == []


def _own(module: Module) -> set[str]:
    return {name for name in module.imports if name.partition(".")[0] in PACKAGES}


def _reached(start: str, known: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(known[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += known.get(name, ())
    return reached
