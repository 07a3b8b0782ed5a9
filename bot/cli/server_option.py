"""Defines the option `--server`, and the server that commands use without it."""

from pathlib import Path
from typing import Annotated

import typer


def _default_server(ctx: typer.Context, named: str) -> str:
    """Return the server that `--server` names or, without a configuration, the stored default.

    The default is the server of the last `login`. The result may be empty.
    """
    if named or ctx.resilient_parsing:
        return named
    from bot.setup.files import CONFIGURATION

    if ctx.params.get("config") or Path(CONFIGURATION).is_file():
        return named
    from bot.cli import logins

    return logins.read().default


#: The type of a command's parameter, which has to follow the parameter `config`.
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
