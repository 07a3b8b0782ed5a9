"""The options that many commands share."""

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="MERGEWRIGHT_CONFIG",
        metavar="FILE",
        help="The configuration; otherwise ./mergewright.toml.",
    ),
]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Such as widgets-12.")]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Do not wait until the running bot has judged it.")
]
