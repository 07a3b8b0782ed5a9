"""Implements `mergewright setup`: creates an App or stores a token, writes the configuration."""

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from shlex import quote
from urllib.parse import urlsplit

import typer

from bot.cli.options import LOOPBACK, PROBLEM, CliError
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.errors import GitHubFailure, NotInstalled
from bot.setup import files
from bot.setup.manifest import converted, manifest, webhook_url
from bot.setup.page import SetupPage
from config.load import ConfigError, settings_of
from config.settings import Settings
from lifecycle.model.names import NAME

_COLOR, _MEANING = "5319e7", "Requests a coding agent"
#: The exit code of a command that Ctrl-C ended, by the convention of shells.
_INTERRUPTED = 130
#: How long setup waits for the App's installation, and the pause between two checks.
_INSTALL_SECONDS, _POLL_SECONDS = 600.0, 2.0


def checked(wanted: files.SetupRequest, folder: Path) -> Settings:
    """Return the settings that setup would write, with 1 in place of the App's ID.

    Raises `CliError` if setup is impossible.
    """
    check_folder(folder)
    try:
        settings = settings_of(files.configuration(wanted, 1), "the new configuration")
    except ConfigError as error:
        raise CliError(str(error)) from None
    check_api_url(wanted.api_url)
    return settings


def check_folder(folder: Path) -> None:
    """Raise `CliError` if a folder does not exist, or has files of an installation already."""
    if there := files.existing(folder):
        raise CliError(
            f"{there[0]} already exists, so this folder is set up: `mergewright doctor` says what"
            " is left to do. For another installation, use another --folder"
        )
    if not folder.is_dir():
        raise CliError(f"{folder}: no such directory")


def check_api_url(url: str) -> None:
    """Raise `CliError` if the bot's token would be sent to another machine in clear text."""
    api = urlsplit(url)
    if api.scheme != "https" and api.hostname not in LOOPBACK:
        raise CliError(
            f"--api-url {url}: use https, so that nobody reads the bot's token or key on its way"
        )


def app(
    wanted: files.SetupRequest,
    folder: Path,
    port: int,
    *,
    organization: bool,
    keys: Mapping[str, str] = {},
) -> None:
    """Have a person create and install an App in the browser; write the files, create the label.

    `port` is that of the setup page on this machine; 0 picks a free one. `keys` are model keys to
    store in the files, by environment variable. Raises `CliError`.
    """
    settings = checked(wanted, folder)

    install_url = ""

    def take(code: str) -> str:
        nonlocal install_url
        made = converted(wanted.api_url, code)
        if made.owner.login.casefold() != wanted.owner.casefold():
            raise GitHubFailure(
                f"{made.html_url} belongs to {made.owner.login} and can only be installed there."
                " Delete it and end the command in the terminal with Ctrl-C. If"
                f" {wanted.owner} is an organization, run the command again with --organization;"
                f" otherwise sign in to GitHub as {wanted.owner} and run it again."
            )
        text = files.configuration(wanted, made.id, made.slug, made.client_id)
        secrets = {
            "MERGEWRIGHT_WEBHOOK_SECRET": made.webhook_secret or token_hex(32),
            "MERGEWRIGHT_GITHUB_CLIENT_SECRET": made.client_secret,
            **keys,
        }
        files.write(folder, text, secrets, made.pem)
        install_url = f"{made.html_url}/installations/new"
        return install_url

    place = f"organizations/{wanted.owner}/settings" if organization else "settings"
    try:
        page = SetupPage(port, f"{settings.github.git_base}{place}/apps/new", take)
    except OSError as error:
        raise CliError(
            f"cannot listen on port {port}: {error.strerror}; --port 0 picks a free one", PROBLEM
        ) from None
    try:
        with page:
            page.offer(manifest(wanted.owner, wanted.public_url, page.callback))
            print(f"Open {page.url} in a browser on this machine and press the button.")
            print(
                "To open it on another machine, first run there: "
                f"ssh -L {page.port}:127.0.0.1:{page.port} THIS-MACHINE"
            )
            print("Waiting for GitHub to send the browser back ...", flush=True)
            page.wait()
    except KeyboardInterrupt:
        if not install_url:
            raise CliError(
                "interrupted, and nothing was written: run the command again. If GitHub has already"
                f" created the App, delete it first: {settings.github.git_base}{place}/apps",
                _INTERRUPTED,
            ) from None
    made, pem = settings_of((folder / files.CONFIGURATION).read_text(), ""), folder / files.KEY
    steps = _label_once_installed(made, pem.read_text(), wanted.repository, install_url)
    _say(folder, steps, has_key=bool(keys))


