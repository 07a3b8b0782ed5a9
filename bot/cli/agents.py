"""The commands about agents: who they are, what became of their work, whether they can start."""

import os
from typing import Annotated

import typer

from bot.cli.options import Config, Json
from bot.cli.refused import PROBLEM

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of an agent.")]


@app.callback()
def agents(ctx: typer.Context, config: Config = None, as_json: Json = False) -> None:
    """Show the agents, what became of their work, what types need."""
    if ctx.invoked_subcommand is not None:
        return
    from rich.console import Group
    from rich.text import Text

    from bot.cli import agent_health, capacity, context, screens
    from bot.decide.assignment import all_agents
    from bot.system.paths import Paths

    installed = context.installation(config, os.environ)
    settings = installed.settings
    ledgers = []
    if Paths(settings.data).database.exists():
        with context.store(settings) as store:
            ledgers = store.agents.records()
    ledgers = all_agents(ledgers, settings.identities)
    looked = agent_health.check_agents(
        installed, [agent_health.AgentCase(type=name) for name in settings.agent_types]
    )
    if as_json:
        screens.show_json({"agents": ledgers, "types": looked})
    else:
        screens.show(Group(capacity.agents(ledgers), Text(), agent_health.types(looked)))


@app.command()
def show(name: Name, config: Config = None, as_json: Json = False) -> None:
    """Show one agent: how many sessions, how they ended, what they cost."""
    from bot.cli import capacity, context, screens
    from bot.decide.assignment import all_agents
    from bot.system.clock import utc_now
    from bot.system.paths import Paths

    settings = context.settings(config)
    ledgers, sessions = [], []
    if Paths(settings.data).database.exists():
        with context.store(settings) as store:
            ledgers, sessions = store.agents.records(), store.sessions.all()
    ledger = capacity.one_of(all_agents(ledgers, settings.identities), name)
    theirs = [one for one in sessions if one.agent_name == name]
    if as_json:
        screens.show_json(ledger)
    else:
        identity = settings.identities.get(name)
        screens.show(capacity.record(ledger, identity, theirs, utc_now()))


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of an agent or an agent type.")],
    config: Config = None,
    ask: Annotated[
        bool, typer.Option("--round-trip", help="Start it, and have it answer one word.")
    ] = False,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long that may take.")
    ] = 180.0,
    as_json: Json = False,
) -> None:
    """Check whether an agent can start: program, version, whose key; a remedy for every fault."""
    from bot.cli import agent_health, context, screens
    from bot.cli.smoke_test import smoke_test

    installed = context.installation(config, os.environ)
    looked = agent_health.check_agents(installed, agent_health.cases_of(installed.settings, name))
    answers = {
        one.case: smoke_test(installed, one.case, patience)
        for one in looked
        if ask and not one.problems
    }
    if as_json:
        screens.show_json(
            [{"standing": one, "round_trip": answers.get(one.case)} for one in looked]
        )
    else:
        for one in looked:
            screens.show(agent_health.detail(one))
            if answer := answers.get(one.case):
                screens.show(agent_health.answered(answer.says, answer.seconds, well=answer.well))
                if answer.remedy:
                    screens.show(agent_health.remedied(answer.remedy))
    if any(one.problems for one in looked) or not all(one.well for one in answers.values()):
        raise typer.Exit(PROBLEM)
