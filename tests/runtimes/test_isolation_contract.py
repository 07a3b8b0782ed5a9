"""The contract of every isolation, beyond that of the runtimes (`test_runtime_contract`)."""

import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPException
from pathlib import Path

import pytest
from msgspec.structs import replace

from lifecycle.model.status import Probe
from runtimes.base import PORT_SOCKET, RuntimeFailure
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import PROXY_PORT, PROXY_SOCKET, Limits, Sandbox
from runtimes.isolation.machine import ETC, ETC_MADE
from runtimes.resources import resources_of
from runtimes.sockets import loopback_connection
from tests.runtimes.stages import IsolatedStage, needs, whole
from tests.world.waiting import eventually

NAME = "app-1_r1"
#: Leaves a child in a session of its own that ignores SIGTERM, then says that it is ready.
_LEAVES_A_CHILD = """
setsid sh -c 'trap "" TERM HUP; echo up >child; while :; do sleep 1; done' &
until [ -e child ]; do sleep 0.02; done
"""
#: Files of /etc that engines add to a container.
_OF_THE_ENGINE = {"hostname", "mtab"}


def ended(stage: IsolatedStage, name: str = NAME) -> tuple[int | None, int | None]:
    """Exit code and signal of a run, once it has ended."""
    eventually(lambda: stage.seen(name).exit, f"the end of {name}")
    end = stage.seen(name).exit
    assert end is not None
    return end.code, end.signal


def shows(stage: IsolatedStage, text: str, name: str = NAME) -> None:
    eventually(lambda: text in stage.runtime.screens([name]).get(name, ""), text)


def supervisor(stage: IsolatedStage) -> int:
    pid: int = json.loads((stage.dir(NAME) / "pid.json").read_bytes())["pid"]
    return pid


@pytest.mark.parametrize("name", ISOLATIONS)
def test_an_isolation_works_here(name: str) -> None:
    needs(name)
    assert ISOLATIONS[name].unavailable() == ""


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("exit 0", (0, None)),
        ("exit 7", (7, None)),
        ("exit 137", (137, None)),
        ("kill -SEGV $$", (None, signal.SIGSEGV)),
        ("kill -KILL $$", (None, signal.SIGKILL)),
        ("sleep 600 & exit 5", (5, None)),
        (f"{_LEAVES_A_CHILD} exit 6", (6, None)),
        ("exec /no/such/program", (127, None)),
    ],
)
def test_the_end_of_the_program_is_recorded_as_it_was(
    isolated: IsolatedStage, script: str, end: tuple[int | None, int | None]
) -> None:
    isolated.shell(NAME, script)
    assert ended(isolated) == end
    eventually(lambda: not isolated.processes(NAME), "the end of everything it left")


def test_memory_and_processor_time_are_measured_while_it_runs(isolated: IsolatedStage) -> None:
    run = isolated.dir(NAME)
    assert resources_of(run) is None
    works = """
import time
kept = b"x" * (100 << 20)
while time.process_time() < 0.6: pass
print("ready", flush=True)
input()
"""
    isolated.run(NAME, "/usr/bin/python3", "-c", works)
    shows(isolated, "ready")
    used = resources_of(run)
    assert used is not None
    assert 100 <= used.memory_mb < 200
    assert 0.5 <= used.cpu_seconds < 30  # The kernel rounds each process down to 10 ms.
    isolated.runtime.stop(NAME)
    assert resources_of(run) is None


def test_a_program_that_is_missing_says_so(isolated: IsolatedStage) -> None:
    isolated.run(NAME, "no-such-program")
    assert ended(isolated) == (127, None)
    shows(isolated, "cannot run ['no-such-program']")


