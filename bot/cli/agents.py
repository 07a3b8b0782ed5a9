"""The commands about agents."""

import os
from typing import Annotated

import typer

from bot.cli.options import PROBLEM, Config, Json

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Agent.")]


@app.callback()
def agents(ctx: typer.Context, config: Config = None, as_json: Json = False) -> None:
    """Show agents, their results and the health of each agent type."""
    if ctx.invoked_subcommand is not None:
        return
    from rich.console import Group
    from rich.text import Text

    from bot.cli import agent_health, context, screens, tables
    from bot.decide.assignment import all_agents
    from bot.system.paths import Paths

    installed = context.installation(config, os.environ)
    settings = installed.settings
    records = []
    if Paths(settings.data).database.exists():
        with context.store(settings) as store:
            records = store.agents.records()
    records = all_agents(records, settings.identities)
    checked = agent_health.check_agents(
        installed, [agent_health.AgentCase(type=name) for name in settings.agent_types]
    )
    if as_json:
        screens.show_json({"agents": records, "types": checked})
    else:
        screens.show(Group(tables.agents(records), Text(), agent_health.types(checked)))


@app.command()
def show(name: Name, config: Config = None, as_json: Json = False) -> None:
    """Show one agent: sessions, outcomes and cost."""
    from bot.cli import context, screens, tables
    from bot.decide.assignment import all_agents
    from bot.system.clock import utc_now
    from bot.system.paths import Paths

    settings = context.settings(config)
    records, sessions = [], []
    if Paths(settings.data).database.exists():
        with context.store(settings) as store:
            records, sessions = store.agents.records(), store.sessions.all()
    record = tables.record_of(all_agents(records, settings.identities), name)
    theirs = [one for one in sessions if one.agent_name == name]
    if as_json:
        screens.show_json(record)
    else:
        identity = settings.identities.get(name)
        screens.show(tables.agent(record, identity, theirs, utc_now()))


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Agent or agent type.")],
    config: Config = None,
    ask: Annotated[
        bool, typer.Option("--round-trip", help="Start the program and ask the model for one word.")
    ] = False,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit of the round trip.")
    ] = 180.0,
    as_json: Json = False,
) -> None:
    """Check whether an agent can start, with a remedy for each problem."""
    from bot.cli import agent_health, context, screens
    from bot.cli.smoke_test import smoke_test

    installed = context.installation(config, os.environ)
    checked = agent_health.check_agents(installed, agent_health.cases_of(installed.settings, name))
    answers = {
        one.case: smoke_test(installed, one.case, patience)
        for one in checked
        if ask and not one.problems
    }
    if as_json:
        screens.show_json([{"health": one, "round_trip": answers.get(one.case)} for one in checked])
    else:
        for one in checked:
            screens.show(agent_health.detail(one))
            if answer := answers.get(one.case):
                screens.show(
                    agent_health.round_trip(
                        answer.says, answer.remedy, answer.seconds, succeeded=answer.succeeded
                    )
                )
    if any(one.problems for one in checked) or not all(one.succeeded for one in answers.values()):
        raise typer.Exit(PROBLEM)
