"""The files of a new installation: a configuration without secrets, and secrets for its user."""

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
# Made by `mergewright setup`. `config/default.toml` documents everything that can stand here.

[server]
public-url = {public_url}

[github]
api-url = {api_url}
{app}
[projects.{project}]
repository = {repository}
agent = {agent}

[agent-types.{agent_name}]
program = {agent}

[runtime]
sandbox = "none"    # agents run with the rights of this user: use one made for them
"""
_APP = """\
app-id = "{id}"
app-slug = "{slug}"
private-key-file = "{file}"
allowed-owners = [{owner}]
"""


class SetupRequest(Struct, frozen=True, kw_only=True):
    """What a person said of the installation."""

    project: str
    repository: str  #: `owner/name`.
    agent: str
    api_url: str
    public_url: str  #: With a slash at its end.

    @property
    def owner(self) -> str:
        """Whose repository it is."""
        return self.repository.partition("/")[0]


def standing(folder: Path) -> list[Path]:
    """What is there already, and would be overwritten."""
    return [folder / name for name in (CONFIGURATION, SECRETS, KEY) if (folder / name).exists()]


def configuration(wanted: SetupRequest, app_id: int | None = None, slug: str = "") -> str:
    """The configuration of an App's installation, or of a token's. TOML's texts are JSON's."""
    app = ""
    if app_id is not None:
        app = _APP.format(id=app_id, slug=slug, file=KEY, owner=json.dumps(wanted.owner))
    return _TEXT.format(
        public_url=json.dumps(wanted.public_url),
        api_url=json.dumps(wanted.api_url),
        app=app,
        project=wanted.project,
        repository=json.dumps(wanted.repository),
        agent=json.dumps(wanted.agent),
        agent_name=wanted.agent,
    )


def write(folder: Path, text: str, secrets: Mapping[str, str], key: str = "") -> None:
    """Write them, for this user alone; what is there already is left alone.

    `secrets` are variables; the page's token is made here. Raises `FileExistsError` or another
    `OSError`.
    """
    if key:
        _private(folder / KEY, key)
    variables = {**secrets, "MERGEWRIGHT_PAGE_TOKEN": token_hex(32)}
    lines = (f"{name}={value}\n" for name, value in variables.items())
    _private(folder / SECRETS, "".join(lines))
    _private(folder / CONFIGURATION, text)


def _private(path: Path, text: str) -> None:
    """A new file that nobody else can read at any moment, on disk when this returns."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(handle)
