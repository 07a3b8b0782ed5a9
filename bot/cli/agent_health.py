"""Checks whether the agent types can start: program, version and model key."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.text import Text

from bot.cli.context import Installation
from bot.cli.options import CliError
from bot.cli.screens import table
from bot.model_proxy.endpoints import key_source, real_endpoint, without_endpoint
from bot.system.locations import agent_type
from config.contradictions import nearest
from config.settings import Settings
from lifecycle.model.text import plain
from runtimes.agents import AGENTS
from runtimes.agents.base import Endpoint
from runtimes.agents.shared.adapter import AgentAdapter, login_variable

_WHOSE = {"agent": "its agent's", "project": "its project's", "server": "the server's"}
#: How many programs are asked for their version at once; some take seconds to answer.
_AT_ONCE = 8


class AgentCase(Struct, frozen=True, kw_only=True):
    """An agent type, as started for an agent in a project."""

    type: str
    agent: str = ""  #: Empty: any agent without a key of its own.
    project: str = ""  #: Empty: any project without a key of its own.


class SmokeTestResult(Struct, frozen=True, kw_only=True):
    """The result of a round trip to the model."""

    succeeded: bool
    says: str
    seconds: float
    remedy: str = ""  #: Empty: `says` is all that is known.


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


def program_of(installed: Installation, name: str) -> AgentAdapter:
    """Return the adapter of an agent type."""
    kind = agent_type(installed.settings.agent_types[name])
    return AGENTS[kind.program](kind)


def endpoint_of(installed: Installation, case: AgentCase) -> Endpoint:
    """Return the model endpoint with the real key, which is empty if it is not set."""
    keys, whose = installed.secrets.model_keys, (case.type, case.agent, case.project)
    return real_endpoint(installed.settings, keys, program_of(installed, case.type), *whose)


def check_types(installed: Installation) -> list[AgentHealth]:
    """Check all agent types with the server's keys, in parallel."""
    return check_agents(
        installed, [AgentCase(type=name) for name in installed.settings.agent_types]
    )


def check_agents(installed: Installation, cases: Iterable[AgentCase]) -> list[AgentHealth]:
    """Check cases in parallel."""
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        return list(workers.map(lambda case: _check(installed, case), cases))


def _check(installed: Installation, case: AgentCase) -> AgentHealth:
    kind, program = installed.settings.agent_types[case.type], program_of(installed, case.type)
    variable, whose = key_source(installed.settings, case.type, case.agent, case.project)
    endpoint = endpoint_of(installed, case)
    signs_in = ""
    if variable:
        signs_in = f"{_WHOSE[whose]} {variable}"
    elif own := login_variable(agent_type(kind), os.environ, program.login_variables):
        signs_in = f"{own}, visible to the agent"
    version, warnings = "", []
    try:
        version = program.version()
    except FileNotFoundError:
        pass  # The adapter's `check` reports it.
    except subprocess.TimeoutExpired:
        warnings.append("its version is unknown")
    if kind.version and version and version != kind.version:
        warnings.append(
            f"version {version} is installed, {kind.version} is expected: install that one or"
            f" change `version` of [agent-types.{case.type}]"
        )
    # Without the key's value, so that a missing key is reported once.
    problems = list(program.check(os.environ, Endpoint(url=endpoint.url, key=variable)))
    if variable and not endpoint.key:
        problems.append(f"no model key: set {variable} for the server, or {variable}_FILE")
    elif variable and not endpoint.url:
        problems.append(without_endpoint(case.type))
    return AgentHealth(
        case=case,
        program=kind.program,
        version=version,
        signs_in=signs_in,
        problems=tuple(problems),
        warnings=tuple(warnings),
    )


def types(checked: Sequence[AgentHealth]) -> RenderableType:
    """A row for each agent type, with the problems below."""
    rows = table("TYPE", "PROGRAM", "VERSION", "SIGNS IN WITH")
    for one in checked:
        words = (one.program, one.version or "-", one.signs_in or "nothing")
        rows.add_row(Text(one.case.type, "bold"), *(Text(plain(word)) for word in words))
    return Group(rows, *(line for one in checked for line in _problems(one, f"{one.case.type}: ")))


def details(
    checked: Sequence[AgentHealth], answers: Mapping[AgentCase, SmokeTestResult]
) -> RenderableType:
    """Each case with its program, sign-in, problems and round trip."""
    lines: list[RenderableType] = []
    for one in checked:
        lines += _detail(one)
        if answer := answers.get(one.case):
            lines.append(_round_trip(answer))
    return Group(*lines)


def _detail(health: AgentHealth) -> Iterator[Text]:
    case = health.case
    where = f" in {case.project}" if case.project else ""
    head = Text.assemble((f"{case.type}{where}", "bold"), "  ", health.program)
    yield head.append(f" {health.version or 'is not installed, or its version is unknown'}")
    yield Text(f"  signs in with {health.signs_in or 'nothing'}")
    yield from _problems(health, "  ")
    if not health.problems:
        yield Text("  can start", "green")


def _round_trip(answer: SmokeTestResult) -> Text:
    if answer.succeeded:
        return Text(f"  answered in {answer.seconds:.1f} s: {plain(answer.says)}", "green")
    failure = Text(f"  no answer: {plain(answer.says)}", "red")
    return failure.append(f"\n  {plain(answer.remedy)}", "yellow") if answer.remedy else failure


def _problems(health: AgentHealth, prefix: str) -> Iterator[Text]:
    for color, texts in (("red", health.problems), ("yellow", health.warnings)):
        for text in texts:
            yield Text(f"{prefix}{plain(text)}", color)
