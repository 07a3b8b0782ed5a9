"""Defines the commands that show sessions, wait for them or open their terminals."""

import os
import sys
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Annotated, Literal

import typer

from bot.cli import completion
from bot.cli.options import PROBLEM, CliError, Config, Json, SessionId
from bot.cli.server_option import Server

app = typer.Typer()

_MOST_MESSAGES = 10**9  #: More than any transcript has.
_ALL = 10**6  #: More sessions than there are.
Run = Annotated[int | None, typer.Option(min=1, help="Run number [default: the last run].")]
UsageGroup = Literal["session", "run", "agent", "issue", "repository", "person", "day"]
_DAY = ["%Y-%m-%d"]


@app.command()
def ls(
    config: Config = None,
    server: Server = "",
    every: Annotated[bool, typer.Option("--all", help="Include ended sessions.")] = False,
    status: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STATUS",
            help="Only sessions in this status, ended or not; may be repeated.",
            autocompletion=completion.statuses,
        ),
    ] = None,
    project: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only sessions of this project.",
            autocompletion=completion.projects,
        ),
    ] = "",
    agent: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only sessions of this agent or agent type.",
            autocompletion=completion.agents,
        ),
    ] = "",
    person: Annotated[
        str, typer.Option(metavar="LOGIN", help="Only sessions that this person requested.")
    ] = "",
    search: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Only sessions whose ID, title or branch contains this text, or whose issue or"
            " pull request has this number.",
        ),
    ] = "",
    limit: Annotated[
        int,
        typer.Option(min=1, max=_ALL, metavar="N", help="At most this many.", show_default=False),
    ] = _ALL,
    as_json: Json = False,
) -> None:
    """List sessions that are live or need a person, newest first."""
    from bot.cli import listing
    from bot.store import SessionQuery

    query = SessionQuery(
        project=project,
        agent=agent,
        person=person,
        statuses=listing.checked(status or ()),
        search=search,
        scope="all" if every or status else "current",
        limit=limit,
    )
    listing.sessions(config, server, query, as_json=as_json)


@app.command()
def wait(
    session_id: SessionId,
    goal: Annotated[
        Literal["merged", "needs_input"],
        typer.Option("--for", help="merged, or needs_input (a person has to act)."),
    ],
    config: Config = None,
    server: Server = "",
    timeout: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            show_default=False,
            help="Time limit in seconds [default: none].",
        ),
    ] = inf,
    as_json: Json = False,
) -> None:
    """Wait until a session is merged or needs a person; exit 1 if it does not happen."""
    from bot.cli import listing

    if not listing.wait(config, server, session_id, goal, timeout, as_json=as_json):
        raise typer.Exit(PROBLEM)


@app.command()
def show(
    session_id: SessionId, config: Config = None, server: Server = "", as_json: Json = False
) -> None:
    """Show a session: status, work, budgets and history."""
    from bot.cli import screens
    from bot.cli.reading import reader

    with reader(config, server) as source:
        detail = source.detail(session_id)
    screens.report(detail, screens.session(detail), as_json=as_json)


@app.command(hidden=True)
def status(session_id: Annotated[str, typer.Argument()] = "SESSION") -> None:
    """Print a hint to use `show`. Without this command, typer would suggest `start` instead."""
    raise CliError(f"no command 'status'; use `ls` to list sessions or `show {session_id}`")


@app.command()
def queue(config: Config = None, server: Server = "", as_json: Json = False) -> None:
    """Show queued sessions, why they wait and when they may start."""
    from bot.cli import screens, tables
    from bot.cli.reading import reader

    with reader(config, server) as source:
        entries = source.queue()
    screens.report(entries, tables.queue(entries), as_json=as_json)


@app.command()
def why(
    session_id: SessionId, config: Config = None, server: Server = "", as_json: Json = False
) -> None:
    """Explain a session's status and next actions. Read-only."""
    from bot.cli import screens
    from bot.cli.reading import reader

    with reader(config, server) as source:
        detail, found = source.detail(session_id), source.explain(session_id)
    screens.report(found, screens.explanation(found, detail), as_json=as_json)


