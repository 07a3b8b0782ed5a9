"""`mergewright setup`: from nothing to an App, or a token, and the files that use it."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from secrets import token_hex

import typer

from bot.cli.refused import PROBLEM, CliError
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.setup import files
from bot.setup.manifest import converted, manifest
from bot.setup.page import SetupPage
from config.load import ConfigError, settings_of
from config.settings import Settings

_NEXT = """\
Written to {folder}: {names}

1. {webhook}
2. Load the secrets:        set -a; . {folder}/mergewright.env; set +a
3. Have it looked over:     mergewright doctor --config {folder}/mergewright.toml
4. Start it:                mergewright serve --config {folder}/mergewright.toml
"""


def checked(wanted: files.SetupRequest, folder: Path) -> Settings:
    """The settings that would be written, if nothing is wrong with them or in the way."""
    if there := files.standing(folder):
        raise CliError(f"{there[0]} is there already: move it away, or name another --folder")
    if not folder.is_dir():
        raise CliError(f"{folder}: there is no such folder")
    try:
        return settings_of(files.configuration(wanted, 1), "what would be written")
    except ConfigError as error:
        raise CliError(str(error)) from None


def app(wanted: files.SetupRequest, folder: Path, port: int, *, organization: bool) -> None:
    """Make an App by way of the browser, and keep its keys."""
    settings = checked(wanted, folder)

    def take(code: str) -> str:
        made = converted(wanted.api_url, code)
        if made.owner.login.casefold() != wanted.owner.casefold():
            raise GitHubFailure(
                f"{made.html_url} belongs to {made.owner.login}, and only there can it be"
                f" installed: delete it, and make it as {wanted.owner}; if that is an"
                " organization, start setup with --organization."
            )
        text = files.configuration(wanted, made.id, made.slug)
        secrets = {"MERGEWRIGHT_WEBHOOK_SECRET": made.webhook_secret or token_hex(32)}
        files.write(folder, text, secrets, made.pem)
        return f"{made.html_url}/installations/new"

    place = f"organizations/{wanted.owner}/settings" if organization else "settings"
    page = _page(port, f"{settings.github.git_base}{place}/apps/new", take)
    with page:
        page.offer(manifest(wanted.owner, wanted.public_url, page.callback))
        print(f"Open {page.url} in a browser on this machine, and press the button.")
        print(f"From elsewhere, first: ssh -L {page.port}:127.0.0.1:{page.port} THIS-MACHINE")
        print("Waiting for GitHub to send the browser back ...", flush=True)
        page.wait()
    _say(folder, f"Install the App on {wanted.repository}: your browser shows the page.")


def token(wanted: files.SetupRequest, folder: Path) -> None:
    """Take a token, see that it may write, and keep it."""
    checked(wanted, folder)
    given = typer.prompt("The token of the bot's account", hide_input=True)
    try:
        with closing(GitHub(wanted.api_url, Credentials(token=given))) as github:
            login = github.read.me()
            lacking = github.read.lacking(wanted.repository)
    except (GitHubFailure, ValueError) as failure:
        raise CliError(str(failure), PROBLEM) from None
    if lacking:
        raise CliError(f"{wanted.repository}: {login}: {'; '.join(lacking)}", PROBLEM)
    secrets = {"MERGEWRIGHT_GITHUB_TOKEN": given, "MERGEWRIGHT_WEBHOOK_SECRET": token_hex(32)}
    files.write(folder, files.configuration(wanted), secrets)
    webhook = f"{wanted.public_url}webhooks/github"
    _say(
        folder,
        f"Add a webhook to {wanted.repository}: {webhook}, content type application/json,"
        " its secret as in mergewright.env, all events.",
    )


def _page(port: int, new_app_url: str, take: Callable[[str], str]) -> SetupPage:
    try:
        return SetupPage(port, new_app_url, take)
    except OSError as error:
        raise CliError(f"port {port} cannot be listened on: {error.strerror}", PROBLEM) from None


def _say(folder: Path, webhook: str) -> None:
    names = ", ".join(path.name for path in files.standing(folder))
    print(_NEXT.format(folder=folder, names=names, webhook=webhook), end="")
