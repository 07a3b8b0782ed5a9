"""The `mergewright` command line.

A command imports what it needs when it runs, so that `--help` is fast.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import account, commands, completion, installing, operations, sessions, tokens
from bot.cli.help_groups import Commands, GroupedCommands
from bot.cli.options import PROBLEM, USAGE, CliError, Config, Json, PlainUsage
from bot.cli.server_option import Server
from bot.system.process_memory import close_to_others

app = typer.Typer(
    name="mergewright",
    cls=GroupedCommands,
    help="Takes a labelled GitHub issue to a merged pull request.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None)
agents_app = typer.Typer(cls=Commands, rich_markup_mode=None, invoke_without_command=True)
app.add_typer(config_app, name="config", help="Check a configuration file, or print an example.")
app.add_typer(agents_app, name="agents")
app.add_typer(tokens.app, name="token", help="Create, list and revoke personal tokens.")
app.add_typer(installing.app)
app.add_typer(sessions.app)
app.add_typer(commands.app)
app.add_typer(operations.app)
app.add_typer(account.app)


def main() -> None:
    """Run the command line.

    Exit codes: 0 success, 1 problem, 2 usage or configuration error, 3 damaged database, 130
    interrupted. `sandbox` exits with the code of the command that it ran.
    """
    close_to_others()
    try:
        app(prog_name="mergewright")
    except CliError as refusal:
        print(f"mergewright: {refusal}", file=sys.stderr)
        sys.exit(refusal.code)
    except OSError as failure:  # A full disk, missing rights, a missing program.
        where = f"{failure.filename}: " if failure.filename else ""
        print(f"mergewright: {where}{failure.strerror or failure}", file=sys.stderr)
        sys.exit(PROBLEM)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"mergewright {version('mergewright')}")
        raise typer.Exit


@app.callback()
def options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Takes a labelled GitHub issue to a merged pull request."""


@app.command()
def serve(
    config: Config = None,
    new_database: Annotated[
        bool,
        typer.Option(
            "--new-database",
            help="If there is no database, begin with an empty one even if the data folder holds"
            " files of sessions. An existing database is kept.",
        ),
    ] = False,
) -> None:
    """Run the server: webhooks, web pages and sessions."""
    from bot.cli import context
    from bot.cli.doctor import not_installed, refusals

    installed = context.installation(config)
    settings = installed.settings
    if wanted := refusals(installed):
        raise CliError("\n".join(wanted))
    if lacking := not_installed(installed):
        raise CliError("\n".join(lacking), PROBLEM)

    from bot.app import process as server
    from bot.cli.reload import loader

    load = loader(config)
    try:
        server.serve(settings, installed.secrets, load, new_database=new_database)
    except server.CANNOT_START as failure:
        raise CliError(str(failure), context.exit_code(failure)) from None


@app.command()
def reload(config: Config = None, as_json: Json = False) -> None:
    """Have the running bot load its configuration again, and say what changed."""
    from rich.text import Text

    from bot.cli import reload as reloading
    from bot.cli import screens

    result = reloading.reload(config)
    if result.refused and not as_json:
        raise CliError(f"not reloaded: {result.refused}", PROBLEM)
    says = f"Reloaded: {', '.join(result.changed)}." if result.changed else "Nothing has changed."
    screens.report(result, Text(says), as_json=as_json)
    if result.refused:
        raise typer.Exit(PROBLEM)


@config_app.command()
def check(
    named: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Configuration file, like --config.")
    ] = None,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Check a configuration file, with the secrets it needs, and print every problem."""
    from bot.cli import context, screens
    from bot.cli.doctor import refusals
    from bot.system.isolation import problems

    file = context.file(named or config)
    installed = context.installation(file)
    settings = installed.settings
    found = [*refusals(installed), *problems(settings)]
    projects = [*settings.projects, *settings.installation.repositories]
    if found and not as_json:
        raise CliError("\n".join(f"{file}: {problem}" for problem in found))
    says = f"{file} is valid. Projects: {', '.join(projects) or 'none yet'}."
    value = {"file": str(file), "problems": found, "projects": projects}
    screens.say(value, says, as_json=as_json)
    if found:
        raise typer.Exit(USAGE)


@config_app.command()
def example() -> None:
    """Print a minimal configuration."""
    from importlib.resources import files

    print(files("config").joinpath("example.toml").read_text("utf-8"), end="")


@app.command()
def cleanup(
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be deleted or kept, and why.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete expired data and data that belongs to no session."""
    from bot.archive.retention import Busy
    from bot.cli import cleanup, context, screens
    from bot.cli.progress import progress
    from runtimes.base import RuntimeFailure
    from runtimes.workspaces.git import GitFailure

    with cleanup.retention(*context.redacting(config), writing=not dry_run) as retention:
        try:
            with progress("Looking for expired data ..."):
                items = retention.plan() if dry_run else retention.apply(orphans=True)
        except (Busy, GitFailure, RuntimeFailure) as failure:
            raise CliError(str(failure), PROBLEM) from None
    screens.report(items, cleanup.screen(items, done=not dry_run), as_json=as_json)


