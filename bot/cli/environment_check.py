"""Implements `mergewright doctor --repo`: tries a repository's set-up and tests in a sandbox.

The command reports problems such as a missing program, an unreachable host or too little memory. It
recognises them by what the sandbox reports, such as refused connections, and by the error messages
of common programs. The known error messages are listed in this module.
"""

import os
import re
import shutil
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct, field

from bot.cli import sandbox
from bot.cli.context import Installation
from bot.cli.doctor import show
from bot.cli.github_checks import CheckResult, fail, ok, warn
from bot.cli.options import CliError
from bot.cli.sandbox import Refused, limit_words
from bot.system.isolation import limits_of
from bot.text.refused_hosts import network_line, refused_host
from config.projects import project_of
from config.settings import ProjectSettings, Settings
from lifecycle.model.text import counted, plain
from runtimes.host import StartSpec
from runtimes.local_sandbox import SandboxEnd

_LINE_BYTES = 4096  #: Bytes examined of a line; the rest is ignored.
_LAST_LINES = 20
_MOST_NAMES = 50
_NAME = r"['‘`\"]?([\w./+-]{1,100})['’`\"]?"
_MISSING_PROGRAMS = tuple(
    map(
        re.compile,
        (
            # sh: 1: cargo: not found - bash: line 3: cargo: command not found
            rf"^(?:\S+: (?:line )?\d+|-?(?:\S*/)?[a-z]*sh): {_NAME}: (?:command )?not found",
            rf"^(?:\S*/)?env: {_NAME}: No such file or directory",
            rf"^make(?:\[\d+\])?: {_NAME}: No such file or directory",
            rf"exec: {_NAME}: executable file not found in \$PATH",  # Go
            rf"\bspawn {_NAME} ENOENT",  # Node.js
            r"FileNotFoundError: \[Errno 2\] No such file or directory: '([\w+-]+)'",
        ),
    )
)
#: Messages of programs that failed to look up a host's name. They should leave that to the proxy.
_LOOKED_UP = tuple(
    map(
        re.compile,
        (
            r"Could not resolve host: ([\w.-]+)",  # curl, git
            r"\b(?:ENOTFOUND|EAI_AGAIN) ([\w.-]+)",  # Node.js
            r"UnknownHostException: ([\w.-]+)",  # Java
            r"lookup ([\w.-]+)(?: on \S+)?: no such host",  # Go
        ),
    )
)
_OUT_OF_MEMORY = re.compile(
    r"MemoryError|Cannot allocate memory|std::bad_alloc|JavaScript heap out of memory"
    r"|OutOfMemoryError|memory allocation of \d+ bytes failed|fatal error: runtime: out of memory"
)
_NO_SPACE = re.compile(r"No space left on device|ENOSPC")
_NO_PROCESSES = re.compile(
    r"[Ff]ork: (?:retry: )?Resource temporarily unavailable|Cannot fork|can't start new thread"
)


