"""Every command in one place. What a command needs is imported when it runs: `--help` is quick."""

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from bot.cli import agents, records, steer
from bot.cli.options import Config, Json, SessionId
from bot.cli.refused import PROBLEM, CliError

app = typer.Typer(
    name="mergewright",
    help="Takes a labelled GitHub issue to a merged pull request.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
config_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(config_app, name="config", help="Look at configuration files.")
app.add_typer(agents.app, name="agents")
app.add_typer(steer.app)
app.add_typer(records.app)


def main() -> None:
    """Run the command line. Exit codes: 0 fine, 1 found a problem, 2 usage or configuration."""
    try:
        app(prog_name="mergewright")
    except CliError as refusal:
        print(f"mergewright: {refusal}", file=sys.stderr)
        sys.exit(refusal.code)
    except OSError as failure:  # A full disk, a file of another user, a program that is not there.
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Takes a labelled GitHub issue to a merged pull request."""


@app.command()
def serve(config: Config = None) -> None:
    """Run the server: webhooks, the page, and the sessions."""
    from bot.cli import context
    from bot.cli.doctor import not_installed
    from config.load import missing

    installed = context.installation(config, os.environ)
    settings, secrets = installed.settings, installed.secrets
    if wanted := missing(settings, secrets):
        raise CliError("\n".join(wanted))
    if lacking := not_installed(installed):
        raise CliError("\n".join(lacking), PROBLEM)

    from bot.app import process as server

    try:
        server.serve(settings, secrets)
    except server.CANNOT_START as failure:
        raise CliError(str(failure), PROBLEM) from None


@app.command()
def ls(
    config: Config = None,
    every: Annotated[bool, typer.Option("--all", help="Ended sessions too.")] = False,
    as_json: Json = False,
) -> None:
    """List the sessions, newest first."""
    from bot.cli import capacity, context, screens
    from bot.decide.assignment import caps
    from bot.show.session_summary import summarize
    from bot.system.clock import utc_now

    settings = context.settings(config)
    with context.store(settings) as store:
        sessions = store.sessions.all(live=None if every else True)
        line, freezes, incidents = (
            store.slots.queue(caps(settings)),
            store.freezes.all(),
            store.incidents.current(),
        )
    now = utc_now()
    if as_json:
        places = {one.session: one for one in line}
        screens.show_json([summarize(one, places.get(one.id)) for one in sessions])
    else:
        said = {one.session: capacity.place(one, now) for one in line}
        for notice in screens.standing(incidents, freezes):
            screens.show(notice)
        screens.show(screens.listing(sessions, now, every, said))


@app.command()
def show(session_id: SessionId, config: Config = None, as_json: Json = False) -> None:
    """Show a session: its work, how far it is, and what happened."""
    from rich.console import Group

    from bot.cli import capacity, context, screens
    from bot.decide.assignment import caps
    from bot.decide.policies import Policies
    from bot.show.budget_usage import budget_usage
    from bot.system.clock import utc_now
    from bot.system.paths import Paths
    from runtimes.workspaces.git import GitFailure
    from runtimes.workspaces.mirror import Mirror

    settings = context.settings(config)
    with context.store(settings) as store:
        session = context.session(store, session_id)
        facts, history = store.facts.get(session.id), store.history.of(session.id)
        line = {one.session: one for one in store.slots.queue(caps(settings))}
        policy = Policies(store, settings.projects, settings.policy).of(session.project)
    place, now = line.get(session.id), utc_now()
    budgets = budget_usage(facts, policy, now)
    path = Paths(settings.data).mirror(session.project)
    try:
        kept = Mirror(path, "").preserved(session.id) if path.is_dir() else []
    except GitFailure as failure:  # All else is known all the same.
        kept = []
        print(f"mergewright: what was kept of it cannot be told: {failure}", file=sys.stderr)
    if as_json:
        whole = {"session": session, "facts": facts, "history": history}
        screens.show_json({**whole, "place": place, "budgets": budgets, "preserved": kept})
    else:
        said = capacity.place(place, now) if place else ""
        screen = screens.detail(session, facts, history, now, budgets, said)
        screens.show(Group(screen, *screens.preserved(kept, path, now)))


@app.command(hidden=True)
def status(session_id: Annotated[str, typer.Argument()] = "SESSION") -> None:
    """Say what the comment of this name is here, before `start` is proposed in its place."""
    raise CliError(f"no command 'status': `ls` lists the sessions, `show {session_id}` shows one")


@app.command()
def queue(config: Config = None, as_json: Json = False) -> None:
    """Show who waits for a slot, why, and when it may be their turn."""
    from bot.cli import capacity, context, screens
    from bot.decide.assignment import caps
    from bot.system.clock import utc_now

    settings = context.settings(config)
    with context.store(settings) as store:
        line = store.slots.queue(caps(settings))
    if as_json:
        screens.show_json(line)
    else:
        screens.show(capacity.line(line, utc_now()))


@app.command()
def why(session_id: SessionId, config: Config = None, as_json: Json = False) -> None:
    """Explain a session: facts, rule, what would follow. Touches nothing."""
    from bot.cli import context, screens
    from bot.decide.policies import Policies
    from bot.show.budget_usage import budget_usage
    from bot.system.clock import utc_now
    from lifecycle.decide import decide

    settings = context.settings(config)
    with context.store(settings) as store:
        facts = store.facts.get(context.session(store, session_id).id)
        policy = Policies(store, settings.projects, settings.policy).of(facts.project)
    now = utc_now()
    decision, budgets = decide(facts, policy, now), budget_usage(facts, policy, now)
    if as_json:
        screens.show_json({"facts": facts, "decision": decision, "budgets": budgets})
    else:
        screens.show(screens.verdict(facts, decision, policy, now, budgets))


@app.command()
def replay(
    session_id: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Such as widgets-12.")
    ] = None,
    config: Config = None,
    delivery: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A recorded webhook: say what it would cause."),
    ] = None,
    event: Annotated[
        str, typer.Option(help="Which event it is, where the file does not say.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Make a session's decisions again, and fail if one differs. Touches nothing."""
    from bot.cli import replaying

    if (session_id is None) == (delivery is None):
        raise CliError("name either a SESSION or, with --delivery, a recorded webhook")
    if delivery is not None:
        replaying.delivery(config, delivery, event, as_json=as_json)
    elif session_id is not None and not replaying.session(config, session_id, as_json=as_json):
        raise typer.Exit(PROBLEM)


@app.command()
def attach(session_id: SessionId, config: Config = None) -> None:
    """Look at a session's terminal, as a person sitting before it."""
    from bot.cli import context
    from bot.system.paths import Paths, run_name
    from lifecycle.model.status import TERMINAL
    from runtimes import RUNTIMES
    from runtimes.base import Options

    settings = context.settings(config)
    with context.store(settings) as store:
        session = context.session(store, session_id)
    if session.status in TERMINAL or not session.run:
        raise CliError(
            f"{session.id} is {session.status}: no program of it runs;"
            f" `mergewright logs {session.id}` shows what it printed",
            PROBLEM,
        )
    runtime = RUNTIMES[settings.runtime.kind](Options(data=Paths(settings.data).runtime))
    command = runtime.attach(runtime.handle(run_name(session.id, session.run)))
    os.execvp(command[0], command)


@app.command()
def logs(
    session_id: SessionId,
    config: Config = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more comes.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many, at most.")] = 200,
    run: Annotated[int | None, typer.Option(min=1, help="An earlier run than the last.")] = None,
    ansi: Annotated[
        bool, typer.Option("--ansi", help="Leave escape sequences in; they reach your terminal.")
    ] = False,
) -> None:
    """Print what a session's program printed."""
    from bot.cli import context, output
    from bot.system.paths import Paths

    settings, redact = context.redacting(config)
    with context.store(settings) as store:
        session = context.session(store, session_id)
    wanted = run or session.run
    path = Paths(settings.data).run(session.id, wanted) / "output.log"
    if not path.exists():
        raise CliError(f"{session.id} has printed nothing in run {wanted}", PROBLEM)
    output.tail(path, lines, redact, follow=follow, ansi=ansi)


@config_app.command()
def check(file: Annotated[Path, typer.Argument(metavar="FILE")]) -> None:
    """Say everything that is wrong with a configuration file."""
    from bot.cli import context
    from bot.text.prompts import PromptError, Prompts

    settings = context.settings(file)
    try:
        Prompts(settings.prompts)
    except PromptError as failure:
        raise CliError(f"{file}: server.prompts: {failure}") from failure
    projects = ", ".join(settings.projects) or "none yet"
    print(f"{file} is fine. Projects: {projects}.")


@config_app.command()
def example() -> None:
    """Print a small configuration to begin with."""
    from importlib.resources import files

    print(files("config").joinpath("example.toml").read_text("utf-8"), end="")


@app.command()
def cleanup(
    config: Config = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would go, what stays, and why.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove what outlived its days, and what belongs to no session."""
    from bot.archive.retention import Busy
    from bot.cli import cleaning, context, screens
    from runtimes.base import RuntimeFailure
    from runtimes.workspaces.git import GitFailure

    with cleaning.retention(*context.redacting(config), writing=not dry_run) as retention:
        try:
            items = retention.plan() if dry_run else retention.apply(orphans=True)
        except (Busy, GitFailure, RuntimeFailure) as failure:
            raise CliError(str(failure), PROBLEM) from None
    if as_json:
        screens.show_json(items)
    else:
        screens.show(cleaning.screen(items, done=not dry_run))


@app.command()
def setup(
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="To work in.")],
    url: Annotated[str, typer.Option(metavar="URL", help="Where GitHub reaches the server.")],
    agent: Annotated[str, typer.Option(metavar="AGENT", help="Which program works.")] = "claude",
    organization: Annotated[
        bool, typer.Option("--organization", help="OWNER is an organization.")
    ] = False,
    token: Annotated[bool, typer.Option("--token", help="Ask for a token; make no App.")] = False,
    api_url: Annotated[
        str, typer.Option(metavar="URL", help="Of an Enterprise server: https://HOST/api/v3/.")
    ] = "https://api.github.com/",
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where the files are written.")
    ] = Path(),
    port: Annotated[int, typer.Option(metavar="PORT", help="Of the page; 0: any free one.")] = 0,
) -> None:
    """Make a GitHub App, or take a token; write the configuration."""
    from bot.cli import setting_up
    from bot.setup.files import SetupRequest
    from config.contradictions import nearest
    from runtimes.agents import AGENTS

    if agent not in AGENTS:
        raise CliError(f"--agent {agent}: {nearest(agent, AGENTS)}")
    name = re.sub(r"[^a-z0-9]+", "-", repository.rpartition("/")[2].lower()).strip("-")
    wanted = SetupRequest(
        project=name[:39] or "project",
        repository=repository,
        agent=agent,
        api_url=api_url,
        public_url=url.rstrip("/") + "/",
    )
    if token:
        setting_up.token(wanted, folder)
    else:
        setting_up.app(wanted, folder, port, organization=organization)


@app.command()
def doctor(config: Config = None, as_json: Json = False) -> None:
    """Check machine, configuration and GitHub; tell each remedy."""
    from bot.cli.doctor import examine

    if not examine(config, os.environ, as_json=as_json):
        raise typer.Exit(PROBLEM)