@app.command()
def notify(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Only this notifier; requires --test.")
    ] = "",
    config: Config = None,
    trial: Annotated[
        bool,
        typer.Option(
            "--test", help="Send a test message through each notifier; exit 1 if one fails."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """List the notifiers, or send a test message through them."""
    from bot.cli.notifiers import send_trials, show

    if name and not trial:
        raise CliError("NAME works only with --test")
    if not trial:
        show(config, as_json=as_json)
    elif not send_trials(config, name, as_json=as_json):
        raise typer.Exit(PROBLEM)


@app.command()
def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.")],
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Back up the database and the transcripts into one file, even while the bot runs."""
    from bot.cli import backup

    backup.back_up(config, to, as_json=as_json)


@app.command()
def restore(
    backup: Annotated[Path, typer.Argument(metavar="FILE", help="File written by `backup`.")],
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Restore a backup into the configured data folder, which must not hold a database yet."""
    from bot.cli import backup as restoring

    restoring.restore(config, backup, as_json=as_json)


@app.command()
def doctor(
    config: Config = None,
    repository: Annotated[
        str,
        typer.Option(
            "--repo",
            metavar="OWNER/NAME",
            help="Instead of the checks, try a project's set-up and `test` commands in a sandbox.",
        ),
    ] = "",
    patience: Annotated[
        float,
        typer.Option(min=1, metavar="SECONDS", help="Time limit of --repo, in seconds."),
    ] = 3600.0,
    as_json: Json = False,
) -> None:
    """Check the installation and name a remedy for each problem."""
    if repository:
        from bot.cli import environment_check

        passed = environment_check.examine(config, repository, patience, as_json=as_json)
    else:
        from bot.cli.doctor import examine

        passed = examine(config, as_json=as_json)
    if not passed:
        raise typer.Exit(PROBLEM)


@agents_app.callback()
def agents(
    ctx: typer.Context, config: Config = None, server: Server = "", as_json: Json = False
) -> None:
    """Show agents, their outcomes and the health of each agent type."""
    if ctx.invoked_subcommand is not None:
        return
    from bot.cli import agents as listing

    listing.show_all(config, server, as_json=as_json)


@agents_app.command()
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Agent.", autocompletion=completion.agents)
    ],
    config: Config = None,
    server: Server = "",
    as_json: Json = False,
) -> None:
    """Show one agent: sessions, outcomes and cost."""
    from bot.cli import agents as listing

    listing.show(config, server, name, as_json=as_json)


@agents_app.command("check")
def check_agent(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Agent or agent type.", autocompletion=completion.agents
        ),
    ],
    config: Config = None,
    ask: Annotated[
        bool, typer.Option("--round-trip", help="Start the program and ask the model for one word.")
    ] = False,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time limit of --round-trip, in seconds.")
    ] = 180.0,
    as_json: Json = False,
) -> None:
    """Check whether an agent can start, with a remedy for each problem."""
    from bot.cli import agent_health, context, screens
    from bot.cli.progress import progress

    installed = context.installation(config)
    cases = agent_health.cases_of(installed.settings, name)
    with progress(f"Checking {name} ..."):
        checked = agent_health.check_agents(installed, cases)
        answers = {
            one.case: agent_health.smoke_test(installed, one.case, patience)
            for one in checked
            if ask and not one.problems
        }
    screens.report(
        [{"health": one, "round_trip": answers.get(one.case)} for one in checked],
        agent_health.details(checked, answers),
        as_json=as_json,
    )
    if any(one.problems for one in checked) or not all(one.succeeded for one in answers.values()):
        raise typer.Exit(PROBLEM)


@app.command()
def sandbox(
    project: Annotated[
        str,
        typer.Argument(
            metavar="PROJECT",
            help="A project's name.",
            autocompletion=completion.projects,
        ),
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND", help="What to run [default: a shell]."),
    ] = None,
    config: Config = None,
) -> None:
    """Open a shell in a sandbox like those of a project's agents, or run one command in it."""
    from bot.cli.sandbox import run

    raise typer.Exit(run(config, project, command or ()))


for _part in (
    *(app, config_app, agents_app),
    *(installing.app, sessions.app, commands.app),
    *(operations.app, account.app, tokens.app),
):
    for _command in _part.registered_commands:
        _command.cls = PlainUsage
