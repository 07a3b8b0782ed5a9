"""Who may know whom. A new arrow is a decision: it is made here, in a line of a table."""

import pytest

from tests.house.source import ROOMS, Module, modules

#: Between the rooms, exactly five arrows; `bot` may know every file of the others.
BETWEEN_ROOMS = {
    "bot": {"lifecycle", "runtimes", "config"},
    "runtimes": {"lifecycle.facts", "lifecycle.status", "lifecycle.text"},
    "config": {"lifecycle.policy"},
    "lifecycle": set[str](),
}

#: Known to all of `bot` but the leaves: the time, the places, the steps.
GROUND = {"clock", "journal", "layout"}

#: Rooms that know the words of `lifecycle` and nothing of `bot`, so never each other.
LEAVES = {
    "clock",
    "commands",
    "events",
    "github",
    "layout",
    "log",
    "plain",
    "redaction",
    "store",
    "visible",
    "words",
}

#: Inside `bot`, beside the ground. Read from the top: nothing knows what stands above it.
INSIDE_BOT = {
    "cli": {
        "account",
        "app",
        "archive",
        "asking",
        "bars",
        "commands",
        "github",
        "identities",
        "limits",
        "models",
        "policies",
        "prompts",
        "redaction",
        "releases",
        "replay",
        "retention",
        "rows",
        "serve",
        "setup",
        "sites",
        "store",
        "transcripts",
        "web",
        "words",
    },
    "setup": {"events", "github"},
    "serve": {"app", "log", "prompts", "redaction", "store", "web"},
    "app": {"parts", "retention", "terminals", "ticker", "web"},
    "parts": {
        "account",
        "act",
        "agents",
        "archive",
        "engine",
        "github",
        "identities",
        "inbox",
        "leading",
        "limits",
        "looks",
        "models",
        "movers",
        "outbox",
        "outsiders",
        "people",
        "policies",
        "prices",
        "prompts",
        "reconcile",
        "redaction",
        "redeliver",
        "repository_config",
        "retention",
        "sites",
        "starting",
        "store",
        "watch_access",
        "watch_agents",
        "watch_comments",
        "watch_issues",
        "watch_pulls",
        "web",
        "wishes",
    },
    "web": {
        "asking",
        "bars",
        "commands",
        "identities",
        "inbox",
        "limits",
        "meter",
        "models",
        "plain",
        "policies",
        "rows",
        "store",
        "terminals",
        "transcripts",
        "words",
    },
    "replay": {"inbox", "policies", "store"},
    "leading": {"store"},
    "ticker": set[str](),
    "wishes": {"asking", "github", "people", "retries", "store", "watch_issues", "words"},
    "asking": {"commands", "store"},
    "rows": {"plain", "store"},
    "bars": set[str](),
    "prices": set[str](),
    "watch_comments": {"github", "inbox", "store"},
    "inbox": {"commands", "events", "store"},
    "act": {
        *("agents", "github", "landing", "outbox", "people", "publishing", "redaction", "sites"),
        *("store", "words"),
    },
    "landing": {"github", "outbox", "people", "publishing", "sites", "store", "words"},
    "publishing": {"github", "outbox", "redaction", "sites", "store", "visible", "words"},
    "agents": {
        *("answers", "archive", "identities", "outbox", "prompts", "releases", "sites"),
        *("starting", "store", "visible", "watch_agents"),
    },
    "starting": {
        *("archive", "github", "identities", "models", "notes", "outbox", "prompts", "releases"),
        *("sites", "store", "words"),
    },
    "answers": {"outbox", "sites", "store", "watch_agents"},
    "reconcile": {"github", "looks", "store", "watch_issues"},
    "watch_issues": {
        *("github", "identities", "labels", "looks", "people", "reopened", "retries", "store"),
        "watch_pulls",
    },
    "watch_access": {"github", "store"},
    "redeliver": {"github", "store"},
    "repository_config": {"github", "policies", "store", "words"},
    "policies": {"store"},
    "identities": {"store"},
    "watch_pulls": {"github", "labels", "looks", "people", "reopened", "retries", "store"},
    "looks": {"github", "store"},
    "reopened": {"github", "people", "store"},
    "movers": {"sites", "store"},
    "watch_agents": {"probes", "sites", "store"},
    "probes": {"store"},
    "outbox": {"engine", "store"},
    "engine": {"store"},
    "people": {"github"},
    "outsiders": {"github", "retries", "store", "words"},
    "account": {"github", "redaction"},
    "retries": {"github"},
    "labels": {"github"},
    "retention": {"archive", "sites", "store"},
    "releases": {"archive", "sites", "store"},
    "terminals": {"redaction", "sites", "store", "transcripts"},
    "transcripts": {"archive", "redaction", "store"},
    "archive": {"redaction", "sites", "store"},
    "sites": set[str](),
    "models": {"store"},
    "prompts": {"visible"},
    "notes": set[str](),
    "meter": set[str](),
    "limits": set[str](),
    "journal": set[str](),
    "demo": set[str](),  #: A GitHub to stand in for the real one: it shares no code with the bot.
}

