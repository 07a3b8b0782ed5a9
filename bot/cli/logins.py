"""The servers that `mergewright login` has stored, each with a token, in a private file."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import httpx
import msgspec
from msgspec import Struct, field

from bot.cli.options import LOOPBACK, CliError

_PRIVATE, _OTHERS = 0o600, 0o077


class StoredLogin(Struct, frozen=True, kw_only=True):
    """The token for a server."""

    token: str
    login: str = ""  #: The token's owner when it was stored; empty for the page token.

    def __repr__(self) -> str:
        """Show only the login: the token must not get into logs or errors."""
        return f"StoredLogin(login={self.login!r})"


class Logins(Struct, kw_only=True):
    """The content of the file: the servers, and which of them is the default."""

    default: str = ""  #: The URL of the server that commands use by default; may be empty.
    #: By the server's URL. Neither these URLs nor `default` end with a slash.
    servers: dict[str, StoredLogin] = field(default_factory=dict)


def path() -> Path:
    """Return the file's path, below the folder for the user's configurations.

    https://specifications.freedesktop.org/basedir-spec/latest/
    """
    named = Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config")
    with suppress(RuntimeError):  # There is no home; the file is not found then.
        named = named.expanduser()
    return named / "mergewright" / "servers.json"


def read() -> Logins:
    """Return the stored servers, or none if there is no file.

    Raises `CliError` if the file is unreadable, or others have any access to it.
    """
    file = path()
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            content = opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return Logins()
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}") from None
    if mode & _OTHERS:
        raise CliError(f"{file}: others may read the tokens in it; run: chmod 600 {file}")
    try:
        return msgspec.json.decode(content, type=Logins)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        remedy = "remove it and run `mergewright login` again"
        raise CliError(f"{file}: not written by `mergewright login`; {remedy}") from None


def write(logins: Logins) -> None:
    """Replace the file, readable by this user only. Raises `OSError`."""
    file = path()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".servers-")  # With the mode 0600.
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(msgspec.json.format(msgspec.json.encode(logins), indent=2) + b"\n")
            opened.flush()
            os.fsync(handle)
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def server_url(url: str) -> str:
    """Return a server's URL in the form in which it is stored.

    Raises `CliError` if the URL is invalid, has a password, or leads to another machine by http.
    """
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise CliError(f"--server {url}: {error}") from None
    if address.userinfo:
        raise CliError("--server: the URL must not contain a password; give the token to `login`")
    named = address.host and address.scheme in ("http", "https")
    if not named or address.query or address.fragment:
        raise CliError(f"--server {url}: expected a URL such as https://bot.example")
    if address.scheme != "https" and address.host not in LOOPBACK:
        raise CliError(f"--server {url}: use https, so that nobody reads the token on its way")
    return str(address).rstrip("/")
