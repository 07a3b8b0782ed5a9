"""Reads the configuration file and the secrets of the environment, and says what is wrong."""

import difflib
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from config.settings import PROJECT_NAME, Settings

#: Names of the fields of `Secrets` and of the variables they come from.
VARIABLES: Mapping[str, str] = {
    "token": "MERGEWRIGHT_GITHUB_TOKEN",
    "webhook_secret": "MERGEWRIGHT_WEBHOOK_SECRET",
    "webhook_secret_previous": "MERGEWRIGHT_WEBHOOK_SECRET_PREVIOUS",
    "private_key": "MERGEWRIGHT_GITHUB_PRIVATE_KEY",
    "page_token": "MERGEWRIGHT_PAGE_TOKEN",
}

_SECRET_VALUE = re.compile(
    r"gh[pousr]_|github_pat_|sk-[\w-]{20}|AIza[\w-]{20}|-----BEGIN |\w+://[^/]*@"
)
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_OURS = re.compile(r"MERGEWRIGHT_|(?:GH|GITHUB)_(?:ENTERPRISE_)?TOKEN$")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")

#: A Unix socket's path may have 104 to 108 bytes, its end included; this leaves room for the
#: runtime's folder and socket below the data folder.
_DATA_BYTES = 80


class ConfigError(Exception):
    """The configuration cannot be used; the message has one line for each problem."""


class Secrets(Struct, frozen=True, kw_only=True):
    """What must never be written down; empty where it is not set. Its repr shows names only."""

    token: str = ""
    webhook_secret: str = ""
    webhook_secret_previous: str = ""  #: Still accepted, while GitHub is given a new one.
    private_key: str = ""
    page_token: str = ""
    model_keys: Mapping[str, str] = {}  #: By the variables that the settings name.

    def __repr__(self) -> str:
        names = [name for name in self.__struct_fields__ if getattr(self, name)]
        return f"Secrets({', '.join(f'{name}=***' for name in names)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same for tracebacks that show variables."""
        return [(name, "***") for name in self.__struct_fields__ if getattr(self, name)]


def load(path: Path, environ: Mapping[str, str]) -> tuple[Settings, Secrets]:
    """The settings of a file and the secrets of an environment.

    Raises `ConfigError` with every problem found: where, what was expected, the remedy.
    """
    settings = load_settings(path)
    secrets = {name: _secret(variable, environ) for name, variable in VARIABLES.items()}
    keys = {name: key for name in settings.key_variables if (key := _secret(name, environ))}
    key_file = settings.github.private_key_file
    if key_file and not secrets["private_key"]:
        secrets["private_key"] = _read(path.parent / key_file, "github.private-key-file")
    if any(map(str.isspace, secrets["token"])):
        raise ConfigError(
            f"{VARIABLES['token']}: there is a blank or a line break in it: copy the token alone"
        )
    return settings, Secrets(**secrets, model_keys=keys)


def load_settings(path: Path) -> Settings:
    """The settings of a file. Raises `ConfigError`."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    return settings_of(text, str(path))


def settings_of(text: str, path: str) -> Settings:
    """The settings that a text holds; `path` is what errors call it. Raises `ConfigError`."""
    try:
        document = tomllib.loads(text)
    except ValueError as error:  # It names line and column.
        raise ConfigError(f"{path}: {error}") from None
    problems = list(misfits(document, Settings, ""))
    if not problems:
        settings = msgspec.convert(document, Settings)
        problems = list(_contradictions(settings))
    if problems:
        raise ConfigError("\n".join(f"{path}: {problem}" for problem in problems))
    return settings


def missing(settings: Settings, secrets: Secrets) -> tuple[str, ...]:
    """What the server cannot do without and does not have, each with its remedy."""
    wanted = []
    if lacking := no_credentials(settings, secrets):
        wanted.append(lacking)
    if not secrets.webhook_secret and not settings.polls:
        wanted.append(
            "no webhook secret: set MERGEWRIGHT_WEBHOOK_SECRET to the one given to GitHub"
        )
    for variable, place in settings.key_variables.items():
        if variable not in secrets.model_keys:
            wanted.append(f"no model key: set {variable}, which {place} names")
    if not settings.projects:
        wanted.append("no project: add a table [projects.NAME] with a repository")
    return tuple(wanted)


def no_credentials(settings: Settings, secrets: Secrets) -> str:
    """What is missing to be anybody at GitHub, with its remedy; empty: nothing is."""
    if settings.github.app_id and not secrets.private_key:
        return (
            "no private key for the GitHub App: set github.private-key-file"
            " or MERGEWRIGHT_GITHUB_PRIVATE_KEY_FILE"
        )
    if not settings.github.app_id and not secrets.token:
        return "no GitHub token: set MERGEWRIGHT_GITHUB_TOKEN, or github.app-id for an App"
    return ""


def secret_values(
    settings: Settings, secrets: Secrets, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Every secret whose value is known: the bot's own, and those of `environ` agents are given."""
    passed = {name for kind in settings.agent_types.values() for name in kind.pass_env}
    given = [environ.get(name, "") for name in sorted(passed) if _SECRET_NAME.search(name)]
    ours = (getattr(secrets, name) for name in VARIABLES)
    return tuple(filter(None, (*ours, *secrets.model_keys.values(), *given)))


