"""Loads the configuration, the store and sessions for commands."""

import difflib
import os
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bot.cli.options import PROBLEM, CliError
from bot.decide.assignment import caps
from bot.decide.policies import Policies
from bot.setup.files import CONFIGURATION
from bot.store import (
    QueuedSession,
    Session,
    Store,
    StoreDamaged,
    StoreFailure,
)
from bot.system.locations import Paths, programs
from bot.system.profiles import problems
from bot.system.redaction import Redaction
from config.contradictions import nearest
from config.load import ConfigError, Secrets, load, load_settings, secret_values
from config.projects import Projects
from config.settings import Settings
from lifecycle.model.status import TERMINAL, status_words
from runtimes import RUNTIMES
from runtimes.agents import AGENTS
from runtimes.base import Options, Runtime, Unavailable
from runtimes.host import run_name


class Installation(Struct, frozen=True, kw_only=True):
    """The configuration with its secrets."""

    folder: Path  #: The directory of the configuration file.
    settings: Settings
    secrets: Secrets


def file(config: Path | None) -> Path:
    """Return the path of the configuration file. Raises `CliError` if it does not exist."""
    path = config or Path(CONFIGURATION)
    if path.is_file():
        return path
    if config:
        what = "is a directory" if config.is_dir() else "no such file"
        raise CliError(f"{config}: {what}")
    raise CliError(
        f"no configuration: there is no {CONFIGURATION} in this folder, and neither --config nor"
        " MERGEWRIGHT_CONFIG is set\nto create one: mergewright init; for a server elsewhere:"
        " mergewright login"
    )


def settings(config: Path | None) -> Settings:
    """Return the settings, including the projects that the bot found in the App's installations.

    Raises `CliError` if anything is unreadable or invalid.
    """
    path = file(config)
    with config_errors():
        found = load_settings(path)
    _refuse_unknown_names(path, found)
    return with_installed(found)


def with_installed(found: Settings) -> Settings:
    """Return the settings with the projects that the bot found in the App's installations.

    The bot stores these projects in its database. If the database does not exist yet, the settings
    are returned unchanged. Raises `CliError` if the database cannot be used.
    """
    if not found.installation.repositories or not Paths(found.data).database.exists():
        return found
    with store(found) as opened:
        return replace(found, projects=Projects(found, opened.installed.projects()))


def installation(config: Path | None, environ: Mapping[str, str] | None = None) -> Installation:
    """Return the configured settings and the secrets; `environ` is by default `os.environ`.

    Secrets that are not set are empty. Raises `CliError` if anything is unreadable or invalid.
    """
    path = file(config)
    with config_errors():
        found, secrets = load(path, os.environ if environ is None else environ)
    _refuse_unknown_names(path, found)
    return Installation(folder=path.parent, settings=found, secrets=secrets)


def redacting(config: Path | None) -> tuple[Settings, Redaction]:
    """Return the settings as `settings` does, and a function that masks secrets.

    Raises `CliError`.
    """
    found = installation(config)
    redact = Redaction(secret_values(found.settings, found.secrets, os.environ))
    return with_installed(found.settings), redact


@contextmanager
def config_errors() -> Iterator[None]:
    """Raise a `CliError` in place of a `ConfigError` from the block."""
    try:
        yield
    except ConfigError as error:
        raise CliError(str(error)) from None


def _refuse_unknown_names(path: Path, found: Settings) -> None:
    if problems := [f"{path}: {problem}" for problem in _misfits(found)]:
        raise CliError("\n".join(problems))


def _misfits(found: Settings) -> Iterator[str]:
    """Yield a problem for each unknown program or runtime, and for each unsupported setting.

    The package `config` cannot check these settings, because it does not import the runtimes.
    """
    for name, kind in found.agent_types.items():
        where, program = f"agent-types.{name}", AGENTS.get(kind.program)
        if program is None:
            yield f"{where}.program = {kind.program!r}: {nearest(kind.program, AGENTS)}"
            continue
        ways = {*program.preambles, "first-message"}
        if kind.preamble and kind.preamble not in ways:
            known = " and ".join(sorted(ways))
            yield f"{where}.preamble = {kind.preamble!r}: {kind.program} supports only {known}"
        if kind.subagents is True:
            continue
        if not program.supports_subagents:
            yield (
                f"{where}.subagents = {str(kind.subagents).lower()}: {kind.program} has no"
                " subagents that Mergewright could limit; remove this setting"
            )
        elif kind.subagents and not program.limits_subagents:
            yield (
                f"{where}.subagents = {kind.subagents}: {kind.program} cannot limit the number of"
                " subagents; use true or false"
            )
    for name, agent in found.agents.items():
        for type_name in agent.types if agent.tools else ():
            used = found.agent_types[type_name].program
            if used in AGENTS and not AGENTS[used].tools:
                yield (
                    f"agents.{name}.tools: {used} ([agent-types.{type_name}]) cannot restrict"
                    " its tools; remove it from `types` or remove `tools`"
                )
    if all(kind.program in AGENTS for kind in found.agent_types.values()):
        yield from dict.fromkeys(problems(found, programs(found)))
    if (kind_name := found.runtime.kind) not in RUNTIMES:
        yield f"runtime.kind = {kind_name!r}: {nearest(kind_name, RUNTIMES)}"


