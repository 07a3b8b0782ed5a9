"""Updates the parts of the documents that are generated from code.

They are between `<!-- generated:NAME -->` and `<!-- /generated -->`. Run by `scripts/generate`.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import typer.main
from litestar.handlers import HTTPRouteHandler

from bot.cli.program import app
from bot.github.github_app import PERMISSIONS
from bot.intake.commands import COMMANDS
from bot.intake.events import EVENTS
from bot.setup.manifest import manifest
from bot.web.api.router import PATH, ROUTES
from bot.web.visitor import NEEDS, Needs, Where
from config import load
from scripts import core_tables

ROOT = Path(__file__).parents[1]
DOCUMENTS = (
    *("README.md", "ARCHITECTURE.md", "docs/agents.md", "docs/api.md", "docs/commands.md"),
    "docs/decisions.md",
    *("docs/github.md", "docs/running.md", "docs/settings.md"),
)

_BLOCK = re.compile(
    r"(?P<head><!-- generated:(?P<name>[\w-]+) -->\n)(?P<body>.*?)(?P<foot><!-- /generated -->)",
    re.DOTALL,
)
_LIST = re.compile(r"\[(?P<says> +# .+)\n(?P<lines>(?:  .+\n)+)\]")
_PARAMETER = re.compile(r"\{(\w+):str\}")
_SETTING = re.compile(r"(?P<key>[a-z-]+) = (?P<value>.+?)\s+# (?P<says>.+)")


def statuses() -> str:
    """Return the table of statuses, each with the condition of its rule."""
    return core_tables.status_table()


def picture() -> str:
    """Return the state diagram of a session as a Mermaid block."""
    return f"```mermaid\n{core_tables.mermaid()}\n```"


def commands() -> str:
    """Return the table of the commands of the command line."""
    return table(("command", "what it does"), _commands(typer.main.get_command(app), "mergewright"))


def comments() -> str:
    """Return the table of the commands that people write in comments."""
    rows = ((f"`{one.usage}`", one.description) for one in COMMANDS.values())
    return table(("comment", "does"), rows)


def api() -> str:
    """Return the table of the API's routes, with the first lines of their docstrings."""
    rows = (
        (f"`{method} {PATH}{_PARAMETER.sub(_named, path)}`", route.summary or "", _needs(route))
        for route in ROUTES
        for method in route.http_methods
        for path in route.paths
    )
    return table(("request", "what it is for", "permission"), rows)


def _needs(route: HTTPRouteHandler) -> str:
    needs: Needs = route.opt[NEEDS]
    where = " in all projects" if needs.where is Where.EVERYWHERE else ""
    return f"`{needs.role.name.lower()}`{where}"


def _named(parameter: re.Match[str]) -> str:
    return parameter[1].upper()


def events() -> str:
    """Return the table of the webhook events that the bot reads."""
    docs = ((name, event.__doc__ or "") for name, event in EVENTS.items())
    rows = ((f"`{name}`", doc.splitlines()[0]) for name, doc in docs)
    return table(("event", "when GitHub sends it"), rows)


def permissions() -> str:
    """Return the table of the permissions that the GitHub App needs."""
    rows = ((f"`{one.name}`", one.level, one.why) for one in PERMISSIONS)
    return table(("permission", "level", "to"), rows)


def app_manifest() -> str:
    """Return an example of the manifest from which GitHub creates the App."""
    asked = manifest("acme", "https://YOUR-SERVER/", "http://127.0.0.1:PORT/created")
    return f"```json\n{json.dumps(asked, indent=2)}\n```"


def settings() -> str:
    """Return the table of settings, with the comments of `config/default.toml`."""
    return table(("setting", "default", "meaning"), _settings())


def of_core(rows: Callable[[], Iterator[tuple[str, ...]]]) -> Callable[[], str]:
    """Return a function that draws a core table; the first of its `rows` is the header."""

    def drawn() -> str:
        head, *lines = rows()
        return table(head, iter(lines))

    return drawn


BLOCKS: Mapping[str, Callable[[], str]] = {
    "statuses": statuses,
    "diagram": picture,
    "commands": commands,
    "comments": comments,
    "api": api,
    "events": events,
    "permissions": permissions,
    "manifest": app_manifest,
    "settings": settings,
    "rules": of_core(core_tables.rules),
    "reactions": of_core(core_tables.reactions),
    "blockers": of_core(core_tables.blockers),
    "escalations": of_core(core_tables.escalations),
    "budgets": of_core(core_tables.budgets),
    "remedies": of_core(core_tables.remedies),
    "command-rules": of_core(core_tables.commands),
}


def filled(text: str) -> str:
    """Return a document with current blocks. Raises `KeyError` for an unknown block."""
    return _BLOCK.sub(
        lambda block: f"{block['head']}{BLOCKS[block['name']]()}\n{block['foot']}", text
    )


def stale() -> list[str]:
    """Return the names of the documents whose blocks differ from the code."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
    return [name for name, text in texts.items() if filled(text) != text]


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """Return a Markdown table; vertical bars in cells are escaped."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines)


def _commands(group: Any, name: str) -> Iterator[tuple[str, ...]]:
    for word, command in group.commands.items():
        if getattr(command, "invoke_without_command", False):
            usage = " ".join((name, word, *map(_usage, command.params)))
            yield f"`{usage}`", command.help.rstrip(".")
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {word}")
        elif not command.hidden:
            usage = " ".join((name, word, *map(_usage, command.params)))
            yield f"`{usage}`", command.help.rstrip(".")


def _usage(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar) if parameter.required else f"[{parameter.metavar}]"
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    option = f"{parameter.opts[0]}{value}"
    return option if parameter.required else f"[{option}]"


def _settings() -> Iterator[tuple[str, ...]]:
    text = (Path(load.__file__).parent / "default.toml").read_text(encoding="utf-8")
    section = ""
    text = _LIST.sub(_on_one_line, re.sub(r"^#(?! )", "", text, flags=re.MULTILINE))
    for line in text.splitlines():
        if line.startswith("["):
            section = re.sub(
                r"(projects|agent-types|agents|notify)\..+", r"\1.NAME", line.strip("[]")
            )
        elif setting := _SETTING.fullmatch(line):
            yield f"`{section}.{setting['key']}`", f"`{setting['value']}`", setting["says"]


def _on_one_line(found: re.Match[str]) -> str:
    return f"[{' '.join(found['lines'].split()).rstrip(',')}]{found['says']}"


def main() -> None:
    """Update the documents; with `--check`, only name outdated ones, and exit with 1 if any is."""
    if sys.argv[1:] == ["--check"]:
        names = stale()
        if names:
            sys.exit(f"{', '.join(names)}: run scripts/generate and commit what it changes")
        return
    if sys.argv[1:]:
        sys.exit("usage: scripts/generate [--check]")
    for name in DOCUMENTS:
        path = ROOT / name
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
