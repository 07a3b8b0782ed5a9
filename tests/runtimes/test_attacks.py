"""Attacks by a real program in a real session: each works without isolation, and fails with it."""

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from lifecycle.model.status import Probe
from runtimes.agents.base import AgentType
from runtimes.agents.claude import Claude
from runtimes.agents.shell import Shell
from runtimes.base import Options
from runtimes.host import RunRef, StartSpec
from runtimes.isolation import ISOLATIONS, seccomp
from runtimes.isolation.base import IsolationSpec, Limits
from runtimes.local_host import LocalHost
from runtimes.tmux import Tmux
from runtimes.workspaces import session_git
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.session_git import SessionGit
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.attacks import AS_ROOT, ATTACKS, FILTERED, PRELUDE
from tests.runtimes.stages import needs, processes, without_bubblewrap
from tests.world.waiting import eventually

_RUN = RunRef(session="widgets-12", run=1, agent_type="shell", branch="mergewright/12-x")
_SOURCE = Path(__file__).parents[2]
_LIMITS = Limits(memory_mb=120, processes=30)
#: Attacks on what concerns a run alone, and on what the bot's git has: it is a running git, and
#: trusts nothing in its view.
_NOT_FROM_GIT = {
    *("3 read the environment of a running git", "5 talk to tmux"),
    *("6 forge its supervisor's record", "7 change the bot's view", "10 signal its supervisor"),
}

pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of its calls")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="others may not do it anyway")


def test_the_security_policy_says_what_stops_each_attack() -> None:
    text = (_SOURCE / "SECURITY.md").read_text()
    _, _, table = text.partition("| an agent may try to | what stops it |\n")
    rows = [line.split(" | ") for line in table.partition("\n\n")[0].splitlines()[1:]]
    assert [name.removeprefix("| ") for name, _ in rows] == [*ATTACKS, *FILTERED, *AS_ROOT]


def _program(script: str) -> str:
    """A Python program that sets its variable `result` to `works`, `no` or the script's error."""
    return (
        f"{PRELUDE}\ndef attack():\n    {script}\n"
        "try:\n    result = 'works' if attack() else 'no'\n"
        "except BaseException as error:\n    result = repr(error)\n"
    )


class Machine:
    """A machine with a bot, its operator and a session whose agent attacks them."""

    def __init__(self, folder: Path, mirror: Mirror, stack: ExitStack) -> None:
        self._folder, self._mirror = folder, mirror
        self._data = folder / "data"
        for file in (
            "config/mergewright.env",
            "data/mergewright.db",
            "data/sessions/widgets-13_r1/inputs/prompt.md",
            "data/sessions/widgets-13_home/notes",
            "data/run-tokens/widgets-13_r1",
            "data/archive/widgets-1",
            "data/mirrors/other.git/HEAD",
            "data/workspaces/widgets-13/checkout/README",
            "operator/.ssh/id_ed25519",
            "bin/mergewright",
        ):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text("secret")
            (folder / file).chmod(0o700)
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        name = folder.name
        for address in (str(folder / "operator" / "agent.sock"), f"\0{name}"):
            server = stack.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(address)
            server.listen()
        secrets = {"MERGEWRIGHT_GITHUB_TOKEN": "x", "GIT_CONFIG_VALUE_0": "x"}
        bot = ("sh", "-c", "sleep 600; : the-bot-of-this-test")
        stack.callback(self._end, subprocess.Popen(bot, env=secrets, start_new_session=True))
        self._env = {
            "CONFIG": str(folder / "config"),
            "DATA": str(self._data),
            "COMMAND": str(folder / "bin" / "mergewright"),
            "MIRROR": str(mirror.path),
            "OPERATOR": str(folder / "operator"),
            "SSH_SOCKET": str(folder / "operator" / "agent.sock"),
            "PORT": str(listening.getsockname()[1]),
            "ABSTRACT": name,
            "SOURCE": str(_SOURCE),
        }
        self._stack = stack
        self._run = 0

    def attack(self, script: str, isolation: str) -> str:
        """Have the agent run a script in a new run; return `works`, or why it failed."""
        program = (
            f"{_program(script)}"
            "with open('result.new', 'w') as file: file.write(result)\n"
            "os.rename('result.new', 'result')\n"
        )
        kind = AgentType(
            program="shell", command=("/usr/bin/python3", "-c", program), env=self._env
        )
        runtime = Tmux(Options(data=self._data / "runtime"))
        host = LocalHost(runtime, {"shell": Shell(kind)}, self._data)
        place = (_RUN.session, _RUN.branch, self._mirror.path)
        workspace = host.workspace(*place, lambda: ISOLATIONS[isolation])
        prepare(self._mirror, workspace, "main")
        spec = IsolationSpec(kind=isolation, readable=(self._mirror.path,), limits=_LIMITS)
        self._run += 1
        run = replace(_RUN, run=self._run)
        self._stack.callback(runtime.stop, run.name)
        result = workspace.path / "result"
        result.unlink(missing_ok=True)
        host.runs.start(run, StartSpec(prompt="Attack.", isolation=spec))
        eventually(
            lambda: result.exists() or runtime.look()[run.name].program is Probe.DEAD, "its end"
        )
        return result.read_text() if result.exists() else host.runs.output(run.session, run.run)

    def attack_from_git(self, script: str, isolation: str) -> str:
        """Run git through the bot's `SessionGit`, with a git alias that starts a script.

        Returns `works` if the script succeeded, or else why it failed.
        """
        place = self._data / "workspaces" / _RUN.session
        by = ISOLATIONS[isolation]
        worktree = Worktree(place.parent, _RUN.session, _RUN.branch, self._mirror.path, lambda: by)
        prepare(self._mirror, worktree, "main")
        run = SessionGit(
            view=place / "bot.git",
            checkout=worktree.path,
            repository=worktree.repository,
            origin=self._mirror.path,
            isolation=lambda: by,
        )
        env = {**self._env, "MERGEWRIGHT_WORKSPACE": str(worktree.path)}
        program = worktree.path / "attack.py"
        program.write_text(f"{_program(script)}print(result)")
        try:
            alias = f"alias.attack=!exec /usr/bin/python3 {program}"
            return run("-c", alias, "attack", env=env).strip()
        except GitFailure as failure:
            return str(failure)

    def command_lines(self, prompt: str, isolation: str) -> list[str]:
        """Start Claude Code with a prompt; returns the programs whose command line has it."""
        # A shell starts programs, and has two processes with its command line meanwhile.
        command = ("/usr/bin/python3", "-c", "import time; time.sleep(60)", "agent")
        kind = AgentType(program="claude", command=command)
        runtime = Tmux(Options(data=self._data / "runtime"))
        host = LocalHost(runtime, {"claude": Claude(kind)}, self._data)
        place = (_RUN.session, _RUN.branch, self._mirror.path)
        prepare(self._mirror, host.workspace(*place, lambda: ISOLATIONS[isolation]), "main")
        run = replace(_RUN, agent_type="claude")
        self._stack.callback(runtime.stop, run.name)
        spec = IsolationSpec(kind=isolation, readable=(self._mirror.path,))
        host.runs.start(run, StartSpec(prompt=prompt, isolation=spec))
        eventually(lambda: processes("cmdline", prompt.encode()), "its start")
        found = (
            Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
            for pid in processes("cmdline", prompt.encode())
        )
        return sorted(words[3].decode() for words in found)

    @staticmethod
    def _end(bot: subprocess.Popen[bytes]) -> None:
        os.killpg(bot.pid, 9)
        bot.wait()


