"""Loads the configuration file and the secrets, and reports problems in them."""

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from config.contradictions import SECRET_NAME, contradictions, nearest, short
from config.notifier_secrets import secrets_in, signing_forms, unfit_secrets
from config.settings import Settings

#: The environment variables of secrets, by field of `Secrets`.
VARIABLES: Mapping[str, str] = {
    "token": "MERGEWRIGHT_GITHUB_TOKEN",
    "webhook_secret": "MERGEWRIGHT_WEBHOOK_SECRET",
    "webhook_secret_previous": "MERGEWRIGHT_WEBHOOK_SECRET_PREVIOUS",
    "private_key": "MERGEWRIGHT_GITHUB_PRIVATE_KEY",
    "signing_key": "MERGEWRIGHT_SIGNING_KEY",
    "page_token": "MERGEWRIGHT_PAGE_TOKEN",
    "client_secret": "MERGEWRIGHT_GITHUB_CLIENT_SECRET",
}

_SECRET_VALUE = re.compile(
    r"gh[pousr]_|github_pat_|sk-[\w-]{20}|AIza[\w-]{20}|-----BEGIN |\w+://[^/]*@"
)
#: The remedy if the App's private key cannot be read, by the setting or variable with its file.
_KEY_REMEDIES = dict.fromkeys(
    ("github.private-key-file", "MERGEWRIGHT_GITHUB_PRIVATE_KEY_FILE"),
    "name the .pem file of the App's private key, or generate another key in the App's settings"
    " on GitHub (General, Private keys)",
)
#: A password in a URL.
_PASSWORD = re.compile(r"\w://[^/@:\s]*:([^/@\s]+)@")
#: The largest number in a setting; very large ones overflow the database or the calendar.
_MOST = 10**12
#: Replacements in msgspec's messages; longer texts come first, because they contain shorter ones.
_WORDS: Mapping[str, str] = {
    "`array` of length >= 1": "at least one",
    "Expected `bool | int`": "expected true, false or a number",
    "Expected `bool`": "expected true or false",
    "Invalid RFC3339 encoded date": "expected a date such as 2026-11-21",
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "text",
    "`bool`": "true or false",
    "`array`": "a list",
    "`object`": "a table",
    "`": "",
}


class ConfigError(Exception):
    """The configuration is invalid; the message has a line for each problem."""


class Secrets(Struct, frozen=True, kw_only=True):
    """The secrets; an empty text is a secret that is not set. The repr masks their values."""

    token: str = ""
    webhook_secret: str = ""
    webhook_secret_previous: str = ""  #: Still accepted while `webhook_secret` is replaced.
    private_key: str = ""  #: The GitHub App's.
    private_key_source: str = ""  #: For error messages: its variable or setting, and its file.
    signing_key: str = ""  #: An SSH key.
    page_token: str = ""
    client_secret: str = ""  #: Of the GitHub App, for the sign-in.
    model_keys: Mapping[str, str] = {}  #: By environment variable.
    notifiers: Mapping[str, str] = {}  #: URLs and signing secrets, by environment variable.
    #: The texts of projects' `env-files`, by project and by path of the file.
    env_files: Mapping[str, Mapping[str, str]] = {}

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if getattr(self, name)]
        return f"Secrets({', '.join(f'{name}=***' for name in names)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the names of the set secrets with masked values, for tracebacks by Rich."""
        return [(name, "***") for name in self.__struct_fields__ if getattr(self, name)]