def nearest(word: str, choices: Mapping[str, object] | list[str]) -> str:
    """The end of an error about an unknown word: what was probably meant, and what there is."""
    close = difflib.get_close_matches(word, list(choices), n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return f"{meant}known: {', '.join(sorted(choices)) or 'none'}"


def unfit_paths(where: str, paths: Iterable[str]) -> Iterator[str]:
    """Of patterns for paths, those on which git gives up, and with it every push."""
    for path in paths:
        if ".." in path.split("/") or path.startswith("//") or not path.isprintable():
            yield f"{where} has {_short(path)}: expected paths inside a repository"


def misfits(value: object, kind: Any, where: str) -> Iterator[str]:
    """Every place below `where` whose value is not what its declaration says."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        yield from _table_misfits(value, kind, where)
    elif get_origin(kind) is dict and isinstance(value, dict):
        for name, inner in value.items():
            yield from misfits(inner, get_args(kind)[1], f"{where}.{name}")
    elif get_origin(kind) is tuple and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from misfits(inner, get_args(kind)[0], f"{where}[{index}]")
    elif isinstance(value, str) and _SECRET_VALUE.match(value):
        yield f"{where}: this looks like a secret, which does not belong in a file: {_remedy('')}"
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{where} = {value}: expected a finite number"
    else:
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            expected = _choices(value, kind) or str(error).replace("`", "")
            yield f"{where} = {_short(value)}: {expected[0].lower()}{expected[1:]}"


def _table_misfits(value: object, kind: type[Struct], where: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} = {_short(value)}: expected a table [{where}]"
        return
    fields = {one.encode_name: one for one in msgspec.structs.fields(kind)}
    for key, inner in value.items():
        path = f"{where}.{key}" if where else key
        if key in fields:
            yield from misfits(inner, fields[key].type, path)
        elif _SECRET_NAME.search(key.replace("-", "_")):
            yield f"{path}: a secret does not belong in a file: {_remedy(key)}"
        else:
            yield f"{path}: unknown key; {nearest(key, fields)}"
    for name, one in fields.items():
        if one.required and name not in value:
            yield f"{where}.{name}: missing"


def _choices(value: object, kind: Any) -> str:
    """What a closed set of words allows; empty where `kind` is none."""
    if get_origin(kind) is Literal:
        words = [str(word) for word in get_args(kind) if word]
    elif isinstance(kind, type) and issubclass(kind, Enum):
        words = [str(member.value) for member in kind]
    else:
        return ""
    return nearest(str(value), words)


def _contradictions(settings: Settings) -> Iterator[str]:
    """What every value alone allows and all together do not."""
    for name, value in msgspec.structs.asdict(settings.policy).items():
        if isinstance(value, int | float) and value < 0:
            yield f"policy.{name.replace('_', '-')} = {value}: expected 0 or more"
    yield from unfit_paths("policy.protected-paths", settings.policy.protected_paths)
    yield from unfit_paths("runtime.steering-files", settings.runtime.steering_files)
    for where, url in (
        *(
            (f"agent-types.{name}.endpoint", kind.endpoint)
            for name, kind in settings.agent_types.items()
        ),
        ("github.api-url", settings.github.api_url),
        ("github.git-url", settings.github.git_url),
        ("server.public-url", settings.server.public_url),
    ):
        if url and not _is_address(url):
            yield f"{where} = {_short(url)}: expected an address such as https://example.com/"
    if _is_address(settings.github.api_url) and not settings.github.git_base:
        yield "github.git-url: missing, and cannot be worked out from api-url"
    yield from _app_contradictions(settings)
    if len(os.fsencode(settings.data)) > _DATA_BYTES:
        yield (
            f"server.data = {_short(str(settings.data))}: too long for the sockets in it;"
            f" expected at most {_DATA_BYTES} bytes"
        )
    limits = settings.limits
    if limits.reserved_for_people >= limits.sessions:
        yield (
            f"limits.reserved-for-people = {limits.reserved_for_people}: expected less than"
            f" limits.sessions, which is {limits.sessions}"
        )
    yield from _project_contradictions(settings)
    yield from _type_contradictions(settings)
    yield from _agent_contradictions(settings)
    yield from _key_contradictions(settings)


def _is_address(url: str) -> bool:
    """Whether requests can go there, and a path be put behind it."""
    try:
        parts = urlsplit(url)
        usable = parts.port != 0
    except ValueError:  # A port that is no number or too high, a bracket that stands alone.
        return False
    return (
        usable
        and parts.scheme in ("http", "https")
        and bool(parts.hostname)
        and not re.search(r"[?#\s]", url)
    )


def _key_contradictions(settings: Settings) -> Iterator[str]:
    for variable, place in settings.key_variables.items():
        if not _VARIABLE.fullmatch(variable):
            yield f"{place}: expected the name of a variable that holds the key"
        elif _OURS.match(variable):
            yield f"{place}: {variable} would give the model's provider Mergewright's own rights"
    for table, owners in (("projects", settings.projects), ("agents", settings.agents)):
        for name, owner in owners.items():
            for kind in owner.model_keys:
                if kind not in settings.agent_types:
                    yield (
                        f"{table}.{name}.model-keys.{kind}: no [agent-types.{kind}];"
                        f" {nearest(kind, settings.agent_types)}"
                    )


def _app_contradictions(settings: Settings) -> Iterator[str]:
    owners = {owner.casefold() for owner in settings.github.allowed_owners}
    if settings.github.app_id and not owners:
        yield "github.allowed-owners: missing: name the accounts that the App works for"
    for name, project in settings.projects.items():
        owner = project.repository.partition("/")[0]
        if settings.github.app_id and owners and owner.casefold() not in owners:
            yield f"projects.{name}.repository: {_short(owner)} is not in github.allowed-owners"


def _project_contradictions(settings: Settings) -> Iterator[str]:
    owners: dict[str, str] = {}
    for name, project in settings.projects.items():
        where = f"projects.{name}"
        if not PROJECT_NAME.fullmatch(name):
            yield f"{where}: expected a name of up to 39 small letters, digits and dashes"
        if not _REPOSITORY.fullmatch(project.repository):
            yield f"{where}.repository = {_short(project.repository)}: expected 'owner/name'"
        forked = project.push_to == "fork"
        if forked != bool(project.fork) or (forked and not _REPOSITORY.fullmatch(project.fork)):
            yield (
                f"{where}.fork = {_short(project.fork)}: expected 'owner/name', together with"
                ' push-to = "fork"'
            )
        if "," in project.label:
            yield f"{where}.label = {_short(project.label)}: GitHub finds no label with a comma"
        if project.agent not in settings.agent_types:
            yield (
                f"{where}.agent = {_short(project.agent)}: no [agent-types.{project.agent}];"
                f" {nearest(project.agent, settings.agent_types)}"
            )
        first = owners.setdefault(project.repository.lower(), name)
        if first != name:
            yield f"{where}.repository = {_short(project.repository)}: projects.{first} has it too"


def _type_contradictions(settings: Settings) -> Iterator[str]:
    for name, kind in settings.agent_types.items():
        if re.search(r"/v\d\w*/?$", kind.endpoint):
            yield (
                f"agent-types.{name}.endpoint = {_short(kind.endpoint)}: expected it without the"
                " version at its end, which each program adds"
            )
        for variable in kind.env:
            if _SECRET_NAME.search(variable):
                yield (
                    f"agent-types.{name}.env.{variable}: a secret does not belong in a file:"
                    f" set it for the server and name it in pass-env"
                )
        for variable in kind.pass_env:
            if _OURS.match(variable):
                yield (
                    f"agent-types.{name}.pass-env: {variable} would give the agent"
                    f" Mergewright's own rights; agents commit, Mergewright pushes"
                )


def _agent_contradictions(settings: Settings) -> Iterator[str]:
    for name, agent in settings.agents.items():
        for kind in agent.types:
            if kind not in settings.agent_types:
                yield (
                    f"agents.{name}.types: no [agent-types.{kind}];"
                    f" {nearest(kind, settings.agent_types)}"
                )
        if not PROJECT_NAME.fullmatch(name):
            yield f"agents.{name}: expected a name of up to 39 small letters, digits and dashes"
        if name in settings.agent_types and name not in agent.types:
            yield f"agents.{name}: an agent type has this name; expected another, or it in types"


def _secret(variable: str, environ: Mapping[str, str]) -> str:
    """A secret by its variable, or by the file that `VARIABLE_FILE` names; empty: neither."""
    value, file = environ.get(variable, ""), environ.get(f"{variable}_FILE", "")
    if value and file:
        raise ConfigError(f"{variable} and {variable}_FILE are both set: unset one")
    return _read(Path(file), f"{variable}_FILE") if file else value.strip()


def _read(path: Path, where: str) -> str:
    try:
        text = path.expanduser().read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{where}: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{where}: {path} is not text") from None
    if not text:
        raise ConfigError(f"{where}: {path} is empty")
    return text


def _remedy(key: str) -> str:
    """Where a secret belongs instead."""
    wanted = key.replace("-", "_").removeprefix("github_")
    names = [VARIABLES[wanted]] if wanted in VARIABLES else list(VARIABLES.values())
    return f"set {' or '.join(names)} (or the same with _FILE) in the environment"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
