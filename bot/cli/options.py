"""Defines the options, the exit codes and the error that all commands share."""

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from bot.cli import completion
from bot.cli.fast_completion import CompletesFast

#: Exit codes; 0 means success.
PROBLEM: Final = 1
USAGE: Final = 2
#: The hosts that may get a token over plain http.
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="MERGEWRIGHT_CONFIG",
        metavar="FILE",
        help="Configuration file [default: ./mergewright.toml].",
    ),
]
SessionId = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Session ID, such as widgets-12.",
        autocompletion=completion.session_ids,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Output JSON.")]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Return without waiting for the bot to apply the command.")
]


class PlainUsage(CompletesFast, TyperCommand):
    """A command whose usage line shows required arguments without braces."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments as they are written: `SESSION`, not `{SESSION}`."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]


class CliError(Exception):
    """A command cannot be carried out; the message is printed to standard error."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code
