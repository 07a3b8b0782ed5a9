"""Defines `mergewright init` and `setup`, which write the files of a new installation."""

import sys
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

from bot.cli.options import CliError

app = typer.Typer()

_GITHUB: Final = "https://api.github.com/"
_Organization = Annotated[
    bool, typer.Option("--organization", help="OWNER is an organization, not a person.")
]
_ApiUrl = Annotated[
    str, typer.Option(metavar="URL", help="API of GitHub Enterprise Server: https://HOST/api/v3/.")
]
_Folder = Annotated[Path, typer.Option(metavar="DIR", help="Directory for the files.")]
_Port = Annotated[
    int, typer.Option(metavar="PORT", help="Port of the setup page; 0 picks a free one.")
]


@app.command()
def init(
    repository: Annotated[
        str, typer.Option(metavar="OWNER/NAME", help="Repository to work in.")
    ] = "",
    url: Annotated[
        str,
        typer.Option(
            metavar="URL", help='Public URL of the server; "none" if the bot polls GitHub.'
        ),
    ] = "",
    auth: Annotated[
        Literal["", "app", "token"],
        typer.Option(
            metavar="METHOD",
            help="app: a new GitHub App; token: the one in MERGEWRIGHT_GITHUB_TOKEN.",
        ),
    ] = "",
    agent: Annotated[str, typer.Option(metavar="AGENT", help="Agent program.")] = "",
    key: Annotated[
        str,
        typer.Option(
            metavar="VARIABLE",
            help="Environment variable with the agent's model key;"
            ' "none" if it signs in with variables that you list in pass-env later.',
        ),
    ] = "",
    isolation: Annotated[
        str, typer.Option(metavar="NAME", help="Isolation of agents [default: the strongest].")
    ] = "",
    organization: _Organization = False,
    api_url: _ApiUrl = _GITHUB,
    folder: _Folder = Path(),
    port: _Port = 0,
) -> None:
    """Ask five questions, check the answers and write the configuration."""
    from bot.cli import init as asking

    given = asking.InitOptions(
        repository=repository,
        url=url,
        auth=auth,
        agent=agent,
        key=key,
        isolation=isolation,
        api_url=api_url,
        organization=organization,
        folder=folder,
        port=port,
    )
    asking.run(given, asks=sys.stdin.isatty())


@app.command()
def setup(
    repository: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="Repository to work in.")],
    url: Annotated[
        str, typer.Option(metavar="URL", help="Public URL of the server, for webhooks.")
    ],
    agent: Annotated[str, typer.Option(metavar="AGENT", help="Agent program.")] = "claude",
    organization: _Organization = False,
    token: Annotated[
        bool,
        typer.Option(
            "--token",
            help="Ask for a token of the bot's account, instead of creating a GitHub App.",
        ),
    ] = False,
    api_url: _ApiUrl = _GITHUB,
    folder: _Folder = Path(),
    port: _Port = 0,
) -> None:
    """Create a GitHub App, or check a token, and write the configuration. Asks less than `init`."""
    from bot.cli import setup as app_setup
    from bot.setup.files import SetupRequest, project_name
    from config.contradictions import nearest
    from runtimes.agents import AGENTS

    if agent not in AGENTS:
        raise CliError(f"--agent {agent}: {nearest(agent, AGENTS)}")
    wanted = SetupRequest(
        project=project_name(repository),
        repository=repository,
        agent=agent,
        api_url=api_url,
        public_url=url.rstrip("/") + "/",
    )
    if token:
        app_setup.token(wanted, folder)
    else:
        app_setup.app(wanted, folder, port, organization=organization)