@pytest.fixture
def machine(mirror: Mirror) -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="mw-") as folder, ExitStack() as stack:
        yield Machine(Path(folder).resolve(), mirror, stack)


@pytest.fixture(params=[name for name in ISOLATIONS if name != "none"])
def isolation(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    needs(name)
    return name


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_works_without_isolation_and_fails_with_it(
    machine: Machine, name: str, isolation: str
) -> None:
    needs(isolation, limited_processes="processes" in name)
    assert machine.attack(ATTACKS[name], "none") == "works"
    assert machine.attack(ATTACKS[name], isolation) not in ("works", "")


@pytest.mark.parametrize("name", sorted(ATTACKS.keys() - _NOT_FROM_GIT))
def test_an_attack_by_the_bots_git_works_without_isolation_and_fails_with_it(
    machine: Machine, name: str, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if isolation == "bubblewrap" and "processes" in name and os.geteuid() == 0:
        return  # Linux does not limit those of root without control groups.
    monkeypatch.setattr(session_git, "_LIMITS", _LIMITS)
    without_bubblewrap(isolation, monkeypatch)
    assert machine.attack_from_git(ATTACKS[name], "none") == "works"
    assert machine.attack_from_git(ATTACKS[name], isolation) not in ("works", "")


@pytest.mark.parametrize("name", FILTERED)
def test_the_filter_stops_what_namespaces_do_not(
    machine: Machine, name: str, isolation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as removed:
        everything = b"\x06\x00\x00\x00\x00\x00\xff\x7f"  # Return ALLOW.
        removed.setattr(seccomp, "program", lambda: everything)
        if isolation == "bubblewrap" or os.geteuid() == 0:  # Else the engine's filter stops it too.
            assert machine.attack(FILTERED[name], isolation) == "works"
    assert machine.attack(FILTERED[name], isolation) not in ("works", "")


@as_root
@pytest.mark.parametrize("name", AS_ROOT)
def test_what_root_alone_may_do_is_out_of_reach_of_bubblewrap(
    machine: Machine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("bubblewrap")
    with monkeypatch.context() as removed:
        removed.setattr("runtimes.isolation.bubblewrap._PROC_READ_ONLY", ())
        assert machine.attack(AS_ROOT[name], "bubblewrap") == "works"
    assert machine.attack(AS_ROOT[name], "bubblewrap") not in ("works", "")


@as_root
@pytest.mark.parametrize("name", AS_ROOT)
def test_what_root_alone_may_do_is_out_of_reach_of_containers(
    machine: Machine, name: str, isolation: str
) -> None:
    assert machine.attack(AS_ROOT[name], "none") == "works"
    assert machine.attack(AS_ROOT[name], isolation) not in ("works", "")


def test_a_prompt_is_in_the_command_line_of_the_program_alone(
    machine: Machine, isolation: str
) -> None:
    """Sandbox and terminal have command lines too, which all users of the machine can read."""
    assert machine.command_lines("the-prompt-of-this-test", isolation) == ["agent"]
