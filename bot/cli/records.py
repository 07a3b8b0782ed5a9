"""The commands that read what sessions leave behind: what they used, and what was said."""

from enum import StrEnum
from typing import Annotated

import typer

from bot.cli.options import Config, Json

app = typer.Typer()


class By(StrEnum):
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
        str, typer.Argument(metavar="[SESSION]", help="Only this one, by its runs.")
    ] = "",
    config: Config = None,
    by: Annotated[By | None, typer.Option(help="What to sum up by.")] = None,
    as_json: Json = False,
) -> None:
    """Show what models were used for, and what that cost."""
    from bot.cli import given, screens, spending

    settings = given.settings(config)
    with given.store(settings) as store:
        sessions = [given.session(store, session_id)] if session_id else store.sessions()
        rows = store.used(by or (By.RUN if session_id else By.SESSION), session_id)
    if as_json:
        screens.show_json(rows)
    else:
        screens.show(spending.screen(rows, sessions, settings.prices))
