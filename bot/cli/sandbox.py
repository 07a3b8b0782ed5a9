"""Implements `mergewright sandbox`: a shell or a command in a sandbox like that of an agent.

The sandbox has its own proxy, without a model, so that no bot has to run. Its files are removed
at the end.
"""

import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hmac import compare_digest
from pathlib import Path
from secrets import token_urlsafe
from typing import NoReturn

from msgspec.structs import replace

from bot.app.github_client import github_client
from bot.cli import agent_health, context
from bot.cli.context import Installation
from bot.cli.options import PROBLEM, CliError
from bot.github.errors import GitHubFailure
from bot.model_proxy.endpoints import ModelUnavailable, RunNetwork, proxy_variables
from bot.model_proxy.proxy import ModelProxy
from bot.model_proxy.refusals import RefusalLog
from bot.model_proxy.tunnels import Tunnels
from bot.store import Destination
from bot.system.isolation import NotIsolated, isolation_of, limits_of, readable
from bot.system.locations import Paths, agent_type, allowed_submodules, workspace_options
from bot.text.refused_hosts import refused_host
from config.contradictions import nearest
from config.load import no_credentials
from lifecycle.model.text import plain
from runtimes.base import RuntimeFailure
from runtimes.host import StartSpec
from runtimes.isolation.base import NOT_ISOLATED, PROXY_PORT, IsolationSpec, Limits
from runtimes.local_ports import port_variables
from runtimes.local_sandbox import LocalSandbox, SandboxEnd, opened
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.submodules import Submodules

#: The number of refused connections of a sandbox, by host and port.
Refused = Mapping[Destination, int]


def installation(config: Path | None) -> Installation:
    """Return the installation, including the projects that the bot found. Raises `CliError`."""
    found = context.installation(config)
    return replace(found, settings=context.with_installed(found.settings))


def run(config: Path | None, project: str, command: Sequence[str]) -> int:
    """Run a shell or a command in a sandbox and return its exit code. Raises `CliError`.

    If the set-up fails, a command is not run, and the set-up's exit code is returned.
    """
    installed = installation(config)
    projects = installed.settings.projects
    if project not in projects:
        raise CliError(f"no project {project!r}; {nearest(project, projects)}")
    with ended_by_signals(), sandbox(installed, project) as (opened, spec, refused):
        if not command:
            _say(_greeting(installed, project, spec.isolation.kind))
        end = execute(installed, project, opened, spec, command)
        if command and end.setup_seconds is None:
            _say("the set-up failed, so the command was not run")
    for host, times in refused.items():
        _say(refused_host(host.host, host.port, times, project, public=host.public))
    if not command:
        _say("the sandbox was removed, with all that was in it")
    return end.code


def execute(
    installed: Installation,
    project: str,
    opened: LocalSandbox,
    spec: StartSpec,
    command: Sequence[str],
    on_output: Callable[[bytes], object] | None = None,
    seconds: float = 0.0,
) -> SandboxEnd:
    """Run a command in a project's sandbox, and return how it ended. Raises `CliError`.

    `command` and the arguments after it are as in `LocalSandbox.run`.
    """
    name = installed.settings.projects[project].agent
    kind, program = installed.settings.agent_types[name], agent_health.program_of(installed, name)
    try:
        return opened.run(
            *(command, agent_type(kind), program.command, spec),
            hidden=[installed.settings.data],
            on_output=on_output,
            seconds=seconds,
        )
    except RuntimeFailure as failure:
        raise CliError(str(failure), PROBLEM) from None


