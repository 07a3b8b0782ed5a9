"""Defines the option `--server`, and the server that commands use without it."""

from pathlib import Path
from typing import Annotated

import typer


def _default_server(ctx: typer.Context, named: str) -> str:
    """Return the named server or, where there is no configuration, the last `login`'s, if any."""
    if named or ctx.resilient_parsing:
        return named
    from bot.setup.files import CONFIGURATION

    if ctx.params.get("config") or Path(CONFIGURATION).is_file():
        return named
    from bot.cli import logins

    return logins.read().default


#: Has to follow a parameter `config`.
Server = Annotated[
    str,
    typer.Option(
        "--server",
        envvar="MERGEWRIGHT_SERVER",
        metavar="URL",
        callback=_default_server,
        help="Server to use. Without --config and ./mergewright.toml, the default is the server of"
        " the last `login`.",
    ),
]
