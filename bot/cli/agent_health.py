"""Checks whether agents can start, and whether their models answer in a smoke test."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hmac import compare_digest
from http import HTTPStatus
from pathlib import Path
from secrets import token_urlsafe

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Group, RenderableType
from rich.text import Text

from bot.cli import context
from bot.cli.context import Installation
from bot.cli.screens import table
from bot.model_proxy.endpoints import ModelUnavailable, key_source, real_endpoint, without_endpoint
from bot.model_proxy.proxy import ModelProxy, UpstreamError
from bot.system.clock import utc_now
from bot.system.isolation import (
    NotIsolated,
    container_of,
    isolation_of,
    limits_of,
    readable,
)
from bot.system.locations import agent_type
from bot.text.prompts import Prompts
from config.settings import Settings
from lifecycle.model.actions import Prompt
from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from lifecycle.model.text import plain
from runtimes import RUNTIMES
from runtimes.agents import AGENTS
from runtimes.agents.base import Endpoint, RunLimits
from runtimes.agents.shared.adapter import AgentAdapter, login_variable
from runtimes.base import Options, RuntimeFailure
from runtimes.host import RunQuery, RunRef, StartSpec
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import (
    NOT_ISOLATED,
    PROXY_PORT,
    PROXY_SOCKET,
    IsolationSpec,
)
from runtimes.local_host import LocalHost
from runtimes.workspaces.git import GitFailure, git, init

_WHOSE = {"agent": "its agent's", "project": "its project's", "server": "the server's"}
#: How many programs are run at once to get their versions. Some take seconds to print the version.
_AT_ONCE = 8
_PAUSE = 0.1
_NEW_KEY = "{key} was rejected: set it to a valid key"
#: The remedy by the status code of the model's API.
_REMEDIES: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: _NEW_KEY,
    HTTPStatus.FORBIDDEN: _NEW_KEY,
    HTTPStatus.NOT_FOUND: "correct `model` of {table}, or its `endpoint`",
    HTTPStatus.TOO_MANY_REQUESTS: "{key} is rate-limited: try again later",
}
#: Status codes against which retries do not help. Only two in a row count, because a single one may
#: belong to another request.
_REFUSALS, _ENOUGH = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN), 2
_OVER = (Activity.READY, Activity.WAITING_INPUT, Activity.BLOCKED, Activity.EXITED)


class AgentCase(Struct, frozen=True, kw_only=True):
    """An agent type, with the agent and the project that determine which model key it gets."""

    type: str
    agent: str = ""  #: If empty, any agent without a key of its own.
    project: str = ""  #: If empty, any project without a key of its own.


class SmokeTestResult(Struct, frozen=True, kw_only=True):
    """The result of a smoke test, in which an agent's program asks its model for one word."""

    succeeded: bool
    says: str
    seconds: float  #: How long it took, including making the repository and the workspace.
    remedy: str = ""  #: If empty, none is needed or known.


class AgentHealth(Struct, frozen=True, kw_only=True):
    """The result of the checks of one `AgentCase`."""

    case: AgentCase
    program: str
    version: str  #: If empty, unknown, or the program is not installed.
    signs_in: str  #: In words: the variable that it signs in with. If empty, none is known.
    problems: tuple[str, ...]  #: Why the agent cannot start, each with its remedy.
    warnings: tuple[str, ...]


def cases_of(settings: Settings, name: str) -> list[AgentCase]:
    """Return the cases to check for `name`: an agent, an agent type or `AGENT TYPE`.

    Each agent type has one case, and one more for each project whose own model key it would use.
    Raises `CliError` if the name is unknown.
    """
    agent, found = name.partition(" ")[0], []
    if agent not in settings.agents:
        agent = ""
    for kind in context.types_of(settings, name):
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
    """Return the endpoint of the case's model. Its key is empty if none is set."""
    keys, whose = installed.secrets.model_keys, (case.type, case.agent, case.project)
    return real_endpoint(installed.settings, keys, program_of(installed, case.type), *whose)


def check_types(installed: Installation) -> list[AgentHealth]:
    """Check all agent types with the server's keys, in parallel."""
    return check_agents(
        installed, [AgentCase(type=name) for name in installed.settings.agent_types]
    )


def check_agents(installed: Installation, cases: Iterable[AgentCase]) -> list[AgentHealth]:
    """Check whether the agent of each case can start, in parallel."""
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
        warnings.append("its version is unknown: the program did not print it in time")
    if kind.version and version and version != kind.version:
        warnings.append(
            f"version {version} is installed, {kind.version} is expected: install"
            f" {kind.version} or change `version` of [agent-types.{case.type}]"
        )
    # The key's variable instead of its value, so that a missing key is reported only once.
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
    """Return a table with a row for each agent type, and problems and warnings below the table."""
    rows = table("TYPE", "PROGRAM", "VERSION", "SIGNS IN WITH")
    for one in checked:
        words = (one.program, one.version or "-", one.signs_in or "nothing")
        rows.add_row(Text(one.case.type, "bold"), *(Text(plain(word)) for word in words))
    return Group(rows, *(line for one in checked for line in _problems(one, f"{one.case.type}: ")))


def details(
    checked: Sequence[AgentHealth], answers: Mapping[AgentCase, SmokeTestResult]
) -> RenderableType:
    """Return the text about each case: program, sign-in, problems and smoke test."""
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