def runtime(found: Settings) -> Runtime:
    """Return the runtime that the server's sessions use."""
    return RUNTIMES[found.runtime.kind](Options(data=Paths(found.data).runtime))


def attach(found: Settings, session: Session) -> tuple[str, ...]:
    """Return the command that opens a session's terminal. Raises `CliError` if it has none."""
    if not session.run:
        raise CliError(
            f"the agent of {session.id} has not started; `mergewright why {session.id}` says why",
            PROBLEM,
        )
    if session.status in TERMINAL:
        raise CliError(
            f"{session.id} has ended ({status_words(session.status)}) and has no terminal;"
            f" use `mergewright logs {session.id}` for its output",
            PROBLEM,
        )
    terminals, name = runtime(found), run_name(session.id, session.run)
    try:
        shown = terminals.screens((name,))
    except Unavailable as failure:
        raise CliError(
            f"the terminal of {session.id} does not answer: {failure}", PROBLEM
        ) from None
    if name not in shown:
        raise CliError(
            f"{session.id} has no terminal, because its agent is not running"
            f" ({status_words(session.status)}: {session.because});"
            f" `mergewright why {session.id}` says what comes next,"
            f" `mergewright logs {session.id}` shows its last output",
            PROBLEM,
        )
    return terminals.attach(name)


@contextmanager
def store(found: Settings, redact: Redaction | None = None) -> Iterator[Store]:
    """Open the server's database: read-only, or writable for commands if `redact` is given.

    Raises `CliError` if there is no database or it cannot be used.
    """
    path = Paths(found.data).database
    if not path.exists():
        raise CliError(
            f"{path}: no database for this user; `mergewright serve` creates it, and if the bot"
            " runs as another user, run this command as that user",
            PROBLEM,
        )
    try:
        with closing(Store.beside(path, redact) if redact else Store.reading(path)) as opened:
            yield opened
    except StoreFailure as failure:
        raise CliError(str(failure), exit_code(failure)) from None


def exit_code(failure: Exception) -> int:
    """Return a command's exit code after a failure of the store or of the start of `serve`."""
    return StoreDamaged.EXIT_CODE if isinstance(failure, StoreDamaged) else PROBLEM


def queue(found: Settings, opened: Store) -> dict[str, QueuedSession]:
    """Return the sessions that wait for a slot, by ID, the next one first."""
    return {one.session: one for one in opened.slots.queue(caps(found))}


def policies(found: Settings, opened: Store) -> Policies:
    """Return the policy of each project."""
    return Policies(opened, found.projects, found.policy)


def types_of(found: Settings, name: str) -> tuple[str, ...]:
    """Return the agent types that `name` means. Raises `CliError`.

    `name` is an agent, an agent type, or both as in `AGENT TYPE`.
    """
    agent, _, kind = name.partition(" ")
    if agent in found.agents and kind in ("", *found.agents[agent].types):
        return (kind,) if kind else found.agents[agent].types
    if name not in found.agent_types:
        known = {**found.agents, **found.agent_types}
        raise CliError(f"no agent or agent type {name!r}; {nearest(name, known)}")
    return (name,)


def session(opened: Store, id: str) -> Session:
    """Return a session by its ID. Raises `CliError` with similar IDs if there is none."""
    found = opened.sessions.get(id)
    if found is None:
        near = " or ".join(difflib.get_close_matches(id, [one.id for one in opened.sessions.all()]))
        hint = f"did you mean {near}?" if near else "`mergewright ls --all` lists all sessions"
        raise CliError(f"no session {id!r}; {hint}")
    return found