def load(path: Path, environ: Mapping[str, str]) -> tuple[Settings, Secrets]:
    """Return a file's settings, and the secrets in environment variables or in files.

    `secret_file` finds these files, or the settings `github.private-key-file`, `signing.key-file`
    and `env-files` name them. Raises `ConfigError` for unreadable or invalid settings or secrets.
    """
    settings = load_settings(path)
    secrets = {name: secret(variable, environ) for name, variable in VARIABLES.items()}
    keys = {name: key for name in settings.key_variables if (key := secret(name, environ))}
    notifiers = {
        name: found for name in settings.notifier_variables if (found := secret(name, environ))
    }
    source, named = VARIABLES["private_key"], settings.github.private_key_file
    key_file, where = secret_file(source, environ)
    if named and not secrets["private_key"]:
        key_file, where = path.parent / named, "github.private-key-file"
        secrets["private_key"] = _read(key_file, where)
    if key_file:
        source = f"{where}: {key_file}"
    if settings.signing.key_file and not secrets["signing_key"]:
        file = path.parent / settings.signing.key_file
        secrets["signing_key"] = _read(file, "signing.key-file")
    if any(map(str.isspace, secrets["token"])):
        raise ConfigError(f"{VARIABLES['token']}: contains whitespace; copy the token alone")
    secrets["private_key_source"] = source
    env_files = {
        name: {
            file: _read_whole(
                Path(own.env_folder).expanduser() / file, f"projects.{name}.env-files"
            )
            for file in own.env_files
        }
        for name, own in settings.projects.items()
        if own.env_files
    }
    return settings, Secrets(**secrets, model_keys=keys, notifiers=notifiers, env_files=env_files)


def load_settings(path: Path) -> Settings:
    """Return the settings in a file. Raises `ConfigError` if it is unreadable or invalid."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    return settings_of(text, str(path))


def settings_of(text: str, path: str) -> Settings:
    """Return the settings in a text. Raises `ConfigError` if they are invalid.

    `path` is the name of the file with the text, for the error's message.
    """
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # The message has line and column.
        raise ConfigError(f"{path}: {error}") from None
    problems = list(misfits(document, Settings, ""))
    if not problems:
        settings = msgspec.convert(_with_policies(document), Settings)
        problems = list(contradictions(settings))
    if problems:
        raise ConfigError("\n".join(f"{path}: {problem}" for problem in problems))
    return settings


def _with_policies(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with each project's policy completed by that of the server."""
    server = document.get("policy", {})

    def whole(project: dict[str, Any]) -> dict[str, Any]:
        own = {"policy": {**server, **project["policy"]}} if "policy" in project else {}
        return {**project, **own}

    projects = {name: whole(project) for name, project in document.get("projects", {}).items()}
    installation = dict(document.get("installation", {}))
    if "project" in installation:
        installation["project"] = whole(installation["project"])
    return {**document, "projects": projects, "installation": installation}


def missing(settings: Settings, secrets: Secrets) -> tuple[str, ...]:
    """Return a line with a remedy for each missing or unusable secret and for a missing project."""
    lacking = no_credentials(settings, secrets)
    wanted = [lacking] if lacking else []
    if not secrets.webhook_secret and not settings.polls:
        wanted.append("no webhook secret: set MERGEWRIGHT_WEBHOOK_SECRET to the webhook's secret")
    wanted += no_sign_in(settings, secrets)
    wanted += [
        f"no model key: set {variable} (named by {place})"
        for variable, place in settings.key_variables.items()
        if variable not in secrets.model_keys
    ]
    for variable, place in settings.notifier_variables.items():
        if variable not in secrets.notifiers:
            wanted.append(f"no value for {place}: set {variable}")
    wanted += unfit_secrets(settings.notify, secrets.notifiers)
    if settings.signs and not secrets.signing_key:
        wanted.append(
            "no key to sign commits: set signing.key-file or MERGEWRIGHT_SIGNING_KEY_FILE to a"
            " private SSH key (ssh-keygen -t ed25519)"
        )
    if not settings.projects and not settings.installation.repositories:
        wanted.append("no project: add a table [projects.NAME] with a repository")
    return tuple(wanted)


def no_credentials(settings: Settings, secrets: Secrets) -> str:
    """Return which GitHub credentials are missing, with the remedy; empty if none are."""
    if settings.github.app_id and not secrets.private_key:
        return (
            "no private key for the GitHub App: set github.private-key-file"
            " or MERGEWRIGHT_GITHUB_PRIVATE_KEY_FILE"
        )
    if not settings.github.app_id and not secrets.token:
        return "no GitHub token: set MERGEWRIGHT_GITHUB_TOKEN, or github.app-id for an App"
    return ""


