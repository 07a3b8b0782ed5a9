"""Defines `mergewright login`, `logout` and `whoami`, for servers on other machines."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.options import PROBLEM, CliError, Config, Json
from bot.cli.server_option import Server

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bot.cli.logins import Logins
    from bot.cli.remote import RemoteAccount

app = typer.Typer()

_Named = Annotated[
    str,
    typer.Option(
        "--server", envvar="MERGEWRIGHT_SERVER", metavar="URL", help="Address of the server."
    ),
]


@app.command()
def login(
    server: _Named = "",
    show_servers: Annotated[
        bool, typer.Option("--list", help="Only list the servers with a stored token.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Store a server's address and your token, typed or from stdin, for later commands."""
    from contextlib import closing

    from bot.cli import logins, remote, screens

    known = logins.read()
    if show_servers:
        screens.report(_listed(known), _servers(known), as_json=as_json)
        return
    asks = sys.stdin.isatty()
    if not server and asks:
        server = typer.prompt("Address of the server, such as https://bot.example", err=True)
    if not server:
        raise CliError("name the server with --server URL")
    url = logins.server_url(server)
    token = _stored(known, url) if asks else ""
    token = token or _read_token(url, asks=asks)
    with closing(remote.RemoteServer(url, token)) as opened:
        account = opened.account()
    known.servers[url] = logins.StoredLogin(token=token, login=account.login)
    known.default = url
    logins.write(known)
    screens.report({"server": url, **account.public()}, _who(url, account), as_json=as_json)


@app.command()
def logout(
    server: _Named = "",
    everywhere: Annotated[
        bool, typer.Option("--all", help="Remove the tokens of all servers.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove the stored token of a server [default: of the last `login`]. Does not revoke it."""
    from bot.cli import logins, screens

    known = logins.read()
    url = logins.server_url(server) if server else known.default
    gone = list(known.servers) if everywhere else [one for one in known.servers if one == url]
    if not gone and known.servers and not url:
        raise CliError("no server is the default: name one, or give --all", PROBLEM)
    if not gone:
        raise CliError(f"no token is stored{f' for {url}' if url else ''}", PROBLEM)
    for one in gone:
        del known.servers[one]
    if known.default not in known.servers:
        known.default = ""
    logins.write(known)
    says = [
        f"Removed the token for {one}. To revoke a personal token, open {one}/account"
        for one in gone
    ]
    if known.servers and not known.default:
        says.append("No server is the default now; `mergewright login --server URL` chooses one.")
    value = {"removed": gone, "default": known.default}
    screens.say(value, "\n".join(says), as_json=as_json)


@app.command()
def whoami(config: Config = None, server: Server = "", as_json: Json = False) -> None:
    """Show which server your commands use, as whom, and what they may do there."""
    from contextlib import closing

    from rich.text import Text

    from bot.cli import context, remote, screens, submit

    if server:
        with closing(remote.RemoteServer(server)) as opened:
            account = opened.account()
        value = {"server": opened.url, **account.public()}
        screens.report(value, _who(opened.url, account), as_json=as_json)
        return
    data, actor = context.settings(config).data, submit.local_actor()
    says = Text(f"Commands use the database in {data}, as {actor}.")
    screens.report({"server": "", "login": actor}, says, as_json=as_json)


def _stored(known: "Logins", url: str) -> str:
    """Return a server's stored token; empty if there is none, or if the server refuses it.

    Says on standard error if it was refused. Raises `CliError` if the server does not answer.
    """
    from contextlib import closing

    from bot.cli import remote

    if url not in known.servers:
        return ""
    token = known.servers[url].token
    try:
        with closing(remote.RemoteServer(url, token)) as opened:
            opened.account()
    except remote.TokenRefused as refusal:
        print(f"mergewright: {refusal}", file=sys.stderr)
        return ""
    return token


def _read_token(url: str, *, asks: bool) -> str:
    """Return a token that the person types or, unless `asks`, the first line of standard input.

    A typed token is not shown. Raises `CliError` if the token is empty.
    """
    if not asks:
        token = sys.stdin.readline().strip()
    else:
        print(f"Create a personal token on {url}/account and paste it here.", file=sys.stderr)
        token = typer.prompt("Token", hide_input=True, err=True).strip()
    if not token:
        raise CliError("no token was given: type it, or pass it on standard input")
    return str(token)


def _who(url: str, account: "RemoteAccount") -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    from bot.cli import screens

    rows = screens.grid()
    who = f"@{account.login}" if account.login else "anyone who has the server's page token"
    screens.add(rows, "server", url)
    screens.add(rows, "acts for", who)
    screens.add(rows, "scope", account.most)
    if account.expires:
        screens.add(rows, "expires", f"{account.expires:%Y-%m-%d}")
    lines = [f"{project}: {permission}" for project, permission in account.permissions.items()]
    screens.add(rows, "projects", *(lines or ["none"]))
    return Group(Text("Signed in.", "green"), rows)


def _listed(known: "Logins") -> list[dict[str, object]]:
    return [
        {"server": url, "login": one.login, "default": url == known.default}
        for url, one in known.servers.items()
    ]


def _servers(known: "Logins") -> "RenderableType":
    from rich.text import Text

    from bot.cli import screens

    if not known.servers:
        return Text("No server is stored; `mergewright login --server URL` stores one.")
    rows = screens.table("SERVER", "PERSON", "DEFAULT")
    for url, one in known.servers.items():
        person = f"@{one.login}" if one.login else "page token"
        rows.add_row(Text(url, overflow="fold"), person, "yes" if url == known.default else "")
    return rows