def test_a_stop_lets_the_program_end_by_itself_and_leaves_nothing(isolated: IsolatedStage) -> None:
    isolated.shell(NAME, f"trap 'echo bye >last; exit 3' TERM; {_LEAVES_A_CHILD} echo on; wait")
    shows(isolated, "on")
    isolated.runtime.stop(NAME, grace_seconds=0.5)
    assert (isolated.work(NAME) / "last").read_text() == "bye\n"
    assert isolated.processes(NAME) == []
    assert isolated.runtime.look() == {}


def test_everything_ends_after_its_supervisor_was_killed(isolated: IsolatedStage) -> None:
    isolated.shell(NAME, f"{_LEAVES_A_CHILD} echo on; sleep 600")
    shows(isolated, "on")
    os.kill(supervisor(isolated), signal.SIGKILL)
    eventually(lambda: isolated.seen(NAME).program is Probe.DEAD, "the news of its end")
    isolated.runtime.look()
    eventually(lambda: not isolated.processes(NAME), "the end of everything it left")


def test_a_run_survives_a_restart_of_the_bot(isolated: IsolatedStage) -> None:
    isolated.start(NAME)
    again = IsolatedStage(isolated.folder, "none")  # A new bot on the same folders.
    assert again.seen(NAME).program is Probe.ALIVE
    again.runtime.send(NAME, "still there?", key="a")
    eventually(lambda: "still there?" in isolated.received(NAME), "the message")
    again.exits(NAME, 4)
    eventually(lambda: again.seen(NAME).exit, "its end")
    assert isolated.seen(NAME).exit == again.seen(NAME).exit


def test_the_terminal_has_job_control_and_follows_the_windows_size(isolated: IsolatedStage) -> None:
    def types(line: str, *keys: str) -> None:
        isolated.tmux(NAME, "send-keys", "-t", f"={NAME}:", line, *keys)

    isolated.run(NAME, "bash", "--norc", "--noprofile", "-i", env={"PS1": "> "})
    types("echo $((6*7)); sleep 600", "Enter")
    shows(isolated, "\n42")
    types("C-z")
    shows(isolated, "Stopped")
    types("fg", "Enter")
    shows(isolated, "fg\nsleep 600")
    types("C-c")
    types("trap 'stty size' WINCH; echo $((6*8))", "Enter")
    shows(isolated, "\n48")
    isolated.tmux(NAME, "resize-window", "-t", f"={NAME}:", "-x", "70", "-y", "33")
    shows(isolated, "33 70")


def test_programs_print_with_colours_and_have_a_terminal_by_name(isolated: IsolatedStage) -> None:
    script = "printf '\\033[1;31mred\\033[0m\\n' >/dev/tty; test -t 0 -a -t 1 && echo terminal; cat"
    isolated.shell(NAME, script)
    shows(isolated, "terminal")
    styled = isolated.tmux(NAME, "capture-pane", "-ep", "-t", f"={NAME}:")
    assert "\x1b[1m\x1b[31mred" in styled


def test_what_is_not_there_is_refused_before_a_start(sandboxed: IsolatedStage) -> None:
    home = sandboxed.folder / "home"
    sandboxed.sandbox = Sandbox(writable=(home,))
    with pytest.raises(RuntimeFailure, match="is missing, or a symbolic link leads to it"):
        sandboxed.start(NAME)
    home.symlink_to("/etc")
    with pytest.raises(RuntimeFailure, match="is missing, or a symbolic link leads to it"):
        sandboxed.start(NAME)


def test_a_sandbox_has_its_files_and_no_others(sandboxed: IsolatedStage) -> None:
    lent, secret = sandboxed.folder / "lent", sandboxed.folder / "secret"
    for folder in (lent, secret):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    sandboxed.sandbox = Sandbox(writable=(), readable=(lent,))
    script = f"cat {lent}/file; echo x >{lent}/file; cat {secret}/file; ls {lent.parent}; echo end"
    sandboxed.shell(NAME, f"({script}) >out 2>&1; cat")
    said = eventually(lambda: whole(sandboxed.work(NAME) / "out"), "the script's end")
    assert said.startswith("lent")
    assert "Read-only file system" in said
    assert "No such file or directory" in said
    assert said.endswith("lent\nwork\nend\n")


