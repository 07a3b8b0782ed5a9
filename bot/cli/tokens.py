"""Implements `mergewright token`: manages people's personal tokens, which their programs use."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.help_groups import Commands
from bot.cli.options import PROBLEM, CliError, Config, Json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bot.store import PersonalToken

app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode=None)

_Days = Annotated[
    float, typer.Option("--days", metavar="DAYS", help="Days until the token expires.")
]


@app.command()
def create(
    login: Annotated[str, typer.Argument(metavar="LOGIN", help="Person for whom the token acts.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the token in lists.")],
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="The most it allows: read, message, steer or admin. Each includes those before.",
        ),
    ] = "read",
    days: _Days = 30.0,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Create a personal token, and print it; it cannot be shown again."""
    from bot.cli import context, screens
    from bot.store import TokenScope
    from bot.system.redaction import Redaction
    from bot.web.personal_tokens import PersonalTokens, checked
    from config.contradictions import nearest

    installed = context.installation(config)
    settings = context.with_installed(installed.settings)
    if not settings.sign_in.takes_people:
        raise CliError('personal tokens need sign-in.method = "github" or "both"')
    scopes = {str(one): one for one in TokenScope}
    if scope not in scopes:
        raise CliError(f"--scope {scope}: {nearest(scope, scopes)}")
    try:
        line = checked(name, days, settings.sign_in.token_days)
    except ValueError as problem:
        raise CliError(str(problem)) from None
    user = _user(config, login)
    with context.store(settings, Redaction()) as store:
        token, made = PersonalTokens(store).create(login, user, line, scopes[scope], days)
    screens.report({"token": token, "created": made}, _made(token, made), as_json=as_json)


@app.command("list")
def list_tokens(
    login: Annotated[
        str, typer.Argument(metavar="LOGIN", help="Whose tokens [default: all].")
    ] = "",
    config: Config = None,
    as_json: Json = False,
) -> None:
    """List personal tokens; the tokens themselves are not stored."""
    from bot.cli import context, screens

    with context.store(context.settings(config)) as store:
        tokens = store.personal_tokens.of(login)
    screens.report(tokens, _table(tokens), as_json=as_json)


@app.command()
def revoke(
    id: Annotated[
        int, typer.Argument(metavar="ID", help="ID that `mergewright token list` shows.")
    ],
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Revoke a personal token."""
    from bot.cli import context, screens
    from bot.system.redaction import Redaction

    with context.store(context.settings(config), Redaction()) as store:
        if not store.personal_tokens.revoke(id):
            raise CliError(f"no token {id}; `mergewright token list` lists them", PROBLEM)
    screens.say({"revoked": [id]}, f"Token {id} is revoked.", as_json=as_json)


@app.command("sign-out")
def sign_out(
    login: Annotated[str, typer.Argument(metavar="LOGIN", help="Person on GitHub.")],
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Sign a person out of all browsers, and revoke their tokens."""
    from bot.cli import context, screens
    from bot.system.redaction import Redaction

    if not login.strip():
        raise CliError("LOGIN is empty")
    with context.store(context.settings(config), Redaction()) as store:
        signed_in = store.sign_ins.end_all(login)
        tokens = store.personal_tokens.of(login)
        revoked = [one.id for one in tokens if store.personal_tokens.revoke(one.id)]
    if not signed_in and not tokens:
        raise CliError(f"@{login} is signed in nowhere and has no token", PROBLEM)
    says = f"@{login} is signed out of all browsers. Tokens revoked: {len(revoked)}."
    screens.say({"login": login, "revoked": revoked}, says, as_json=as_json)


def _user(config: Path | None, login: str) -> int:
    """Return the numeric ID of a GitHub account. Raises `CliError`."""
    from bot.app.github_client import github_client
    from bot.cli import context
    from bot.github.errors import GitHubFailure

    installed = context.installation(config)
    projects = context.with_installed(installed.settings).projects.values()
    if not projects:
        raise CliError("there is no project whose people could get tokens: add [projects.NAME]")
    with closing(github_client(installed.settings, installed.secrets)) as github:
        try:
            for project in projects:
                if user := github.roles.of(project.repository, login).user:
                    return user
        except (GitHubFailure, ValueError) as failure:
            raise CliError(str(failure), PROBLEM) from None
    raise CliError(f"no account {login!r} at GitHub", PROBLEM)


def _made(token: str, made: "PersonalToken") -> "RenderableType":
    from rich.console import Group
    from rich.text import Text

    says = (
        f"Copy the token now: it is not shown again. It acts for @{made.login} with the scope"
        f" {made.scope} until {made.expires:%Y-%m-%d}."
        f" `mergewright token revoke {made.id}` ends it."
    )
    return Group(Text(token, no_wrap=True), Text(says, "dim"))


def _table(tokens: "list[PersonalToken]") -> "RenderableType":
    from rich.text import Text

    from bot.cli import screens

    if not tokens:
        return Text("No personal tokens.")
    rows = screens.table("ID", "PERSON", "NAME", "SCOPE", "EXPIRES", "LAST USED")
    for one in tokens:
        used = f"{one.used:%Y-%m-%d}" if one.used else "-"
        rows.add_row(str(one.id), one.login, one.name, one.scope, f"{one.expires:%Y-%m-%d}", used)
    return rows
