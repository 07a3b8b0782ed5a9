"""The files of a new installation: the configuration, the secrets and the App's key."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex

from msgspec import Struct

CONFIGURATION = "mergewright.toml"
SECRETS = "mergewright.env"
KEY = "github-app.pem"

_TEXT = """\
# Created by `mergewright setup`. See docs/settings.md for all settings.

[server]
public-url = {public_url}

[github]
api-url = {api_url}
{app}{sign_in}
[projects.{project}]
repository = {repository}
agent = {agent}

[agent-types.{agent_name}]
program = {agent}
"""
_APP = """\
app-id = "{id}"
app-slug = "{slug}"
private-key-file = "{file}"
allowed-owners = [{owner}]
"""


_SIGN_IN = """
[sign-in]
method = "both"   # people with their GitHub accounts, programs with MERGEWRIGHT_PAGE_TOKEN too
client-id = {client_id}
"""


class SetupRequest(Struct, frozen=True, kw_only=True):
    """The answers of the person who sets up the installation."""

    project: str
    repository: str  #: `owner/name`.
    agent: str
    api_url: str
    public_url: str  #: With a trailing slash.

    @property
    def owner(self) -> str:
        """The repository's owner."""
        return self.repository.partition("/")[0]


def existing(folder: Path) -> list[Path]:
    """Return which of the configuration, the secrets and the key a folder already has."""
    return [folder / name for name in (CONFIGURATION, SECRETS, KEY) if (folder / name).exists()]


def configuration(
    wanted: SetupRequest, app_id: int | None = None, slug: str = "", client_id: str = ""
) -> str:
    """Return the text of the configuration; strings are written as JSON, which is valid TOML.

    With the App's `client_id` people sign in with GitHub.
    """
    app = ""
    sign_in = _SIGN_IN.format(client_id=json.dumps(client_id)) if client_id else ""
    if app_id is not None:
        app = _APP.format(id=app_id, slug=slug, file=KEY, owner=json.dumps(wanted.owner))
    return _TEXT.format(
        public_url=json.dumps(wanted.public_url),
        api_url=json.dumps(wanted.api_url),
        app=app,
        sign_in=sign_in,
        project=wanted.project,
        repository=json.dumps(wanted.repository),
        agent=json.dumps(wanted.agent),
        agent_name=wanted.agent,
    )


def write(folder: Path, text: str, secrets: Mapping[str, str], key: str = "") -> None:
    """Write the files, readable only by this user, with a new token for the page.

    `text` is the configuration, `secrets` are values by environment variable, `key` is the App's
    private key (empty: none). Raises `OSError`; existing files are not overwritten.
    """
    if key:
        _private(folder / KEY, key)
    variables = {**secrets, "MERGEWRIGHT_PAGE_TOKEN": token_hex(32)}
    lines = (f"{name}={value}\n" for name, value in variables.items())
    _private(folder / SECRETS, "".join(lines))
    _private(folder / CONFIGURATION, text)


def _private(path: Path, text: str) -> None:
    """Create a file that is private from the start, and sync it to disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(handle)