def test_a_sandbox_has_settings_of_the_machine_and_cannot_change_them(
    sandboxed: IsolatedStage,
) -> None:
    known = {name.partition("/")[0] for name in (*ETC, *ETC_MADE)}
    script = """
ls -A /etc >names
cat /etc/profile >profile
for file in /etc/profile /etc/passwd /etc/ssl/certs/new /etc/new /run/mergewright/*; do
    rm -f $file; echo x >$file && echo "$file was changed"
done
id -un
cut -d: -f1 /etc/passwd
echo end
"""
    sandboxed.shell(NAME, f"({script}) >out 2>problems; cat")
    work = sandboxed.work(NAME)
    said = eventually(lambda: whole(work / "out"), "the script's end")
    assert said == "agent\nagent\nnobody\nend\n"
    assert set((work / "names").read_text().split()) <= known | _OF_THE_ENGINE
    assert (work / "profile").read_text() == Path("/etc/profile").read_text()


def test_bubblewrap_copies_files_of_etc_and_mounts_only_folders(
    bubblewrapped: IsolatedStage,
) -> None:
    bubblewrapped.shell(NAME, "(cut -d' ' -f5 /proc/self/mountinfo; echo end) >out; cat")
    mounts = eventually(lambda: whole(bubblewrapped.work(NAME) / "out"), "its mounts").split()
    assert "/usr" in mounts
    assert [place for place in mounts if place.startswith("/etc/") and Path(place).is_file()] == []


def test_a_path_may_be_given_twice(sandboxed: IsolatedStage) -> None:
    lent = sandboxed.folder / "lent"
    lent.mkdir()
    (lent / "file").write_text("lent")
    own = sandboxed.work(NAME)
    twice = (lent, lent / ".." / "lent", Path("/usr"), own, own / ".." / own.name)
    sandboxed.sandbox = Sandbox(writable=(), readable=twice)
    sandboxed.shell(NAME, f"(cat {lent}/file; ls /usr; echo end) >out 2>&1; cat")
    said = eventually(lambda: whole(own / "out"), "the script's end")
    assert said.startswith("lentbin\n")