def smoke_test(installed: Installation, case: AgentCase, patience: float) -> SmokeTestResult:
    """Run a smoke test: start the program as in a session, but in a temporary repository.

    `patience` is the time limit in seconds.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mergewright-") as place:
        try:
            agent, error = _ask(installed, case, Path(place), began + patience)
        except (NotIsolated, RuntimeFailure, GitFailure) as failure:
            agent, error = Agent(activity=Activity.BLOCKED, error=str(failure)), None
    seconds = time.monotonic() - began
    ended_well = agent.exit is not None and agent.exit.code == 0
    succeeded = agent.activity is Activity.READY or (
        agent.activity is Activity.EXITED and ended_well
    )
    text = agent.summary if succeeded else agent.question or agent.error
    if agent.activity not in _OVER:
        waited = f"nothing within {patience:g} seconds"
        over = waited if seconds >= patience else "the model's API refuses the key"
        text = f"{over}: {agent.evidence or 'no output'}"
    remedy = _remedy(installed, case, error) if error and not succeeded else ""
    return SmokeTestResult(
        succeeded=succeeded, says=text or agent.evidence, seconds=seconds, remedy=remedy
    )


def _refused(error: UpstreamError | None) -> bool:
    """Whether the model's API refuses the key, which makes the program's retries pointless."""
    return error is not None and error.status in _REFUSALS and error.times >= _ENOUGH


def _remedy(installed: Installation, case: AgentCase, error: UpstreamError) -> str:
    """Return what to do about a model that does not answer."""
    key, _ = key_source(installed.settings, case.type, case.agent, case.project)
    table = f"[agent-types.{case.type}]"
    if not error.status:
        return f"{error.place} cannot be reached: check `endpoint` of {table}"
    return f"{error.place} answered {error.status}: " + _REMEDIES.get(
        error.status, "check {key}, and `model` and `endpoint` of {table}"
    ).format(key=key, table=table)


def _ask(
    installed: Installation, case: AgentCase, place: Path, until: float
) -> tuple[Agent, UpstreamError | None]:
    runtime = RUNTIMES[installed.settings.runtime.kind](
        Options(data=place / "runtime", path=os.environ.get("PATH", ""))
    )
    host = LocalHost(runtime, {case.type: program_of(installed, case.type)}, place / "host")
    run = RunRef(session="check-1", run=1, agent_type=case.type, branch="main")
    _make_workspace(host, run, place / "origin.git")
    prompt = Prompts(installed.settings.prompts).render(Prompt(name="check"), {}, "")
    with _proxy(endpoint_of(installed, case), place) as (endpoint, proxy):
        isolation = _isolation(installed.settings, case, place)
        if proxy and isolation.proxy:
            limits = RunLimits(endpoint=replace(endpoint, url=f"http://127.0.0.1:{PROXY_PORT}"))
        else:
            limits = RunLimits(endpoint=endpoint)
        host.runs.start(run, StartSpec(prompt=prompt, isolation=isolation, limits=limits))
        agent = Agent()
        try:
            while agent.activity not in _OVER and time.monotonic() < until:
                if proxy and _refused(proxy.last_error):
                    break
                time.sleep(_PAUSE)
                look = host.runs.look([RunQuery(run=run)], utc_now())
                if run.name in look.probes and run.name in look.readings:
                    agent = look.readings[run.name].agent
        finally:
            runtime.stop(run.name)
        return agent, proxy.last_error if proxy else None


def _isolation(settings: Settings, case: AgentCase, place: Path) -> IsolationSpec:
    """Return the isolation that the agent would have in a session. Raises `NotIsolated`."""
    kind = isolation_of(settings, case.project, case.type)
    if kind == NOT_ISOLATED.kind:
        return NOT_ISOLATED
    proxy = _socket(place).parent
    proxy.mkdir(mode=0o700, exist_ok=True)
    shown = (place / "origin.git", *readable(settings))
    return IsolationSpec(
        kind=kind,
        readable=shown,
        proxy=proxy,
        limits=limits_of(settings),
        container=container_of(settings),
    )


def _socket(place: Path) -> Path:
    return place / "proxy" / PROXY_SOCKET


def _make_workspace(host: LocalHost, run: RunRef, origin: Path) -> None:
    """Make a workspace with one empty commit."""
    init(origin)
    commit = git(origin, "commit-tree", git(origin, "mktree").strip(), "-m", "Begin").strip()
    isolation = ISOLATIONS[NOT_ISOLATED.kind]  # No agent has used the workspace yet.
    host.workspace(run.session, run.branch, origin, lambda: isolation).create(commit, None, commit)


@contextmanager
def _proxy(real: Endpoint, place: Path) -> Iterator[tuple[Endpoint, ModelProxy | None]]:
    """Start a proxy for the model's endpoint `real`; yield the proxy's endpoint and the proxy.

    If `real` has no key, starts no proxy and yields `real` and None.
    """
    if not real.key:
        yield real, None
        return
    shown = token_urlsafe(32)

    def behind(word: str) -> Endpoint:
        if not compare_digest(word.encode(), shown.encode()):
            raise ModelUnavailable("unknown run token", HTTPStatus.UNAUTHORIZED)
        return real

    proxy = ModelProxy(behind, lambda *_: None, place / "port", socket_file=_socket(place))
    proxy.start()
    try:
        yield Endpoint(url=proxy.url, key=shown), proxy
    finally:
        proxy.stop()