def no_sign_in(settings: Settings, secrets: Secrets) -> list[str]:
    """Return messages about secrets that are missing for signing in, each with the remedy.

    If only this machine can reach the server, MERGEWRIGHT_PAGE_TOKEN is optional: without a way to
    sign in, the server's pages are disabled.
    """
    wanted = []
    if settings.sign_in.takes_people and not secrets.client_secret:
        wanted.append(
            "no sign-in with GitHub: set MERGEWRIGHT_GITHUB_CLIENT_SECRET to a client secret of the"
            " App (its settings at GitHub, General, Client secrets)"
        )
    if not settings.sign_in.takes_people and not secrets.page_token and is_public(settings):
        wanted.append(
            f"no sign-in, but others can reach {settings.public_url}: set MERGEWRIGHT_PAGE_TOKEN to"
            ' a long random value, or sign-in.method = "github"'
        )
    return wanted


def is_public(settings: Settings) -> bool:
    """Whether other machines can reach the server, by its own address or its public URL."""
    hosts = (settings.server.host, urlsplit(settings.public_url).hostname or "")
    return not all(map(_is_loopback, hosts))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def secret_values(
    settings: Settings, secrets: Secrets, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Return all texts to mask in output: the bot's own secrets, and those passed to agents."""
    passed = {name for kind in settings.agent_types.values() for name in kind.pass_env}
    given = [environ.get(name, "") for name in sorted(passed) if SECRET_NAME.search(name)]
    ours = (getattr(secrets, name) for name in VARIABLES)
    urls = {one.url for one in settings.notify.values()}
    sent = (
        form
        for variable, value in secrets.notifiers.items()
        for form in (secrets_in(value) if variable in urls else signing_forms(value))
    )
    texts = (text for files in secrets.env_files.values() for text in files.values())
    named = (value for text in texts for value in env_secrets(text))
    return tuple(filter(None, (*ours, *secrets.model_keys.values(), *given, *sent, *named)))


def env_secrets(text: str) -> Iterator[str]:
    """Yield an env file's secrets: passwords in URLs, and values of variables such as `API_KEY`."""
    for line in text.splitlines():
        name, _, value = line.strip().removeprefix("export ").partition("=")
        value = value.strip().strip("'\"")
        if SECRET_NAME.search(name.strip()):
            yield value
        yield from _PASSWORD.findall(value)


def secret_file(variable: str, environ: Mapping[str, str]) -> tuple[Path | None, str]:
    """Return the file that holds a secret, if any, and the source of its path, for messages.

    The path is in the variable `{variable}_FILE`, or is that of systemd's credential `{variable}`:
    https://systemd.io/CREDENTIALS/
    """
    if named := environ.get(f"{variable}_FILE"):
        return Path(named), f"{variable}_FILE"
    if folder := environ.get("CREDENTIALS_DIRECTORY"):
        credential = Path(folder) / variable
        if credential.exists():
            return credential, f"the credential {variable}"
    return None, ""


def misfits(value: object, kind: Any, where: str) -> Iterator[str]:
    """Yield a line for each error in `value`, as parsed from TOML, given its declared type `kind`.

    `where` is the name of the setting, with which the lines begin; empty for the whole file.
    """
    if get_origin(kind) in (UnionType, Union):  # One class from Python 3.14 on.
        kinds = [one for one in get_args(kind) if one is not NoneType]
        lists = [one for one in kinds if get_origin(one) is tuple]
        fits = lists if isinstance(value, list) else [one for one in kinds if one not in lists]
        kind = fits[0] if len(fits) == 1 else kind
    if isinstance(kind, type) and issubclass(kind, Struct):
        yield from _table_misfits(value, kind, where)
    elif get_origin(kind) in (dict, Mapping) and isinstance(value, dict):
        for name, inner in value.items():
            yield from misfits(inner, get_args(kind)[1], f"{where}.{name}")
    elif get_origin(kind) is tuple and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from misfits(inner, get_args(kind)[0], f"{where}[{index}]")
    elif isinstance(value, str) and _SECRET_VALUE.match(value):
        remedy = _remedy(where)
        yield f"{where}: this looks like a secret, which does not belong in a file: {remedy}"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{where} = {value}: expected a finite number"
    elif isinstance(value, int | float) and abs(value) > _MOST:
        yield f"{where} = {short(value)}: expected at most {_MOST}"
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            expected = _choices(value, kind) or _described(value, kind) or _expected(str(error))
            yield f"{where} = {short(value)}: {expected}"


def _table_misfits(value: object, kind: type[Struct], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} = {short(value)}: expected a table [{where}]"
        return
    fields = {one.encode_name: one for one in msgspec.structs.fields(kind)}
    for key, inner in value.items():
        path = f"{where}.{key}" if where else key
        if key in fields:
            yield from misfits(inner, fields[key].type, path)
        elif SECRET_NAME.search(key.replace("-", "_")):
            yield f"{path}: a secret does not belong in a file: {_remedy(path)}"
        else:
            yield f"{path}: unknown key; {nearest(key, fields)}"
    for name, one in fields.items():
        if one.required and name not in value:
            yield f"{where}.{name}: missing"


def _expected(message: str) -> str:
    """Return msgspec's message in plain words, such as `a table` for `object`."""
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return f"{message[0].lower()}{message[1:]}"


def _choices(value: object, kind: Any) -> str:
    """List an enumeration's values and the closest to `value`, in words; empty for other types."""
    if get_origin(kind) is Literal:
        words = [str(word) for word in get_args(kind) if word]
    elif isinstance(kind, type) and issubclass(kind, Enum):
        words = [str(member.value) for member in kind]
    else:
        return ""
    return nearest(str(value), words)


def _described(value: object, kind: Any) -> str:
    """Return what a text must be to match its type's pattern; empty for other types and values."""
    parts = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    words = next((part.description for part in parts if part.pattern), None)
    return f"expected {words}" if words and isinstance(value, str) else ""


def secret(variable: str, environ: Mapping[str, str]) -> str:
    """Return a secret from its variable or its file; empty if there is neither.

    Raises `ConfigError` if there are both, or if the file is unreadable or empty.
    """
    value, (file, where) = environ.get(variable, ""), secret_file(variable, environ)
    if value and file:
        raise ConfigError(f"{variable} and {where} are both set; unset one")
    return _read(file, where) if file else value.strip()


def _read(path: Path, where: str) -> str:
    return _read_whole(path, where).strip()


def _read_whole(path: Path, where: str) -> str:
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except OSError as error:
        remedy = _KEY_REMEDIES.get(where, "name a file that the bot's user can read")
        raise ConfigError(f"{where}: {path} cannot be read: {error.strerror}; {remedy}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: {path} is not UTF-8 text") from None
    if not text.strip():
        raise ConfigError(f"{where}: {path} is empty")
    return text


def _remedy(where: str) -> str:
    """Return where to put a secret instead of under the setting `where`."""
    if re.match(r"agent-types\..*\.(?:env\.|args\[|command\[)", where):
        return "set it in the server's environment and list it in pass-env"
    if re.match(r"(?:notify|agent-types|agents)\.|.*\.(?:model-keys\.|pass-env\[)", where):
        return "set it as an environment variable of the server and name the variable here"
    key = where.rpartition(".")[2].replace("-", "_").removesuffix("_file").removeprefix("github_")
    wanted = "signing_key" if where.startswith("signing.") else key
    names = [VARIABLES[wanted]] if wanted in VARIABLES else list(VARIABLES.values())
    return f"set {' or '.join(names)} (or the same with _FILE) in the environment"
