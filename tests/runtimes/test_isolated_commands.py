"""The contract of short commands in every isolation: `Isolation.command`."""

import os
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from runtimes.base import RuntimeFailure
from runtimes.isolation import ISOLATIONS, inner, machine_image
from runtimes.isolation.base import Isolation, Limits, Sandbox
from runtimes.isolation.bubblewrap import Bubblewrap
from runtimes.isolation.containers import Containers
from runtimes.isolation.programs import python, python_files
from runtimes.workspaces.git import GitFailure, git, init
from tests.runtimes.stages import needs, processes, without_bubblewrap
from tests.world.waiting import eventually

_SANDBOXES = [name for name in ISOLATIONS if name != "none"]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A folder to write, another to read, and limits."""
    with tempfile.TemporaryDirectory(prefix="mw-") as name:
        folder = Path(name).resolve()
        for one in ("work", "lent", "secret"):
            (folder / one).mkdir()
            (folder / one / "file").write_text(one)
        limits = Limits(memory_mb=100, processes=30)
        yield Sandbox(writable=(folder / "work",), readable=(folder / "lent",), limits=limits)


@pytest.fixture(params=ISOLATIONS)
def isolation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Isolation:
    return without_bubblewrap(request.param, monkeypatch)


@pytest.fixture(params=_SANDBOXES)
def sandboxing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Isolation:
    return without_bubblewrap(request.param, monkeypatch)


@contextmanager
def started(isolation: Isolation, sandbox: Sandbox, script: str) -> Iterator[subprocess.Popen[str]]:
    """A shell script in a sandbox."""
    work = sandbox.writable[0]
    with (
        isolation.command(("/bin/sh", "-c", script), work, sandbox) as (argv, descriptors),
        subprocess.Popen(
            argv,
            cwd=work,
            env={"PATH": os.environ["PATH"], "WORD": "open-sesame"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=descriptors,
            start_new_session=True,
        ) as process,
    ):
        yield process


def ran(isolation: Isolation, sandbox: Sandbox, script: str, said: str = "") -> tuple[str, str]:
    """Output and errors of a shell script that reads `said`."""
    with started(isolation, sandbox, script) as process:
        return process.communicate(said)


def lasting(text: str) -> str:
    """A command that continues although it is asked to end, and has a text in its command line."""
    return f"setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done; : {text}'"


def test_a_command_has_the_callers_streams_and_environment(
    isolation: Isolation, sandbox: Sandbox
) -> None:
    with started(isolation, sandbox, "cat; echo $WORD; pwd; echo odd >&2; exit 7") as process:
        assert process.communicate("hello\n") == (
            f"hello\nopen-sesame\n{sandbox.writable[0]}\n",
            "odd\n",
        )
    assert process.returncode == 7


def test_a_command_that_is_killed_fails(isolation: Isolation, sandbox: Sandbox) -> None:
    with started(isolation, sandbox, "kill -KILL $$") as process:
        process.communicate()
    assert process.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL)


def test_git_runs_in_it(isolation: Isolation, sandbox: Sandbox, tmp_path: Path) -> None:
    view = sandbox.writable[0] / "bot.git"
    init(view)

    def run(*args: str, **more: object) -> str:
        return git(view, *args, wrap=lambda argv: isolation.command(argv, view, sandbox), **more)  # type: ignore[arg-type]

    blob = run("hash-object", "-w", "--stdin", stdin="text").strip()
    run("cat-file", "blob", blob, into=tmp_path / "out")
    assert (tmp_path / "out").read_text() == "text"
    with pytest.raises(GitFailure, match="ambiguous argument 'none'") as failed:
        run("rev-parse", "none")
    assert failed.value.code == 128
    with pytest.raises(GitFailure, match="did not end within"):
        run("-c", "alias.wait=!sleep 600", "wait", seconds=2.0)


def test_a_sandboxed_command_has_its_files_and_no_others(
    sandboxing: Isolation, sandbox: Sandbox
) -> None:
    lent = sandbox.readable[0]
    script = f"cat {lent}/file; touch x {lent}/x /usr/x; cat {lent.parent}/secret/file; ls ~"
    out, err = ran(sandboxing, sandbox, script)
    assert out == "lent"
    assert err.count("Read-only file system") == 2
    assert err.count("No such file or directory") == 2
    assert (sandbox.writable[0] / "x").exists()


def test_a_sandboxed_command_has_no_rights_and_few_processes(
    sandboxing: Isolation, sandbox: Sandbox
) -> None:
    look = "/usr/bin/python3 -c 'import socket; print([name for _, name in socket.if_nameindex()])'"
    out, err = ran(sandboxing, sandbox, f"id -u; ulimit -c; {look}; setsid true; unshare -U true")
    user, *others = out.splitlines()
    assert (user != "0", *others) == (True, "0", "['lo']"), err


def test_memory_and_processes_of_a_command_are_limited(
    sandboxing: Isolation, sandbox: Sandbox
) -> None:
    hungry = "/usr/bin/python3 -c \"x = b'x' * (200 << 20)\" && echo fed || echo refused"
    assert ran(sandboxing, sandbox, hungry)[0] == "refused\n"
    if sandboxing is ISOLATIONS["bubblewrap"] and os.geteuid() == 0:
        return  # Linux does not limit those of root without control groups.
    many = "i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done; echo all"
    out, err = ran(sandboxing, sandbox, many)
    assert out == ""
    assert "fork" in err


def test_what_is_not_there_is_refused_before_a_command(
    sandboxing: Isolation, sandbox: Sandbox
) -> None:
    work = sandbox.writable[0]
    linked = work.with_name("linked")
    linked.symlink_to(work)
    for odd in (work / "missing", linked):
        wanted = replace(sandbox, writable=(work, odd))
        with (
            pytest.raises(RuntimeFailure, match="is missing, or a symbolic link leads to it"),
            sandboxing.command(("true",), work, wanted),
        ):
            pass


def test_nothing_of_a_command_outlives_it(sandboxing: Isolation, sandbox: Sandbox) -> None:
    mark = f"left in {sandbox.writable[0]}"
    ran(sandboxing, sandbox, f"{lasting(mark)} >/dev/null 2>&1 & sleep 0.2")
    eventually(lambda: not processes("cmdline", mark.encode()), "its end")


def test_nothing_of_a_command_outlives_its_deadline(
    sandboxing: Isolation, sandbox: Sandbox
) -> None:
    mark = f"left in {sandbox.writable[0]}"
    with started(sandboxing, sandbox, f"{lasting(mark)} & echo on; wait") as process:
        assert process.stdout
        assert process.stdout.readline() == "on\n"
        os.killpg(process.pid, signal.SIGKILL)  # As `git` does.
    eventually(lambda: not processes("cmdline", mark.encode()), "its end")


def test_a_command_ends_with_the_thread_that_started_it(
    sandboxing: Isolation, sandbox: Sandbox
) -> None:
    """So it ends with the bot."""
    mark = f"left in {sandbox.writable[0]}"
    made = []

    def start() -> None:
        command = started(sandboxing, sandbox, f"{lasting(mark)} & echo on; wait")
        made.append(command)
        process = command.__enter__()
        assert process.stdout
        assert process.stdout.readline() == "on\n"

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    eventually(lambda: not processes("cmdline", mark.encode()), "its end")
    made[0].__exit__(None, None, None)


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_containers_leave_commands_to_bubblewrap_where_it_works(
    engine: str, sandbox: Sandbox
) -> None:
    needs("bubblewrap")
    with ISOLATIONS[engine].command(("true",), sandbox.writable[0], sandbox) as (argv, _):
        assert argv[0] == "bwrap"


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_no_command_runs_without_a_sandbox(
    engine: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: "removed by this test")
    for variable in ("DOCKER_HOST", "CONTAINER_HOST"):
        monkeypatch.setenv(variable, f"unix://{tmp_path}/none.sock")
    with (
        pytest.raises(RuntimeFailure, match=f"{engine} does not answer: no answer at {tmp_path}"),
        ISOLATIONS[engine].command(("true",), sandbox.writable[0], sandbox),
    ):
        pass


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_container_that_does_not_start_is_no_answer_of_git(
    engine: str, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolation = without_bubblewrap(engine, monkeypatch)
    monkeypatch.setattr(machine_image, "name", lambda: "no-such-image")
    monkeypatch.setattr(Containers, "_make_image", lambda *_: None)
    view = sandbox.writable[0]
    with pytest.raises(GitFailure, match="cannot start a container") as failed:
        git(view, "version", wrap=lambda argv: isolation.command(argv, view, sandbox))
    assert failed.value.code is None


def test_the_first_process_of_a_sandbox_refuses_to_be_another_one(sandbox: Sandbox) -> None:
    """It runs only as process 1 of a PID namespace, because it ends all processes that it sees."""
    needs("bubblewrap")
    files = (Path(inner.__file__).parent, *python_files(()))
    sandbox = replace(sandbox, readable=files)
    first = shlex.join((python(), "-I", "-S", inner.__file__))
    # In a sandbox, where bubblewrap has started another process before: it can end no others.
    script = f"{first} 0 - 0 0 0 0 -- /bin/echo started; echo $?"
    out, problems = ran(ISOLATIONS["bubblewrap"], sandbox, script)
    assert out == "1\n"
    assert "only as the first process of a PID namespace" in problems