def token(wanted: files.SetupRequest, folder: Path) -> None:
    """Ask for a token and check it, then do as `store_token` does. Raises `CliError`."""
    checked(wanted, folder)
    given = typer.prompt("Token of the bot's account", hide_input=True)
    check_token(wanted.api_url, wanted.repository, given)
    store_token(wanted, folder, given)


def check_token(api_url: str, repository: str, token: str) -> str:
    """Return the login of a token's account.

    Raises `CliError` if GitHub fails, or if the account may not write to the repository.
    """
    try:
        with closing(GitHub(api_url, Credentials(token=token))) as github:
            login = github.read.me()
            lacking = github.read.missing_permissions(repository)
    except (GitHubFailure, ValueError) as failure:
        raise CliError(str(failure), PROBLEM) from None
    if lacking:
        raise CliError(f"{repository}: {login}: {'; '.join(lacking)}", PROBLEM)
    return login


def store_token(
    wanted: files.SetupRequest, folder: Path, token: str, keys: Mapping[str, str] = {}
) -> None:
    """Write the files with a token; create the label, and the webhook unless the bot polls.

    `keys` are model keys to store in the files, by environment variable.
    """
    secrets = {"MERGEWRIGHT_GITHUB_TOKEN": token, **keys}
    secret = token_hex(32)
    if wanted.public_url:
        secrets["MERGEWRIGHT_WEBHOOK_SECRET"] = secret
    files.write(folder, files.configuration(wanted), secrets)
    with closing(GitHub(wanted.api_url, Credentials(token=token))) as github:
        steps = _make_label(github, wanted.repository)
        if wanted.public_url:
            steps += _make_webhook(github, wanted, secret)
    _say(folder, steps, has_key=bool(keys))


def _make_webhook(github: GitHub, wanted: files.SetupRequest, secret: str) -> list[str]:
    """Create or correct the webhook. If refused, returns what a person has to do."""
    url = webhook_url(wanted.public_url)
    try:
        github.setup.create_webhook(wanted.repository, url, secret, ["*"])
    except GitHubFailure as failure:  # Only administrators may add webhooks.
        return [
            f"The webhook was not created: {failure} Add one to {wanted.repository}: {url}, content"
            " type application/json, the secret from mergewright.env, all events."
        ]
    print(f"{wanted.repository} sends webhooks to {url}")
    return []


def _make_label(github: GitHub, repository: str) -> list[str]:
    """Create the label that requests an agent. If refused, returns what a person has to do."""
    try:
        github.setup.create_label(repository, NAME, _COLOR, _MEANING)
    except GitHubFailure as failure:
        return [f"Create the label {NAME} in {repository} ({failure})"]
    print(f"{repository} has the label {NAME}")
    return []


def _label_once_installed(
    settings: Settings, pem: str, repository: str, install_url: str
) -> list[str]:
    """Wait until the App is installed, then create the label. Returns what a person has to do.

    `install_url` is the page at GitHub on which a person installs the App.
    """
    credentials = Credentials(
        app_id=settings.github.app_id, private_key=pem, owners=settings.github.allowed_owners
    )
    until = time.monotonic() + _INSTALL_SECONDS
    try:
        print(
            f"Waiting until the App is installed on {repository}; Ctrl-C skips this ...", flush=True
        )
        with closing(GitHub(settings.github.api_url, credentials)) as github:
            while time.monotonic() < until:
                try:
                    github.read.repository(repository)
                except NotInstalled:
                    time.sleep(_POLL_SECONDS)
                    continue
                return _make_label(github, repository)
    except (GitHubFailure, KeyboardInterrupt) as failure:
        print(failure)
    return [
        f"Install the App on {repository}: {install_url}",
        f"Create the label {NAME} in {repository}.",
    ]


def _say(folder: Path, steps: list[str], *, has_key: bool) -> None:
    """Print what was written and what is left to do: `steps`, then what every set-up needs.

    `has_key` says whether a model key is stored.
    """
    folder = folder.resolve()
    names = ", ".join(path.name for path in files.existing(folder))
    config = quote(str(folder / files.CONFIGURATION))
    left = [
        *steps,
        *([] if has_key else ["Let the agent sign in:   step 3 of Install in README.md"]),
        f"Load the secrets:        {files.load_command(folder)}",
        f"Check the installation:  mergewright doctor --config {config}",
        f"Start the server:        mergewright serve --config {config}",
    ]
    numbered = (f"{number}. {step}" for number, step in enumerate(left, 1))
    print("\n".join((f"Wrote to {folder}: {names}", "", *numbered)))
