"""Checks whether the agent types can start: program, version and model key."""

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bot.cli.context import Installation
from bot.cli.options import CliError
from bot.model_proxy.endpoints import key_source, real_endpoint, without_endpoint
from bot.system.locations import agent_type
from config.contradictions import nearest
from config.settings import Settings
from lifecycle.model.text import plain
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentAdapter, AgentType, Endpoint
from runtimes.agents.shared.launch import login_variable

_WHOSE = {"agent": "its agent's", "project": "its project's", "server": "the server's"}
#: How many programs are asked for their version at once; some take seconds to answer.
_AT_ONCE = 8


class AgentCase(Struct, frozen=True, kw_only=True):
    """An agent type, as started for an agent in a project."""

    type: str
    agent: str = ""  #: Empty: any agent without a key of its own.
    project: str = ""  #: Empty: any project without a key of its own.


class AgentHealth(Struct, frozen=True, kw_only=True):
    """The health of one case."""

    case: AgentCase
    program: str
    version: str  #: Empty: not installed, or unknown.
    signs_in: str  #: Whose key it uses, or how it signs in otherwise.
    problems: tuple[str, ...]  #: Why it cannot start, each with its remedy.
    warnings: tuple[str, ...]


def cases_of(settings: Settings, name: str) -> list[AgentCase]:
    """Return the cases of an agent or agent type: one for each key. Raises `CliError`."""
    if name in settings.agents:
        agent, kinds = name, settings.agents[name].types
    elif name in settings.agent_types:
        agent, kinds = "", (name,)
    else:
        known = {**settings.agents, **settings.agent_types}
        raise CliError(f"no agent or agent type {name!r}; {nearest(name, known)}")
    found = []
    for kind in kinds:
        found.append(AgentCase(type=kind, agent=agent))
        for project in settings.projects:
            if key_source(settings, kind, agent, project)[1] == "project":
                found.append(AgentCase(type=kind, agent=agent, project=project))
    return found


def program_of(installed: Installation, name: str) -> tuple[AgentType, AgentAdapter]:
    """Return an agent type and its adapter."""
    kind = agent_type(installed.settings.agent_types[name])
    return kind, AGENTS[kind.program](kind)


def endpoint_of(installed: Installation, case: AgentCase) -> Endpoint:
    """Return the model endpoint with the real key, which is empty if it is not set."""
    _, program = program_of(installed, case.type)
    keys, whose = installed.secrets.model_keys, (case.type, case.agent, case.project)
    return real_endpoint(installed.settings, keys, program, *whose)


def check_agents(installed: Installation, cases: Iterable[AgentCase]) -> list[AgentHealth]:
    """Check cases in parallel."""
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        return list(workers.map(lambda case: _check(installed, case), cases))


def _check(installed: Installation, case: AgentCase) -> AgentHealth:
    kind, program = program_of(installed, case.type)
    variable, whose = key_source(installed.settings, case.type, case.agent, case.project)
    endpoint = endpoint_of(installed, case)
    own = login_variable(kind, installed.environ, program.login_variables)
    version, warnings = "", []
    try:
        version = program.version()
    except FileNotFoundError:
        pass  # The adapter's `check` reports it.
    except subprocess.TimeoutExpired:
        warnings.append("its version is unknown")
    wanted = installed.settings.agent_types[case.type].version
    if wanted and version and version != wanted:
        warnings.append(
            f"version {version} is installed, {wanted} is expected: install that one or change"
            f" `version` of [agent-types.{case.type}]"
        )
    # Without the key's value, so that a missing key is reported once.
    problems = list(program.check(installed.environ, Endpoint(url=endpoint.url, key=variable)))
    if variable and not endpoint.key:
        problems.append(f"no model key: set {variable} for the server, or {variable}_FILE")
    elif variable and not endpoint.url:
        problems.append(without_endpoint(case.type))
    return AgentHealth(
        case=case,
        program=kind.program,
        version=version,
        signs_in=f"{_WHOSE[whose]} {variable}"
        if variable
        else own and f"{own}, visible to the agent",
        problems=tuple(problems),
        warnings=tuple(warnings),
    )


def types(checked: Sequence[AgentHealth]) -> RenderableType:
    """A row for each agent type, with the problems below."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_row(*(Text(name, "dim") for name in ("TYPE", "PROGRAM", "VERSION", "SIGNS IN WITH")))
    for one in checked:
        words = (one.program, one.version or "-", one.signs_in or "nothing")
        rows.add_row(Text(one.case.type, "bold"), *(Text(plain(word)) for word in words))
    return Group(rows, *(line for one in checked for line in _problems(one, f"{one.case.type}: ")))


def detail(health: AgentHealth) -> RenderableType:
    """One case: program, sign-in and problems."""
    case = health.case
    where = f" in {case.project}" if case.project else ""
    head = Text.assemble((f"{case.type}{where}", "bold"), "  ", health.program)
    head.append(f" {health.version or 'is not installed, or its version is unknown'}")
    signs_in = Text(f"  signs in with {health.signs_in or 'nothing'}")
    fine = [] if health.problems else [Text("  can start", "green")]
    return Group(head, signs_in, *_problems(health, "  "), *fine)


def round_trip(says: str, remedy: str, seconds: float, *, succeeded: bool) -> RenderableType:
    """The result of a round trip to the model."""
    if succeeded:
        return Text(f"  answered in {seconds:.1f} s: {plain(says)}", "green")
    failure = Text(f"  no answer: {plain(says)}", "red")
    return failure.append(f"\n  {plain(remedy)}", "yellow") if remedy else failure


def _problems(health: AgentHealth, prefix: str) -> Iterator[Text]:
    for text, color in (
        *((problem, "red") for problem in health.problems),
        *((warning, "yellow") for warning in health.warnings),
    ):
        yield Text(f"{prefix}{plain(text)}", color)
