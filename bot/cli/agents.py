"""Implements `mergewright agents` and `mergewright agents show`."""

from pathlib import Path

from rich.console import Group
from rich.text import Text

from bot.cli import agent_health, context, screens, tables
from bot.cli.progress import progress
from bot.cli.reading import configured, reader
from bot.store import AgentRecord
from bot.system.locations import Paths


def show_all(config: Path | None, server: str, *, as_json: bool) -> None:
    """Print the agents and, on the server's own machine, the health of the agent types.

    Raises `CliError`.
    """
    if server:
        with reader(config, server) as source:
            records = source.agents()
        note = "`mergewright agents` on the server's own machine also checks the agent types."
        screen = Group(tables.agents(records), Text(), Text(note, "dim"))
        screens.report({"agents": records, "types": None}, screen, as_json=as_json)
        return
    installed = context.installation(config)
    new = _without_sessions(config)
    if new is None:
        with reader(config, "") as source:
            new = source.agents()
    with progress("Checking the agents ..."):
        checked = agent_health.check_types(installed)
    screen = Group(tables.agents(new), Text(), agent_health.types(checked))
    screens.report({"agents": new, "types": checked}, screen, as_json=as_json)


def show(config: Path | None, server: str, name: str, *, as_json: bool) -> None:
    """Print one agent and, unless `as_json`, its sessions. Raises `CliError`."""
    new = None if server else _without_sessions(config)
    if new is not None:
        found = configured(context.settings(config), name, {one.agent: one for one in new}, ())
    else:
        with reader(config, server) as source:
            found = source.agent(name)
    screens.report(found.record, tables.agent(found), as_json=as_json)


def _without_sessions(config: Path | None) -> list[AgentRecord] | None:
    """Return the configured agents while there is no database yet, otherwise None."""
    settings = context.settings(config)
    if Paths(settings.data).database.exists():
        return None
    return [AgentRecord(agent=name) for name in sorted(settings.identities)]
