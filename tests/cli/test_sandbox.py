"""A shell or a command in a real sandbox, with a workspace from a stand-in GitHub."""

import os
import pty
import select
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.results import MERGEWRIGHT
from tests.cli.sandboxes import SandboxedProject
from tests.world.waiting import PATIENCE, eventually

#: Waits for a file in the workspace that no test makes.
_WAITS = "echo up; until [ -e gone ]; do sleep 0.05; done"


def test_a_command_runs_in_the_workspace_with_its_own_exit_code_and_leaves_nothing(
    sandboxed: SandboxedProject,
) -> None:
    sandboxed.is_configured('bootstrap = ["export TOOL=ready", "echo built >built"]')
    script = "cat README.md built; echo $TOOL; git status --short; pwd; exit 7"
    result = sandboxed("sandbox", "widgets", "--", "sh", "-c", script)
    assert result.err == ""
    *lines, workspace = result.out.splitlines()
    assert (result.code, lines) == (7, ["widgets", "built", "ready", "?? built"])
    assert Path(workspace).is_relative_to(sandboxed.data / "sandboxes")
    assert sandboxed.left == []
    killed = sandboxed("sandbox", "widgets", "--", "sh", "-c", "kill -SEGV $$")
    assert killed.code == 128 + signal.SIGSEGV


def test_it_is_the_sandbox_of_an_agent(sandboxed: SandboxedProject) -> None:
    tries = f"echo $SECRET; id -u; ls {sandboxed.data}; cat {sandboxed.data.parent}/*.toml; env"
    result = sandboxed("sandbox", "widgets", "--", "sh", "-c", f"{tries}; true")
    assert "of the person" not in result.out
    assert "wrights" not in result.out
    assert result.out.startswith("\n1000\nsandboxes\n")
    assert "No such file" in result.err


def test_the_workspace_is_the_base_branch_as_it_is_now_and_the_mirror_lends_its_objects(
    sandboxed: SandboxedProject,
) -> None:
    mirror = sandboxed.data / "mirrors" / "widgets.git"
    mirror.parent.mkdir(parents=True, mode=0o700)
    clone = ("git", "clone", "--quiet", "--mirror")
    url = sandboxed.url.replace("://", "://wright:wrights@")
    subprocess.run((*clone, f"{url}acme/widgets.git", str(mirror)), check=True)
    known = {one.name for one in mirror.rglob("*")}
    sandboxed.pushes("README.md", "newer\n")
    result = sandboxed("sandbox", "widgets", "--", "cat", "README.md")
    assert (result.code, result.out, result.err) == (0, "newer\n", "")
    assert {one.name for one in mirror.rglob("*")} == known


def test_refused_hosts_are_named_with_what_allows_them(sandboxed: SandboxedProject) -> None:
    model = "http://127.0.0.1:18089/v1/messages"
    script = f"curl -sS https://evil.example/; curl -sS {model} -H 'x-api-key: any' -d '{{}}'"
    result = sandboxed("sandbox", "widgets", "--", "sh", "-c", script)
    refusal = 'refused: evil.example:443, once; allow it: add "evil.example" to `network`'
    assert f"mergewright: {refusal} in [projects.widgets]" in result.err
    assert "a sandbox for people has no model" in result.out


def test_after_a_failed_set_up_the_command_is_not_run(sandboxed: SandboxedProject) -> None:
    sandboxed.is_configured('bootstrap = ["exit 3", "true"]')
    result = sandboxed("sandbox", "widgets", "--", "echo", "done")
    assert (result.code, result.out) == (3, "")
    assert result.err == "mergewright: the set-up failed, so the command was not run\n"


def test_projects_without_a_sandbox_or_a_name_are_refused(sandboxed: SandboxedProject) -> None:
    unknown = sandboxed("sandbox", "wigdets")
    assert (unknown.code, "did you mean 'widgets'?" in unknown.err) == (2, True)
    sandboxed.is_configured(isolation="none")
    refused = sandboxed("sandbox", "widgets", "--", "true")
    assert refused.code == 1
    assert "agents of widgets run without a sandbox" in refused.err
    assert sandboxed.left == []


