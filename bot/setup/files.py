"""The files of a new installation: the configuration, the secrets and the App's key."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from shlex import quote

from msgspec import Struct

CONFIGURATION = "mergewright.toml"
SECRETS = "mergewright.env"
KEY = "github-app.pem"

_TEXT = """\
# Created by Mergewright. See docs/settings.md for all settings.

{address}[github]
api-url = {api_url}
{app}{sign_in}
[projects.{project}]
repository = {repository}
agent = {agent}

[agent-types.{agent_name}]
program = {agent}
{key}{isolation}"""
_ADDRESS = """\
[server]
public-url = {public_url}

"""
_POLLING = """\
events = "polling"   # GitHub cannot reach this server
"""
_ISOLATION = """
[runtime]
isolation = {isolation}
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
#: A line of the file of secrets that gives a variable a value.
_VARIABLE = re.compile(r"^\s*(?:export\s+)?(\w+)=\S", re.MULTILINE)


class SetupRequest(Struct, frozen=True, kw_only=True):
    """What the person who sets up the installation has chosen."""

    project: str
    repository: str  #: `owner/name`.
    agent: str
    api_url: str
    public_url: str  #: With a trailing slash; if empty, the bot polls GitHub.
    key: str = ""  #: The environment variable with the model key; if empty, none is configured.
    isolation: str = ""  #: If empty, the strongest that works.

    @property
    def owner(self) -> str:
        """The owner in the repository's name."""
        return self.repository.partition("/")[0]


def project_name(repository: str) -> str:
    """Derive a project's name from the second part of a repository's `owner/name`.

    It has at most 39 characters: lowercase letters, digits and single hyphens.
    """
    name = re.sub(r"[^a-z0-9]+", "-", repository.rpartition("/")[2].lower()).strip("-")
    return name[:39] or "project"


def existing(folder: Path) -> list[Path]:
    """Return those of the configuration, secrets and key files that already exist in a folder."""
    return [folder / name for name in (CONFIGURATION, SECRETS, KEY) if (folder / name).exists()]


def load_command(folder: Path) -> str:
    """Return the shell command that exports the variables in a folder's file of secrets."""
    return f"set -a; . {quote(f'{folder}/{SECRETS}')}; set +a"


def stored_variables(folder: Path) -> list[str]:
    """Return the names of the variables that a folder's file of secrets gives a value.

    Empty if the file is missing or unreadable.
    """
    try:
        text = (folder / SECRETS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return _VARIABLE.findall(text)


def configuration(
    wanted: SetupRequest, app_id: int | None = None, slug: str = "", client_id: str = ""
) -> str:
    """Return the text of the configuration. Strings are written as JSON, which is valid TOML.

    With the `client_id` of an App, people sign in with GitHub.
    """
    app = ""
    sign_in = _SIGN_IN.format(client_id=json.dumps(client_id)) if client_id else ""
    if app_id is not None:
        app = _APP.format(id=app_id, slug=slug, file=KEY, owner=json.dumps(wanted.owner))
    elif not wanted.public_url:
        app = _POLLING
    address = _ADDRESS.format(public_url=json.dumps(wanted.public_url))
    isolation = _ISOLATION.format(isolation=json.dumps(wanted.isolation))
    return _TEXT.format(
        address=address if wanted.public_url else "",
        api_url=json.dumps(wanted.api_url),
        app=app,
        sign_in=sign_in,
        project=wanted.project,
        repository=json.dumps(wanted.repository),
        agent=json.dumps(wanted.agent),
        agent_name=wanted.agent,
        key=f"key = {json.dumps(wanted.key)}\n" if wanted.key else "",
        isolation=isolation if wanted.isolation else "",
    )


def write(folder: Path, text: str, secrets: Mapping[str, str], key: str = "") -> None:
    """Write the files, readable only by this user. The secrets get a new token for the web pages.

    `text` is the configuration, `secrets` are values by environment variable, `key` is the App's
    private key or empty. Raises `OSError`; existing files are not overwritten. If some file cannot
    be written, or the person interrupts the writing, the files written before are deleted.
    """
    variables = {**secrets, "MERGEWRIGHT_PAGE_TOKEN": token_hex(32)}
    lines = "".join(f"{name}={value}\n" for name, value in variables.items())
    contents = {KEY: key} if key else {}
    contents |= {SECRETS: lines, CONFIGURATION: text}
    created: list[Path] = []
    try:
        for name, content in contents.items():
            _private(folder / name, content, created)
    except BaseException:
        for path in created:
            path.unlink(missing_ok=True)
        raise


def _private(path: Path, text: str, created: list[Path]) -> None:
    """Create a file that is private from the start, note it in `created`, and sync it to disk."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    created.append(path)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(handle)
