"""Loads what commands work on: the configuration, the store, a session."""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct

from bot.cli.options import PROBLEM, CliError
from bot.store import Session, Store, StoreFailure
from bot.system.paths import Paths
from bot.system.redaction import Redaction
from config.contradictions import nearest
from config.load import ConfigError, Secrets, load, load_settings, secret_values
from config.settings import AgentTypeSettings, Settings
from runtimes import RUNTIMES
from runtimes.agents import AGENTS

FILE = Path("mergewright.toml")


class Installation(Struct, frozen=True, kw_only=True):
    """The configuration with its secrets and the environment it was read in."""

    folder: Path  #: The directory of the configuration file.
    settings: Settings
    secrets: Secrets
    environ: Mapping[str, str]


def file(config: Path | None) -> Path:
    """Return the path of the configuration file. Raises `CliError` if it does not exist."""
    path = config or FILE
    if path.is_file():
        return path
    if config:
        what = "is a directory" if config.is_dir() else "no such file"
        raise CliError(f"{config}: {what}")
    raise CliError(
        f"no configuration: {FILE} not found, and neither --config nor MERGEWRIGHT_CONFIG is set\n"
        f"to create one: mergewright config example > {FILE}"
    )


def settings(config: Path | None) -> Settings:
    """Return the settings. Raises `CliError`."""
    path = file(config)
    try:
        found = load_settings(path)
    except ConfigError as error:
        raise CliError(str(error)) from None
    refuse_unknown_names(path, found)
    return found


def everything(config: Path | None) -> tuple[Settings, Secrets]:
    """Return the settings and the secrets. Raises `CliError`."""
    path = file(config)
    try:
        found, secrets = load(path, os.environ)
    except ConfigError as error:
        raise CliError(str(error)) from None
    refuse_unknown_names(path, found)
    return found, secrets


def installation(config: Path | None, environ: Mapping[str, str]) -> Installation:
    """Return the whole installation. Raises `CliError`."""
    found, secrets = everything(config)
    return Installation(
        folder=file(config).parent, settings=found, secrets=secrets, environ=environ
    )


def redacting(config: Path | None) -> tuple[Settings, Redaction]:
    """Return the settings, and what replaces secrets in output. Raises `CliError`."""
    found, secrets = everything(config)
    return found, Redaction(secret_values(found, secrets, os.environ))


def refuse_unknown_names(path: Path, found: Settings) -> None:
    """Raise `CliError` for programs and runtimes that do not exist.

    `config` cannot check them, because it does not import the runtimes.
    """
    wrong = [
        f"{path}: agent-types.{name}.program = {one.program!r}: {nearest(one.program, AGENTS)}"
        for name, one in found.agent_types.items()
        if one.program not in AGENTS
    ]
    for name, one in found.agent_types.items():
        ways = {*AGENTS[one.program].preambles, "first-message"} if one.program in AGENTS else set()
        if one.preamble and ways and one.preamble not in ways:
            wrong.append(
                f"{path}: agent-types.{name}.preamble = {one.preamble!r}: {one.program} has"
                f" {' and '.join(sorted(ways))}"
            )
        if says := _unfit_agents(one):
            wrong.append(f"{path}: agent-types.{name}.subagents {says}")
    for name, agent in found.agents.items():
        for kind in agent.types if agent.tools else ():
            program = found.agent_types[kind].program
            if program in AGENTS and not AGENTS[program].tools:
                wrong.append(
                    f"{path}: agents.{name}.tools: {program} ([agent-types.{kind}]) cannot restrict"
                    " its tools; remove it from `types` or remove `tools`"
                )
    kind = found.runtime.kind
    if kind not in RUNTIMES:
        wrong.append(f"{path}: runtime.kind = {kind!r}: {nearest(kind, RUNTIMES)}")
    if wrong:
        raise CliError("\n".join(wrong))


def _unfit_agents(kind: AgentTypeSettings) -> str:
    """Return the problem with an agent type's `subagents`; empty if there is none."""
    program, allowed = AGENTS.get(kind.program), kind.subagents
    if program is None or allowed is True:
        return ""
    if not program.supports_subagents:
        return (
            f"= {str(allowed).lower()}: {kind.program} has no subagents that Mergewright could"
            " limit; remove this setting"
        )
    if allowed and not program.limits_subagents:
        return (
            f"= {allowed}: {kind.program} cannot limit the number of subagents; use true or false"
        )
    return ""


@contextmanager
def store(found: Settings) -> Iterator[Store]:
    """Open the server's database for reading. Raises `CliError`."""
    with _opened(found, Store.reading) as opened:
        yield opened


@contextmanager
def guest(found: Settings, redact: Redaction) -> Iterator[Store]:
    """Open the server's database for submitting commands. Raises `CliError`."""
    with _opened(found, partial(Store.beside, redact=redact)) as opened:
        yield opened


@contextmanager
def _opened(found: Settings, opening: Callable[[Path], Store]) -> Iterator[Store]:
    path = Paths(found.data).database
    if not path.exists():
        raise CliError(f"{path}: no database yet; `mergewright serve` creates it", PROBLEM)
    try:
        with closing(opening(path)) as opened:
            yield opened
    except StoreFailure as failure:
        raise CliError(str(failure), PROBLEM) from None


def session(opened: Store, id: str) -> Session:
    """Return a session by its ID. Raises `CliError` with the closest IDs."""
    found = opened.sessions.get(id)
    if found is None:
        ids = [one.id for one in opened.sessions.all()]
        near = " or ".join(difflib.get_close_matches(id, ids))
        hint = f"did you mean {near}?" if near else "`mergewright ls --all` lists all sessions"
        raise CliError(f"no session {id!r}; {hint}")
    return found
