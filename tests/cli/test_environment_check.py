"""`mergewright doctor --repo`: what a repository's set-up and tests lack in a real sandbox."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.cli.environment_check import OutputScan
from runtimes.isolation.cgroups import ControlGroups
from tests.cli.sandboxes import SandboxedProject

#: Asks for more memory than the limit, and uses it.
_HOG = "python3 -c 'x = bytearray(400 << 20)'"


class Line(NamedTuple):
    """One result."""

    severity: str
    says: str
    remedy: str


def check(sandboxed: SandboxedProject, *words: str) -> tuple[int, dict[str, Line]]:
    """The exit code and the results by name. Nothing is left of the sandbox."""
    result = sandboxed("doctor", "--repo", "acme/widgets", "--json", *words)
    lines = {
        one["name"]: Line(one["severity"], one["says"], one["remedy"])
        for one in json.loads(result.out)
    }
    assert result.err == ""
    assert sandboxed.left == []
    return result.code, lines


def test_a_repository_whose_set_up_and_tests_pass_is_ok(sandboxed: SandboxedProject) -> None:
    sandboxed.is_configured(
        'bootstrap = ["export TOOL=ready"]\ntest = ["test $TOOL = ready", "true"]\n'
        'workspace = "clone"\nfetch-depth = 5\nsparse = ["docs"]\nsubmodules = ["acme/lib"]'
    )
    code, lines = check(sandboxed)
    assert code == 0
    assert {name: one.severity for name, one in lines.items()} == dict.fromkeys(
        ("sandbox", "workspace", "set-up", "tests"), "ok"
    )
    about = "clone, 5 commits of each branch; only docs; submodules acme/lib"
    assert lines["workspace"].says == about
    assert lines["sandbox"].says == "bubblewrap; 8192 MB of memory, 2048 processes"
    assert lines["set-up"].says.startswith("1 command, ")
    sandboxed.is_configured()
    result = sandboxed("doctor", "--repo", "ACME/Widgets")
    assert result.code == 0
    assert "none: to run some, set `test` in [projects.widgets]" in result.out


def test_missing_programs_and_refused_hosts_are_named_with_their_remedies(
    sandboxed: SandboxedProject, tmp_path: Path
) -> None:
    tool = Path(sandboxed.data.parent, "tools", "hidden-tool")
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    sandboxed.finds_programs_in(tool.parent)
    fetch = "curl -sS https://a.example/ || curl -sS http://b.example:8080/ || true"
    sandboxed.is_configured(f'bootstrap = ["{fetch}"]\ntest = ["hidden-tool || no-such-tool"]')
    code, lines = check(sandboxed)
    assert code == 1
    assert lines["set-up"].severity == "ok"
    assert lines["tests"].severity == "fail"
    assert "no-such-tool: not found" in lines["tests"].says
    programs, network = lines["programs"], lines["network"]
    assert programs.says == "not found: hidden-tool, no-such-tool"
    assert f"hidden-tool is in {tool.parent}: add it to `readable`" in programs.remedy
    assert "no-such-tool is not on the PATH of this machine" in programs.remedy
    assert "refused: a.example:443, once" in network.says
    line = 'network = ["index.example", "a.example", "b.example:8080"]'
    assert network.remedy == f"set in [projects.widgets]: {line}"


def test_what_nothing_failed_without_is_a_warning(sandboxed: SandboxedProject) -> None:
    sandboxed.is_configured('test = ["curl -s https://telemetry.example/ || true"]')
    code, lines = check(sandboxed)
    assert (code, lines["tests"].severity, lines["network"].severity) == (0, "ok", "warn")


def test_memory_beyond_the_limit_is_named(sandboxed: SandboxedProject) -> None:
    sandboxed.is_configured(f'test = ["{_HOG}"]', sandbox="memory-mb = 256")
    code, lines = check(sandboxed)
    assert (code, lines["memory"].severity) == (1, "fail")
    assert lines["memory"].remedy == "raise memory-mb under [sandbox] above 256"
    kills = "memory" in ControlGroups().limited
    assert ("killed; the limit is 256 MB" in lines["memory"].says) == kills


def test_a_time_limit_ends_everything(sandboxed: SandboxedProject) -> None:
    sandboxed.is_configured('test = ["echo begun; sleep 600"]')
    code, lines = check(sandboxed, "--patience", "5")
    assert (code, lines["time"].says) == (1, "set-up and tests not done after 5 s")
    assert lines["tests"].says.startswith("ended at the time limit after ")
    assert lines["tests"].says.endswith("\nbegun")


def test_after_a_failed_set_up_the_tests_are_not_run(sandboxed: SandboxedProject) -> None:
    sandboxed.is_configured('bootstrap = ["echo broken; exit 3"]\ntest = ["echo never"]')
    code, lines = check(sandboxed)
    assert (code, lines["set-up"].says) == (1, "exit code 3\nbroken")
    assert lines["tests"] == ("warn", "not run, because the set-up failed", "")
    assert lines["cause"].remedy == "look around with `mergewright sandbox widgets`"


def test_what_cannot_be_tried_is_a_failure(sandboxed: SandboxedProject) -> None:
    unknown = sandboxed("doctor", "--repo", "acme/gadgets")
    assert (unknown.code, "no project has the repository acme/gadgets" in unknown.err) == (2, True)
    sandboxed.is_configured(isolation="none")
    code, lines = check(sandboxed)
    assert (code, lines["sandbox"].severity) == (1, "fail")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("sh: 1: cargo: not found", "cargo"),
        ("/bin/sh: 12: cargo: not found", "cargo"),
        ("./build.sh: line 3: protoc: command not found", "protoc"),
        ("bash: protoc: command not found", "protoc"),
        ("env: ‘node’: No such file or directory", "node"),
        ("/usr/bin/env: 'node': No such file or directory", "node"),
        ("make: g++: No such file or directory", "g++"),
        ("make[2]: yacc: No such file or directory", "yacc"),
        ('go: exec: "gcc": executable file not found in $PATH', "gcc"),
        ("Error: spawn tsc ENOENT", "tsc"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'dot'", "dot"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data/a.json'", ""),
        ("npm ERR! code: E404: not found", ""),
        ("error: package json: not found", ""),
    ],
)
def test_what_common_programs_say_of_a_missing_one_is_recognised(line: str, name: str) -> None:
    assert list(printed(line).programs) == [name] * bool(name)


@pytest.mark.parametrize(
    "line",
    [
        "curl: (6) Could not resolve host: a.example",
        "Error: getaddrinfo ENOTFOUND a.example",
        "Error: getaddrinfo EAI_AGAIN a.example",
        "java.net.UnknownHostException: a.example",
        "dial tcp: lookup a.example on 127.0.0.1:53: no such host",
    ],
)
def test_a_program_that_looks_names_up_itself_is_recognised(line: str) -> None:
    assert list(printed(line).looked_up) == ["a.example"]


def test_exhausted_limits_are_recognised() -> None:
    assert printed("FATAL ERROR: Reached heap limit - JavaScript heap out of memory").out_of_memory
    assert printed("memory allocation of 4096 bytes failed").out_of_memory
    assert printed("OSError: [Errno 28] No space left on device").no_space
    assert printed("sh: 0: Cannot fork").no_processes
    assert not printed("all is well").out_of_memory


def test_output_is_bounded_and_has_no_control_characters() -> None:
    output = OutputScan()
    output.add(b"\x1b]0;title\x07one\n" + b"x" * 100_000)
    for _ in range(100):
        output.add(b"y" * 10_000)
    output.add(b"\nsh: 1: late: not")
    output.add(b" found")
    output.end()
    assert output.last[0] == "one"
    assert len(output.last[1]) == 4096
    assert list(output.programs) == ["late"]


def printed(line: str) -> OutputScan:
    output = OutputScan()
    output.add(f"{line}\n".encode())
    return output