@contextmanager
def sandbox(
    installed: Installation, project: str
) -> Iterator[tuple[LocalSandbox, StartSpec, Refused]]:
    """Make a sandbox of a project, with a workspace and a proxy, and remove it at the end.

    Yields the sandbox, its start specification and the counts of refused connections, which are
    complete once the sandbox is removed. Raises `CliError`.
    """
    settings, paths = installed.settings, Paths(installed.settings.data)
    own = settings.projects[project]
    try:
        kind = isolation_of(settings, project, own.agent)
    except NotIsolated as problem:
        raise CliError(str(problem), PROBLEM) from None
    if kind == NOT_ISOLATED.kind:
        raise CliError(
            f'agents of {project} run without a sandbox, because of isolation = "none": to try one,'
            " set isolation to a sandbox that works here, such as bubblewrap",
            PROBLEM,
        )
    with opened(paths.sandboxes) as made, _proxy(made.socket, own.network) as (env, refused):
        mirror = paths.mirror(project)
        try:
            _make_workspace(installed, project, made, mirror)
        except (GitFailure, GitHubFailure) as failure:
            raise CliError(str(failure), PROBLEM) from None
        isolation = IsolationSpec(
            kind=kind,
            readable=readable(settings),
            proxy=made.socket.parent,
            limits=limits_of(settings),
            env=env,
        )
        first, lines = own.port_bounds[0], (*own.setup, *own.bootstrap)
        ports = port_variables(range(first, first + own.ports))  # It has a network of its own.
        spec = StartSpec(prompt="", isolation=isolation, env=ports, bootstrap=lines)
        yield made, spec, refused


def _make_workspace(
    installed: Installation, project: str, made: LocalSandbox, mirror: Path
) -> None:
    settings, own = installed.settings, installed.settings.projects[project]
    url = f"{settings.github.git_base}{own.repository}.git"
    files, options = installed.secrets.env_files.get(project, {}), workspace_options(own)
    folder, git_base = Paths(settings.data).submodules, settings.github.git_base
    if no_credentials(settings, installed.secrets):
        anyone = Submodules(folder, allowed_submodules(own, git_base, lambda _: ""))
        made.make_workspace(Mirror(mirror, url), own.base_branch, files, options, anyone)
        return
    with closing(github_client(settings, installed.secrets)) as github:
        base = own.base_branch or github.read.default_branch(own.repository)
        source = Mirror(mirror, url, lambda: github.git_password(own.repository))
        modules = Submodules(folder, allowed_submodules(own, git_base, github.git_password))
        made.make_workspace(source, base, files, options, modules)


@contextmanager
def _proxy(
    socket: Path, network: str | tuple[str, ...]
) -> Iterator[tuple[dict[str, str], Counter[Destination]]]:
    """Start a proxy; yield the environment variables for it, and the connections it refused.

    `network` names the hosts that may be reached, as in a project's settings. The refused
    connections are complete once the block ends.
    """
    token = f"sandbox.{token_urlsafe(32)}"
    refused = Counter[Destination]()

    def allowed(shown: str) -> RunNetwork:
        if not compare_digest(shown.encode(), token.encode()):
            raise ModelUnavailable("invalid run token")
        return RunNetwork(session="sandbox", allowed=network)

    tunnels = Tunnels(allowed, RefusalLog(refused.update))
    port = socket.parent.with_name("port")
    proxy = ModelProxy(_no_model, lambda *_: None, port, socket_file=socket, tunnels=tunnels)
    proxy.start()
    try:
        yield proxy_variables(token, PROXY_PORT), refused
    finally:
        proxy.stop()


def _no_model(_: str) -> NoReturn:
    raise ModelUnavailable("a sandbox for people has no model")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise `SystemExit` in the block, so that the sandbox is removed."""

    def leave(number: int, _: object) -> NoReturn:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _greeting(installed: Installation, project: str, kind: str) -> str:
    settings = installed.settings
    own, limits = settings.projects[project], limits_of(settings)
    hosts = "all public hosts" if own.network == "open" else ", ".join(own.network) or "none"
    return plain(
        f"a sandbox like those of the agents of {project} ({kind}; {limit_words(limits)}), with"
        f" {own.repository} at its base branch. Hosts that it reaches: {hosts}. It has no model."
        " Leave it with `exit`: everything in it is removed then."
    )


def limit_words(limits: Limits) -> str:
    """Return words for the limits of a run's memory and processes."""
    memory = f"{limits.memory_mb} MB of memory" if limits.memory_mb else "no memory limit"
    count = f"{limits.processes} processes" if limits.processes else "no process limit"
    return f"{memory}, {count}"


def _say(text: str) -> None:
    print(f"mergewright: {text}", file=sys.stderr, flush=True)