@contextmanager
def proxy(folder: Path) -> Iterator[None]:
    """A server at the proxy's socket that returns each client's first line, with a prefix."""
    with socket.socket(socket.AF_UNIX) as listener:
        folder.mkdir(exist_ok=True)
        (folder / PROXY_SOCKET).unlink(missing_ok=True)
        listener.bind(str(folder / PROXY_SOCKET))
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client, client.makefile("rwb") as file:
                    file.write(b"heard " + file.readline())

        threading.Thread(target=serve, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


def test_programs_reach_the_proxy_also_after_its_restart(sandboxed: IsolatedStage) -> None:
    folder = sandboxed.folder / "proxy"
    ask = f"exec 3<>/dev/tcp/127.0.0.1/{PROXY_PORT} && echo $word >&3 && cat <&3"
    with proxy(folder):
        sandboxed.sandbox = replace(sandboxed.sandbox, proxy=folder)
        sandboxed.run(NAME, "bash", "-c", f"while read -r word; do {ask}; done")
        sandboxed.runtime.send(NAME, "one", key="a")
        shows(sandboxed, "heard one")
    sandboxed.runtime.send(NAME, "two", key="b")
    with proxy(folder):
        sandboxed.runtime.send(NAME, "three", key="c")
        shows(sandboxed, "heard three")


def test_the_bot_reaches_the_one_port_that_a_program_serves(sandboxed: IsolatedStage) -> None:
    sandboxed.sandbox = replace(sandboxed.sandbox, port=4096)
    server = "/usr/bin/python3 -m http.server 4096 --bind 127.0.0.1"
    sandboxed.shell(NAME, f"echo hello >file; {server}")
    forwarded = sandboxed.dir(NAME) / PORT_SOCKET

    def answer() -> bytes:
        with closing(loopback_connection(4096, forwarded, 5.0)) as connection:
            try:
                connection.request("GET", "/file")
                return connection.getresponse().read()
            except (OSError, HTTPException):
                return b""

    eventually(lambda: answer() == b"hello\n", "its answer")


def test_memory_and_processes_are_limited(sandboxed: IsolatedStage) -> None:
    needs(sandboxed.isolation, limited_processes=True)
    limits = Limits(memory_mb=64, processes=20, cpus=1.0)
    sandboxed.sandbox = replace(sandboxed.sandbox, limits=limits)
    hungry = "x = b'x' * (200 << 20)"
    many = "import os\nwhile True:\n  if not os.fork(): os.execlp('sleep', 'sleep', '600')"
    sandboxed.shell(NAME, f'/usr/bin/python3 -c "{hungry}" && echo fed || echo refused; cat')
    sandboxed.run("app-2_r1", "sh", "-c", f'/usr/bin/python3 -c "{many}"; cat')
    shows(sandboxed, "refused")
    shows(sandboxed, "Resource temporarily unavailable", "app-2_r1")
    for name in (NAME, "app-2_r1"):
        groups = sandboxed.launch(name).groups
        sandboxed.runtime.stop(name)
        assert not any(Path(group).exists() for group in groups)


def test_groups_of_a_killed_supervisor_are_removed(bubblewrapped: IsolatedStage) -> None:
    bubblewrapped.sandbox = replace(bubblewrapped.sandbox, limits=Limits(memory_mb=64))
    bubblewrapped.start(NAME)
    groups = list(map(Path, bubblewrapped.launch(NAME).groups))
    if not groups:
        pytest.skip("this user may make no control groups here")
    procs = [group / "cgroup.procs" for group in groups]
    eventually(lambda: all(one.exists() and one.read_text() for one in procs), "its processes")
    os.kill(supervisor(bubblewrapped), signal.SIGKILL)

    def are_gone() -> bool:
        bubblewrapped.runtime.look()
        return not any(group.exists() for group in groups)

    eventually(are_gone, "their removal")


def test_groups_with_a_process_that_ends_late_are_removed(bubblewrapped: IsolatedStage) -> None:
    bubblewrapped.sandbox = replace(bubblewrapped.sandbox, limits=Limits(memory_mb=64))
    bubblewrapped.start(NAME)
    groups = list(map(Path, bubblewrapped.launch(NAME).groups))
    if not groups:
        pytest.skip("this user may make no control groups here")
    procs = [group / "cgroup.procs" for group in groups]
    eventually(lambda: all(one.exists() and one.read_text() for one in procs), "its processes")
    with subprocess.Popen(("sleep", "600")) as late:
        for one in procs:
            one.write_text(str(late.pid))
        os.kill(supervisor(bubblewrapped), signal.SIGKILL)
        eventually(lambda: bubblewrapped.seen(NAME).exit, "its end")
        eventually(lambda: not bubblewrapped.processes(NAME), "the end of everything else")
        bubblewrapped.runtime.look()
        late.kill()

    def are_gone() -> bool:
        bubblewrapped.runtime.look()
        return not any(group.exists() for group in groups)

    eventually(are_gone, "their removal")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read these files")
def test_tables_of_the_kernels_memory_are_hidden_from_an_agent_that_is_root_outside(
    bubblewrapped: IsolatedStage,
) -> None:
    names = "kpagecount kpageflags kpagecgroup slabinfo vmallocinfo pagetypeinfo"
    script = f"cd /proc; head -qc 64 {names} 2>/dev/null | wc -c"
    app = bubblewrapped.shell("app-1_r1", script)
    eventually(lambda: bubblewrapped.seen(app).exit, "its end")
    eventually(lambda: bubblewrapped.output(app).strip(), "its output")
    assert bubblewrapped.output(app).strip() == "0"
