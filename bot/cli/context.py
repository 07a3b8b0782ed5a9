"""What a command starts from: the configuration, the store, a session; or a refusal that helps."""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from bot.cli.check_result import Installation
from bot.cli.refused import PROBLEM, CliError
from bot.store import Session, Store, StoreFailure
from bot.system.paths import Paths
from bot.system.redaction import Redaction
from config.contradictions import nearest
from config.load import ConfigError, Secrets, load, load_settings, secret_values
from config.settings import AgentTypeSettings, Settings
from runtimes import RUNTIMES
from runtimes.agents import AGENTS

FILE = Path("mergewright.toml")


def file(config: Path | None) -> Path:
    """The configuration to use, which must be there."""
    path = config or FILE
    if path.is_file():
        return path
    if config:
        what = "a folder, not a file" if config.is_dir() else "there is no such file"
        raise CliError(f"{config}: {what}")
    raise CliError(
        f"no configuration: {FILE} is not here, and --config or MERGEWRIGHT_CONFIG name none\n"
        f"to begin: mergewright config example > {FILE}"
    )


def settings(config: Path | None) -> Settings:
    """The settings alone, for commands that need no secret."""
    path = file(config)
    try:
        found = load_settings(path)
    except ConfigError as error:
        raise CliError(str(error)) from None
    refuse_unknown_names(path, found)
    return found


def everything(config: Path | None) -> tuple[Settings, Secrets]:
    """The settings and the secrets."""
    path = file(config)
    try:
        found, secrets = load(path, os.environ)
    except ConfigError as error:
        raise CliError(str(error)) from None
    refuse_unknown_names(path, found)
    return found, secrets


def installation(config: Path | None, environ: Mapping[str, str]) -> Installation:
    """The settings and the secrets, with what a look at this machine needs besides."""
    found, secrets = everything(config)
    return Installation(
        folder=file(config).parent, settings=found, secrets=secrets, environ=environ
    )


def redacting(config: Path | None) -> tuple[Settings, Redaction]:
    """The settings, and what takes secrets out of what is printed and written down."""
    found, secrets = everything(config)
    return found, Redaction(secret_values(found, secrets, os.environ))


def refuse_unknown_names(path: Path, found: Settings) -> None:
    """Hold the names of programs and runtimes against the tables, which `config` does not know."""
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
            wrong.append(f"{path}: agent-types.{name}.intra-parallel {says}")
    for name, agent in found.agents.items():
        for kind in agent.types if agent.tools else ():
            program = found.agent_types[kind].program
            if program in AGENTS and not AGENTS[program].tools:
                wrong.append(
                    f"{path}: agents.{name}.tools: {program} ([agent-types.{kind}]) cannot be held"
                    " to some of its tools: take it out of `types`, or leave `tools` out"
                )
    kind = found.runtime.kind
    if kind not in RUNTIMES:
        wrong.append(f"{path}: runtime.kind = {kind!r}: {nearest(kind, RUNTIMES)}")
    if wrong:
        raise CliError("\n".join(wrong))


def _unfit_agents(kind: AgentTypeSettings) -> str:
    """What is wrong with what a type says of agents of its program's own; empty: nothing is."""
    program, allowed = AGENTS.get(kind.program), kind.intra_parallel
    if program is None or allowed is True:
        return ""
    if not program.runs_agents:
        return (
            f"= {str(allowed).lower()}: Mergewright knows of no agents that {kind.program} runs"
            " inside a session, and cannot hold it to that: leave it out"
        )
    if allowed and not program.counts_agents:
        return f"= {allowed}: {kind.program} takes no number of agents: say true or false"
    return ""


@contextmanager
def store(found: Settings) -> Iterator[Store]:
    """The server's database, to read from."""
    with _opened(found, Store.reading) as opened:
        yield opened


@contextmanager
def guest(found: Settings, redact: Redaction) -> Iterator[Store]:
    """The server's database, to write a person's word into beside the server."""
    with _opened(found, partial(Store.beside, redact=redact)) as opened:
        yield opened


@contextmanager
def _opened(found: Settings, opening: Callable[[Path], Store]) -> Iterator[Store]:
    path = Paths(found.data).database
    if not path.exists():
        raise CliError(f"{path}: no database yet; `mergewright serve` makes it", PROBLEM)
    try:
        with closing(opening(path)) as opened:
            yield opened
    except StoreFailure as failure:
        raise CliError(str(failure), PROBLEM) from None


def session(opened: Store, id: str) -> Session:
    """One session by its id, or the nearest ids."""
    found = opened.sessions.get(id)
    if found is None:
        ids = [one.id for one in opened.sessions.all()]
        near = " or ".join(difflib.get_close_matches(id, ids))
        hint = f"did you mean {near}?" if near else "`mergewright ls --all` lists them"
        raise CliError(f"no session {id!r}; {hint}")
    return found