class OutputScan(Struct, kw_only=True):
    """Finds out from the output of set-up and tests which programs or resources they lack."""

    last: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))
    programs: dict[str, None] = field(default_factory=dict)
    looked_up: dict[str, None] = field(default_factory=dict)
    out_of_memory: bool = False
    no_space: bool = False
    no_processes: bool = False
    _rest: bytes = b""

    def add(self, chunk: bytes) -> None:
        """Examine the next bytes of the output."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:_LINE_BYTES]
        for line in lines:
            self._examine(line[:_LINE_BYTES])

    def end(self) -> None:
        """Examine a last line without a line end. Call once, after all output."""
        if self._rest:
            self._examine(self._rest)

    def _examine(self, line: bytes) -> None:
        text = plain(line.decode(errors="replace").rstrip())
        self.last.append(text)
        for patterns, found in (
            (_MISSING_PROGRAMS, self.programs),
            (_LOOKED_UP, self.looked_up),
        ):
            for name in (match[1] for one in patterns if (match := one.search(text))):
                if len(found) < _MOST_NAMES:
                    found[name] = None
        self.out_of_memory |= _OUT_OF_MEMORY.search(text) is not None
        self.no_space |= _NO_SPACE.search(text) is not None
        self.no_processes |= _NO_PROCESSES.search(text) is not None


def examine(config: Path | None, repository: str, patience: float, *, as_json: bool) -> bool:
    """Print a line for each result, and return whether nothing failed.

    `patience` is the time limit in seconds. Raises `CliError` if the configuration is invalid or
    no project has the repository.
    """
    installed = sandbox.installation(config)
    project = project_of(installed.settings.projects, repository)
    if not project:
        raise CliError(f"no project has the repository {repository}: add [projects.NAME] with it")
    if sys.stderr.isatty():
        print(f"mergewright: trying {repository} in a sandbox ...", file=sys.stderr)
    try:
        findings = list(_tried(installed, project, patience))
    except CliError as failure:
        findings = [("sandbox", fail(str(failure)))]
    return show(findings, as_json=as_json)


def _tried(
    installed: Installation, project: str, patience: float
) -> Iterator[tuple[str, CheckResult]]:
    settings, output = installed.settings, OutputScan()
    own = settings.projects[project]
    with sandbox.ended_by_signals(), sandbox.sandbox(installed, project) as made:
        place, spec, refused = made
        command = ("/bin/sh", "-ec", "\n".join((*own.test, "true")))
        end = sandbox.execute(
            *(installed, project, place, spec, command), on_output=output.add, seconds=patience
        )
    output.end()
    yield "sandbox", ok(_sandbox(settings, spec))
    yield "workspace", ok(_workspace(own))
    for module in place.left_out:
        allowing = f"add it to `submodules` in [projects.{project}]"
        remedy = f"{allowing if module.forbidden else 'correct it in the repository'}, or ignore it"
        yield "submodule", warn(f"{module.path!r} is left out: {module.why}", remedy)
    yield from _steps(project, own, end, output)
    failed = end.code != 0
    found = {
        "programs": _programs(output),
        "network": _network(project, own, refused, output),
        "memory": _memory(settings, end, output),
        "processes": _processes(settings, output),
        "time": _time(end, patience),
    }
    for name, result in found.items():
        if result is None:
            continue
        # If nothing failed, the host or tool is optional, such as for telemetry.
        yield name, result if failed else warn(result.says, result.remedy)
    if failed and not any(found.values()):
        yield "cause", warn("unknown", f"look around with `mergewright sandbox {project}`")


def _sandbox(settings: Settings, spec: StartSpec) -> str:
    limits = limits_of(settings)
    return f"{spec.isolation.kind}; {limit_words(limits)}"


def _workspace(own: ProjectSettings) -> str:
    depth = f", {counted(own.fetch_depth, 'commit')} of each branch" if own.fetch_depth else ""
    folders = f"; only {', '.join(own.sparse)}" if own.sparse else ""
    if not own.lfs_max_mb:
        folders += "; Git LFS pointers instead of files"
    modules = f"; submodules {', '.join(own.submodules)}" if own.submodules else ""
    return f"{own.workspace}{depth}{folders}{modules}"


def _steps(
    project: str, own: ProjectSettings, end: SandboxEnd, output: OutputScan
) -> Iterator[tuple[str, CheckResult]]:
    """Yield the results of the set-up and of the tests."""
    last = "\n".join(output.last)
    took = f"{end.seconds:.0f} s"
    ended = f"ended at the time limit after {took}" if end.expired else f"exit code {end.code}"
    failure = fail(f"{ended}\n{last}".rstrip())
    if end.setup_seconds is None:
        yield "set-up", failure
        yield "tests", warn("not run, because the set-up failed")
        return
    count = len((*own.setup, *own.bootstrap))
    done = f"{count} command{'s' * (count != 1)}, {end.setup_seconds:.0f} s"
    yield "set-up", ok(done if count else "no `setup` or `bootstrap` commands")
    if not own.test:
        yield "tests", ok(f"none: to run some, set `test` in [projects.{project}]")
    elif end.code:
        yield "tests", failure
    else:
        yield "tests", ok(f"passed, {end.seconds - end.setup_seconds:.0f} s")


def _programs(output: OutputScan) -> CheckResult | None:
    if not output.programs:
        return None
    remedies = []
    for name in output.programs:
        if place := shutil.which(name):
            folders = dict.fromkeys(str(Path(at).parent) for at in (place, os.path.realpath(place)))
            where = " and ".join(folders)
            those = "them" if len(folders) > 1 else "it"
            remedies.append(f"{name} is in {where}: add {those} to `readable` under [sandbox]")
        else:
            remedies.append(f"{name} is not on the PATH of this machine: install it in /usr")
    return fail(f"not found: {', '.join(output.programs)}", "\n-> ".join(remedies))


def _network(
    project: str, own: ProjectSettings, refused: Refused, output: OutputScan
) -> CheckResult | None:
    """Return which hosts could not be reached, with remedies; None if all were reached."""
    says, allowed = [], []
    for one, times in refused.items():
        says.append(refused_host(one.host, one.port, times, project, public=one.public))
        if one.public:
            allowed.append((one.host, one.port))
    known = {one.host for one in refused}
    direct = [name for name in output.looked_up if name not in known]
    says += [f"{name} was looked up without the proxy; a sandbox has no DNS" for name in direct]
    if not says:
        return None
    remedies = []
    if allowed and not isinstance(own.network, str):
        remedies.append(f"set in [projects.{project}]: {network_line(own.network, allowed)}")
    if direct:
        remedies.append("have the program use HTTPS_PROXY")
    return fail("\n".join(says), "\n-> ".join(remedies))


def _memory(settings: Settings, end: SandboxEnd, output: OutputScan) -> CheckResult | None:
    limit = limits_of(settings).memory_mb
    remedy = f"raise memory-mb under [sandbox] above {limit}"
    if not limit:
        remedy = "this machine has too little memory: free some"
    words = f"the limit is {limit} MB" if limit else "no limit is set"
    if many := end.memory_kills:
        killed = "1 process was killed" if many == 1 else f"{many} processes were killed"
        return fail(f"too little memory: {killed}; {words}", remedy)
    if output.out_of_memory:
        return fail(f"a program ran out of memory; {words}", remedy)
    if output.no_space:
        room = (
            "may fill half of the memory limit" if limit else "have 2048 MB without a memory limit"
        )
        remedy = remedy if limit else "set memory-mb under [sandbox] to more than 4096"
        return fail(f"no space left: temporary folders are in memory and {room}", remedy)
    return None


def _processes(settings: Settings, output: OutputScan) -> CheckResult | None:
    if not output.no_processes:
        return None
    limit = limits_of(settings).processes
    if not limit:
        remedy = "raise the limit of this user (`ulimit -u`)"
        return fail("this machine allows no more processes", remedy)
    return fail(f"more than {limit} processes", f"raise processes under [sandbox] above {limit}")


def _time(end: SandboxEnd, patience: float) -> CheckResult | None:
    if not end.expired:
        return None
    says = f"set-up and tests not done after {patience:.0f} s"
    return fail(says, "raise --patience, or see what they wait for")
