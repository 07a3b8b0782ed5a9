"""How the agent types stand on this machine: installed, in which version, with whose key."""

import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bot.cli.check_result import Installation
from bot.cli.refused import CliError
from bot.model_proxy.endpoints import key_source, real_endpoint, without_endpoint
from bot.system.locations import agent_type
from config.contradictions import nearest
from config.settings import Settings
from lifecycle.model.text import plain
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentAdapter, AgentType, Endpoint
from runtimes.agents.shared.launch import login

_WHOSE = {"agent": "its agent's", "project": "its project's", "server": "the server's"}
#: How many programs are asked for their version at once; some take seconds to say it.
_AT_ONCE = 8


class AgentCase(Struct, frozen=True, kw_only=True):
    """An agent type as it is started for an agent in a project."""

    type: str
    agent: str = ""  #: Empty: for any that has no key of its own.
    project: str = ""  #: Empty: in any that has no key of its own.


class AgentHealth(Struct, frozen=True, kw_only=True):
    """What there is to say of a case."""

    case: AgentCase
    program: str
    version: str  #: Empty: it is not installed, or does not say.
    signs_in: str  #: Whose key it uses, or how else it signs in.
    problems: tuple[str, ...]  #: Why it cannot start, each with its remedy.
    warnings: tuple[str, ...]


def cases_of(settings: Settings, name: str) -> list[AgentCase]:
    """Of an agent, or of a type, all that differs by whose key is used. Raises `CliError`."""
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
    """An agent type and its program."""
    kind = agent_type(installed.settings.agent_types[name])
    return kind, AGENTS[kind.program](kind)


def endpoint_of(installed: Installation, case: AgentCase) -> Endpoint:
    """Where its model is, with the real key, which is empty where it is not set."""
    _, program = program_of(installed, case.type)
    keys, whose = installed.secrets.model_keys, (case.type, case.agent, case.project)
    return real_endpoint(installed.settings, keys, program, *whose)


def check_agents(installed: Installation, cases: Iterable[AgentCase]) -> list[AgentHealth]:
    """Look at these, at several at once."""
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        return list(workers.map(lambda case: _standing(installed, case), cases))


def _standing(installed: Installation, case: AgentCase) -> AgentHealth:
    kind, program = program_of(installed, case.type)
    variable, whose = key_source(installed.settings, case.type, case.agent, case.project)
    endpoint = endpoint_of(installed, case)
    own = login(kind, installed.environ, program.logins)
    version, warnings = "", []
    try:
        version = program.version()
    except FileNotFoundError:
        pass  # It is among what `check` finds.
    except subprocess.TimeoutExpired:
        warnings.append("it does not say its version")
    wanted = installed.settings.agent_types[case.type].version
    if wanted and version and version != wanted:
        warnings.append(
            f"it is {version}, and {wanted} is expected: install that one, or correct `version`"
            f" of [agent-types.{case.type}]"
        )
    # A key that is only missing is told once.
    problems = list(program.check(installed.environ, Endpoint(url=endpoint.url, key=variable)))
    if variable and not endpoint.key:
        problems.append(f"no model key: set {variable} for the server, or {variable}_FILE")
    elif variable and not endpoint.url:
        problems.append(without_endpoint(case.type))
    return AgentHealth(
        case=case,
        program=kind.program,
        version=version,
        signs_in=f"{_WHOSE[whose]} {variable}" if variable else own and f"{own}, which it sees",
        problems=tuple(problems),
        warnings=tuple(warnings),
    )


def types(standings: Sequence[AgentHealth]) -> RenderableType:
    """A row for each agent type; below it what is wrong."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_row(*(Text(name, "dim") for name in ("TYPE", "PROGRAM", "VERSION", "SIGNS IN WITH")))
    for one in standings:
        words = (one.program, one.version or "-", one.signs_in or "nothing")
        rows.add_row(Text(one.case.type, "bold"), *(Text(plain(word)) for word in words))
    return Group(rows, *(line for one in standings for line in _wrong(one, f"{one.case.type}: ")))


def detail(standing: AgentHealth) -> RenderableType:
    """Everything about one case."""
    case = standing.case
    where = f" in {case.project}" if case.project else ""
    head = Text.assemble((f"{case.type}{where}", "bold"), "  ", standing.program)
    head.append(f" {standing.version or 'is not there, or does not say its version'}")
    signs_in = Text(f"  signs in with {standing.signs_in or 'nothing'}")
    fine = [] if standing.problems else [Text("  can be started", "green")]
    return Group(head, signs_in, *_wrong(standing, "  "), *fine)


def answered(says: str, seconds: float, *, well: bool) -> RenderableType:
    """What came of a round trip."""
    if well:
        return Text(f"  answered in {seconds:.1f} s: {plain(says)}", "green")
    return Text(f"  did not answer: {plain(says)}", "red")


def remedied(remedy: str) -> RenderableType:
    """What to do about a round trip that did not come back."""
    return Text(f"  {plain(remedy)}", "yellow")


def _wrong(standing: AgentHealth, before: str) -> Iterator[Text]:
    for text, colour in (
        *((problem, "red") for problem in standing.problems),
        *((warning, "yellow") for warning in standing.warnings),
    ):
        yield Text(f"{before}{plain(text)}", colour)