@app.command()
def replay(
    session_id: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION",
            help="Session ID, such as widgets-12. Give either SESSION or --delivery.",
            autocompletion=completion.session_ids,
        ),
    ] = None,
    config: Config = None,
    delivery: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Do not replay; show what the webhook in this JSON file would cause.",
        ),
    ] = None,
    event: Annotated[
        str, typer.Option(help="The webhook's event, if FILE does not contain it.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Repeat a session's recorded decisions, and exit 1 if any comes out differently. Read-only."""
    from bot.cli import replay

    if (session_id is None) == (delivery is None):
        raise CliError("name either a SESSION or a recorded webhook with --delivery")
    if delivery is not None:
        replay.delivery(config, delivery, event, as_json=as_json)
    elif session_id is not None and not replay.session(config, session_id, as_json=as_json):
        raise typer.Exit(PROBLEM)


@app.command()
def top(config: Config = None, server: Server = "") -> None:
    """Show the board in this terminal, live, and act on its sessions; `?` shows the keys."""
    from contextlib import closing

    if not all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr)):
        raise CliError("top needs a terminal; `mergewright ls` lists the sessions without one")
    from bot.cli.remote import RemoteServer
    from bot.cli.top import Top
    from bot.cli.top_source import LocalBoard, RemoteBoard

    if server:
        with closing(RemoteServer(server)) as remote:
            remote.board("")  # What is wrong with the server or the token is said here.
            Top(RemoteBoard(remote)).run(mouse=False)
    else:
        local = LocalBoard(config)
        local.board("")
        Top(local).run(mouse=False)


@app.command()
def attach(session_id: SessionId, config: Config = None) -> None:
    """Attach to a session's terminal."""
    from bot.cli import context

    settings = context.settings(config)
    with context.store(settings) as store:
        command = context.attach(settings, context.session(store, session_id))
    os.execvp(command[0], command)


@app.command()
def logs(
    session_id: SessionId,
    config: Config = None,
    server: Server = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new output until interrupted.")
    ] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="Number of lines.")] = 200,
    run: Run = None,
    step: Annotated[
        Literal["", "setup", "teardown"],
        typer.Option(
            metavar="STEP",
            help="Print the output of the project's STEP commands instead; STEP is setup or"
            " teardown.",
        ),
    ] = "",
    ansi: Annotated[bool, typer.Option("--ansi", help="Keep colours.")] = False,
    as_json: Json = False,
) -> None:
    """Print the output of a session's agent, or of the project's setup or teardown commands."""
    from bot.cli import logs

    wanted = logs.WantedLog(
        session=session_id, run=run or 0, step=step, lines=lines, follow=follow, ansi=ansi
    )
    logs.show(config, server, wanted, as_json=as_json)


@app.command()
def usage(
    session_id: Annotated[
        str,
        typer.Argument(
            metavar="SESSION",
            help="Only this session, grouped by run unless --by is given.",
            autocompletion=completion.session_ids,
        ),
    ] = "",
    config: Config = None,
    server: Server = "",
    by: Annotated[
        UsageGroup | None,
        typer.Option(help="One row for each of these [default: session; with SESSION: run]."),
    ] = None,
    project: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only sessions of this project.",
            autocompletion=completion.projects,
        ),
    ] = "",
    agent: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Only runs of this agent.", autocompletion=completion.agents
        ),
    ] = "",
    person: Annotated[
        str, typer.Option(metavar="LOGIN", help="Only sessions that this person requested.")
    ] = "",
    first: Annotated[
        datetime | None,
        typer.Option(
            "--from", formats=_DAY, metavar="DAY", help="First day (UTC), such as 2030-01-31."
        ),
    ] = None,
    last: Annotated[
        datetime | None, typer.Option("--to", formats=_DAY, metavar="DAY", help="Last day (UTC).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show model usage and cost, including those of deleted sessions."""
    from bot.cli import screens, tables
    from bot.cli.reading import reader
    from bot.store import UsageFilter

    among = UsageFilter(
        agent=agent,
        person=person,
        first=f"{first:%Y-%m-%d}" if first else "",
        last=f"{last:%Y-%m-%d}" if last else "",
    )
    with reader(config, server) as source:
        by = by or ("run" if session_id else "session")
        rows, prices = source.usage(by, session_id, project, among), source.prices(session_id)
    screens.report(rows, tables.usage(rows, prices), as_json=as_json)


@app.command()
def transcript(
    session_id: SessionId,
    config: Config = None,
    server: Server = "",
    run: Run = None,
    first: Annotated[
        int,
        typer.Option(
            "--from",
            metavar="N",
            min=0,
            max=_MOST_MESSAGES,
            help="First message to print, counted from 0.",
        ),
    ] = 0,
    most: Annotated[
        int | None,
        typer.Option("--messages", "-n", min=1, max=_MOST_MESSAGES, help="At most this many."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new messages until interrupted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the conversation of a run, tool calls included."""
    from bot.cli import logs

    span = first, most
    logs.transcript(config, server, session_id, run or 0, span, follow=follow, as_json=as_json)
