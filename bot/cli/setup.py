"""`mergewright setup`: creates a GitHub App or stores a token, and writes the configuration."""

from contextlib import closing
from pathlib import Path
from secrets import token_hex

import typer

from bot.cli.options import PROBLEM, CliError
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.setup import files
from bot.setup.manifest import converted, manifest
from bot.setup.page import SetupPage
from config.load import ConfigError, settings_of
from config.settings import Settings

_NEXT = """\
Wrote to {folder}: {names}

1. {webhook}
2. Load the secrets:        set -a; . {folder}/mergewright.env; set +a
3. Check the installation:  mergewright doctor --config {folder}/mergewright.toml
4. Start the server:        mergewright serve --config {folder}/mergewright.toml
"""


def checked(wanted: files.SetupRequest, folder: Path) -> Settings:
    """Return the settings to write. Raises `CliError` if they are invalid or files exist."""
    if there := files.existing(folder):
        raise CliError(f"{there[0]} already exists; move it away or use another --folder")
    if not folder.is_dir():
        raise CliError(f"{folder}: no such directory")
    try:
        return settings_of(files.configuration(wanted, 1), "the new configuration")
    except ConfigError as error:
        raise CliError(str(error)) from None


def app(wanted: files.SetupRequest, folder: Path, port: int, *, organization: bool) -> None:
    """Create a GitHub App in the browser and store its keys. Raises `CliError`."""
    settings = checked(wanted, folder)

    def take(code: str) -> str:
        made = converted(wanted.api_url, code)
        if made.owner.login.casefold() != wanted.owner.casefold():
            raise GitHubFailure(
                f"{made.html_url} belongs to {made.owner.login} and can only be installed there."
                f" Delete it and create it as {wanted.owner}; for an organization, run setup with"
                " --organization."
            )
        text = files.configuration(wanted, made.id, made.slug)
        secrets = {"MERGEWRIGHT_WEBHOOK_SECRET": made.webhook_secret or token_hex(32)}
        files.write(folder, text, secrets, made.pem)
        return f"{made.html_url}/installations/new"

    place = f"organizations/{wanted.owner}/settings" if organization else "settings"
    try:
        page = SetupPage(port, f"{settings.github.git_base}{place}/apps/new", take)
    except OSError as error:
        raise CliError(f"cannot listen on port {port}: {error.strerror}", PROBLEM) from None
    with page:
        page.offer(manifest(wanted.owner, wanted.public_url, page.callback))
        print(f"Open {page.url} in a browser on this machine and press the button.")
        print(f"From another machine, run: ssh -L {page.port}:127.0.0.1:{page.port} THIS-MACHINE")
        print("Waiting for GitHub to send the browser back ...", flush=True)
        page.wait()
    _say(folder, f"Install the App on {wanted.repository}; your browser shows the page.")


def token(wanted: files.SetupRequest, folder: Path) -> None:
    """Ask for a token, check its permissions and store it. Raises `CliError`."""
    checked(wanted, folder)
    given = typer.prompt("Token of the bot's account", hide_input=True)
    try:
        with closing(GitHub(wanted.api_url, Credentials(token=given))) as github:
            login = github.read.me()
            lacking = github.read.missing_permissions(wanted.repository)
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
        " the secret from mergewright.env, all events.",
    )


def _say(folder: Path, webhook: str) -> None:
    names = ", ".join(path.name for path in files.existing(folder))
    print(_NEXT.format(folder=folder, names=names, webhook=webhook), end="")