def test_a_branch_that_is_missing_is_said(sandboxed: SandboxedProject) -> None:
    sandboxed.is_configured('base-branch = "develop"')
    result = sandboxed("sandbox", "widgets", "--", "true")
    assert (result.code, "no branch develop" in result.err) == (1, True)
    assert sandboxed.left == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_removes_the_sandbox(sandboxed: SandboxedProject, number: int) -> None:
    running = sandboxed.starts("sandbox", "widgets", "--", "sh", "-c", _WAITS)
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    running.send_signal(number)
    running.communicate(timeout=PATIENCE)
    assert running.returncode != 0
    assert sandboxed.left == []


def test_what_a_killed_process_leaves_ends_and_is_removed_by_the_next(
    sandboxed: SandboxedProject,
) -> None:
    running = sandboxed.starts("sandbox", "widgets", "--", "sh", "-c", _WAITS)
    other = sandboxed.starts("sandbox", "widgets", "--", "sh", "-c", f"{_WAITS}; echo other")
    for started in (running, other):
        assert started.stdout is not None
        assert started.stdout.readline() == "up\n"
    before = set(sandboxed.processes)
    running.kill()
    running.communicate(timeout=PATIENCE)
    eventually(lambda: set(sandboxed.processes) < before, "the end of its program")
    (kept,) = sandboxed.workspaces_of(other)
    result = sandboxed("sandbox", "widgets", "--", "echo", "third")
    assert result.out == "third\n"
    assert sandboxed.workspaces == [kept]
    (kept / "gone").touch()
    assert other.communicate(timeout=PATIENCE)[0] == "other\n"
    assert sandboxed.left == []


class Person:
    """Somebody at a terminal."""

    def __init__(self, sandboxed: SandboxedProject, *words: str) -> None:
        self.shown = ""
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            os.chdir(sandboxed.data.parent)
            os.execve(MERGEWRIGHT, (MERGEWRIGHT, *words), sandboxed.environment())

    def types(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def sees(self, text: str) -> None:
        """Wait until the terminal shows a text after the last one that was seen."""
        while text not in self.shown:
            readable, _, _ = select.select([self._terminal], [], [], PATIENCE)
            assert readable, f"no {text!r} in {self.shown}"
            try:
                self.shown += os.read(self._terminal, 65_536).decode(errors="replace")
            except OSError as error:  # Everything that had the terminal has ended.
                raise AssertionError(self.shown) from error
        self.shown = self.shown.partition(text)[2]

    def leaves(self) -> int:
        """The exit code of the command."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_person_gets_a_shell_with_job_control_and_sees_how_to_leave(
    sandboxed: SandboxedProject,
) -> None:
    person = Person(sandboxed, "sandbox", "widgets")
    person.sees("a sandbox like those of the agents of widgets (bubblewrap; 8192 MB")
    person.sees("index.example")
    person.sees("Leave it with `exit`")
    person.sees("[sandbox]")
    person.types("sh -c 'cat README.md; echo $((6*7)); exec sleep 600'\n")
    person.sees("widgets\r\n42\r\n")
    person.types("\x1a")
    person.sees("Stopped")
    person.types("exit 5\n")
    person.sees("There are stopped jobs")
    person.types("exit 5\n")
    person.sees("the sandbox was removed")
    assert person.leaves() == 5
    assert sandboxed.left == []


def test_after_a_failed_set_up_a_person_gets_a_shell_where_it_stopped(
    sandboxed: SandboxedProject,
) -> None:
    sandboxed.is_configured('bootstrap = ["export PART=one", "no-such-tool", "export PART=two"]')
    person = Person(sandboxed, "sandbox", "widgets")
    person.sees("no-such-tool: not found")
    person.sees("the set-up failed with exit code 127; an agent would not start")
    person.types("echo part-$PART; exit\n")
    person.sees("part-one")
    person.sees("the sandbox was removed")
    assert person.leaves() == 0