#: What only these may import, because it costs much or binds to one outside thing.
KEEPERS = {
    "githubkit": {"bot.github"},
    "libtmux": {"runtimes.tmux"},
    "litestar": {"bot.web", "bot.app", "bot.demo"},
    "uvicorn": {"bot.web", "bot.app", "bot.demo"},
    "apscheduler": {"bot.ticker"},
    # OpenCode keeps its conversations in a database of its own, which is archived as one.
    "sqlite3": {"bot.store", "bot.archive", "bot.cli.doctor", "runtimes.agents"},
    "typer": {"bot.cli", "bot.demo"},
}

ALL = modules(*ROOMS)


def part(name: str) -> str:
    """Of a module of `bot`, the room or file directly in it."""
    return name.split(".")[1] if "." in name else ""


def inside(module: str, place: str) -> bool:
    return module == place or module.startswith(f"{place}.")


def test_rooms_know_only_the_rooms_their_arrows_point_to() -> None:
    wrong = [
        f"{module.name} -> {name}"
        for module in ALL
        for name in module.imports
        if name.partition(".")[0] in ROOMS
        and name.partition(".")[0] != module.room
        and not any(inside(name, allowed) for allowed in BETWEEN_ROOMS[module.room])
    ]
    assert wrong == []


def test_inside_bot_every_arrow_is_drawn() -> None:
    wrong = [
        f"{module.name} -> {name}"
        for module in modules("bot")
        for name in module.imports
        if name.startswith("bot.") and part(name) != part(module.name)
        if not _may_know(part(module.name), part(name))
    ]
    assert wrong == []


def _may_know(knower: str, known: str) -> bool:
    if knower in LEAVES:
        return False
    return known in INSIDE_BOT.get(knower, set()) or known in GROUND


def test_every_part_of_bot_has_its_place() -> None:
    parts = {part(module.name) for module in modules("bot")} - {""}
    assert parts - LEAVES == INSIDE_BOT.keys()
    assert parts >= LEAVES


def test_no_arrow_points_upwards() -> None:
    order = list(INSIDE_BOT)
    upwards = [
        f"{knower} -> {known}"
        for knower, allowed in INSIDE_BOT.items()
        for known in allowed - LEAVES
        if order.index(known) <= order.index(knower)
    ]
    assert upwards == []


@pytest.mark.parametrize("library", KEEPERS)
def test_a_library_stays_where_it_is_kept(library: str) -> None:
    wrong = [
        module.name
        for module in ALL
        if any(inside(name, library) for name in module.imports)
        and not any(inside(module.name, keeper) for keeper in KEEPERS[library])
    ]
    assert wrong == []


def test_no_files_import_each_other_in_a_circle() -> None:
    known = {module.name: _own(module) for module in ALL}
    circles = [name for name in known if name in _reached(name, known)]
    assert circles == []


def _own(module: Module) -> set[str]:
    return {name for name in module.runtime_imports if name.partition(".")[0] in ROOMS}


def _reached(start: str, known: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(known[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += known.get(name, ())
    return reached
