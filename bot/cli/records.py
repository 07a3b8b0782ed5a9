"""The commands that read what sessions leave behind: what they used, and what was said."""

from enum import StrEnum
from typing import Annotated

import typer

from bot.cli.options import Config, Json, SessionId
from bot.cli.refused import PROBLEM, CliError

app = typer.Typer()

_MOST = 10**9  #: No transcript has more messages.


class UsageGroup(StrEnum):
    """What usage is summed up by."""

    SESSION = "session"
    RUN = "run"
    AGENT = "agent"
    ISSUE = "issue"
    REPOSITORY = "repository"
    DAY = "day"


@app.command()
def usage(
    session_id: Annotated[
        str, typer.Argument(metavar="SESSION", help="Only this one, by its runs.")
    ] = "",
    config: Config = None,
    by: Annotated[UsageGroup | None, typer.Option(help="What to sum up by.")] = None,
    as_json: Json = False,
) -> None:
    """Show what models were used for, and what that cost."""
    from bot.cli import context, screens, spending

    settings = context.settings(config)
    with context.store(settings) as store:
        sessions = [context.session(store, session_id)] if session_id else store.sessions.all()
        rows = store.usage.totals(
            by or (UsageGroup.RUN if session_id else UsageGroup.SESSION), session_id
        )
    if as_json:
        screens.show_json(rows)
    else:
        screens.show(spending.screen(rows, sessions, settings.prices))


@app.command()
def transcript(
    session_id: SessionId,
    config: Config = None,
    run: Annotated[int | None, typer.Option(min=1, help="An earlier run than the last.")] = None,
    first: Annotated[
        int,
        typer.Option("--from", metavar="N", min=0, max=_MOST, help="The first message to show."),
    ] = 0,
    most: Annotated[
        int | None, typer.Option("--messages", "-n", min=1, max=_MOST, help="How many, at most.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as more comes.")] = False,
    as_json: Json = False,
) -> None:
    """Print what was said and done in a run, whatever the agent."""
    from bot.cli import context, talk
    from bot.show.transcripts import NoTranscript, Transcripts
    from bot.system.locations import local_records, programs
    from bot.system.paths import Paths

    settings, redact = context.redacting(config)
    paths, adapters = Paths(settings.data), programs(settings)
    with context.store(settings) as store:
        session = context.session(store, session_id)
        records = local_records(paths, adapters)
        kept = Transcripts(store, records, adapters, paths.archive, redact)
        try:
            with kept.of(session, run or session.run) as found:
                talk.show(found, first, most, follow=follow, as_json=as_json)
        except NoTranscript as nothing:
            raise CliError(str(nothing), PROBLEM) from None
