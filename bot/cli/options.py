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


_ON_SERVER = "Run it on the server's own machine"


class PlainUsage(CompletesFast, TyperCommand):
    """A command whose usage line shows required arguments without braces."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command's line. Refuse `--server` with the reason where it cannot work."""
        options = args[: args.index("--")] if "--" in args else args
        named = any(one == "--server" or one.startswith("--server=") for one in options)
        why = LOCAL.get(ctx.command_path.partition(" ")[2])
        if named and why and not ctx.resilient_parsing:
            name = ctx.command_path.partition(" ")[2]
            remedy = "Leave the option out" if name == "config example" else _ON_SERVER
            raise CliError(f"{name} takes no --server: {why}. {remedy}")
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line without braces: `SESSION`, not `{SESSION}`."""
        return [
            piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)
        ]


#: The reason why a command takes no `--server`, by the command's full name.
LOCAL: Final = {
    "serve": "it runs the server",
    "reload": "it signals the bot on its own machine",
    "init": "it writes the configuration",
    "setup": "it writes the configuration",
    "config check": "it reads the configuration file",
    "config example": "it only prints a text",
    "doctor": "it checks the machine's programs and folders",
    "sandbox": "it opens a shell on the server's machine",
    "attach": "it needs the session's terminal",
    "agents check": "it starts the agent's program",
    "notify": "it reads the server's configuration and sends from that machine",
    "replay": "it reads the recorded facts from the database",
    "token create": "it writes to the database; the page Account creates your own tokens",
    "token list": "it reads the database; the page Account lists your own tokens",
    "token revoke": "it writes to the database; the page Account revokes your own tokens",
    "token sign-out": "it writes to the database; the page Account signs you out",
    "backup": "it reads the database and the transcripts",
    "restore": "it writes the database and the transcripts",
    "cleanup": "it deletes files of the server's machine",
}


class CliError(Exception):
    """A command cannot be carried out; the message is printed to standard error."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code
