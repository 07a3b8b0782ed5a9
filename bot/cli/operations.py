"""Defines the commands about the whole bot: its health and its webhook deliveries."""

from typing import Annotated

import typer

from bot.cli.options import PROBLEM, CliError, Config, Json
from bot.cli.server_option import Server

app = typer.Typer()


@app.command()
def health(config: Config = None, server: Server = "", as_json: Json = False) -> None:
    """Show whether the bot is healthy, and why not; exit 1 if it is not."""
    from contextlib import closing

    from bot.cli import context, remote, screens, tables
    from bot.decide.assignment import caps
    from bot.show.health import health_report
    from bot.system.clock import utc_now

    if server:
        with closing(remote.RemoteServer(server)) as api:
            report = api.health()
    else:
        settings = context.settings(config)
        with context.store(settings) as store:
            report = health_report(store, settings, caps(settings), None, utc_now())
    screens.report(report, tables.health(report), as_json=as_json)
    if not report.healthy:
        raise typer.Exit(PROBLEM)


@app.command()
def deliveries(
    config: Config = None,
    server: Server = "",
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="List the last deliveries in every state, with their effects.",
        ),
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Process failed ones again, e.g. after an upgrade.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List webhook deliveries that could not be processed, or process them again."""
    from contextlib import closing

    from bot.cli import context, screens, tables
    from bot.cli.reading import reader
    from bot.cli.remote import RemoteServer

    if every and retry:
        raise CliError("--all only lists deliveries: leave it out to --retry the failed ones")
    with reader(config, server) as source:
        if every:
            last = source.last_deliveries()
            screens.report(last, tables.deliveries(last), as_json=as_json)
            return
        failed = source.failed_deliveries()
    ids, retried = [one.id for one in failed if retry], 0
    if ids and server:
        with closing(RemoteServer(server)) as remote:
            retried = sum(map(remote.retry_delivery, ids))
    elif ids:
        settings, redact = context.redacting(config)
        with context.store(settings, redact) as store:
            retried = store.deliveries.retry(ids)
    screen = tables.failed_deliveries(failed, retried=retry)
    screens.report({"failed": failed, "retried": retried}, screen, as_json=as_json)
