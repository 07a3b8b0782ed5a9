"""Tests of the tmux runtime that need a real tmux: environments, ends, failures."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from lifecycle.model.status import Probe
from lifecycle.model.times import from_seconds
from runtimes import supervised
from runtimes.base import Gone, Options, RuntimeFailure, Unavailable
from runtimes.tmux import Tmux
from tests.runtimes.stages import TmuxStage
from tests.world.waiting import eventually


def alive(pid: int) -> bool:
    """Whether a process runs and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def written_pid(stage: TmuxStage, name: str, file: str = "pid") -> int:
    """The pid a program wrote into a file of its folder."""
    path = stage.dir(name) / file
    eventually(lambda: path.exists() and path.read_text().endswith("\n"), f"{file} of {name}")
    return int(path.read_text())


def supervisor(stage: TmuxStage, name: str) -> int:
    """The pid of a run's supervisor."""
    return int(stage.tmux(name, "display-message", "-p", "#{pane_pid}"))


def test_a_program_inherits_no_variable_of_the_bot(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "of-the-bot")
    app = tmux.run("app-1", "env", env={"GIVEN": "yes", "LANG": "C"})
    eventually(lambda: tmux.seen(app).exit, "its end")
    eventually(lambda: tmux.output("app-1").count("=") == 5, "all that env prints")
    names = {line.split("=")[0] for line in tmux.output("app-1").splitlines()}
    assert names == {"PATH", "LANG", "TERM", "GIVEN", "MERGEWRIGHT_RUN_DIR"}
    assert "LANG=C\r\n" in tmux.output("app-1")
    assert "of-the-bot" not in tmux.tmux("app-1", "show-environment", "-g")


def test_a_programs_secret_is_only_in_its_own_environment(tmux: TmuxStage) -> None:
    tmux.run("app-1", "sh", "-c", "echo $$ >pid; exec sleep 1000", env={"KEY": "hush-hush"})
    pid = written_pid(tmux, "app-1")
    assert b"KEY=hush-hush" in Path(f"/proc/{pid}/environ").read_bytes()
    assert "hush" not in tmux.tmux("app-1", "show-environment")
    assert b"hush" not in Path(f"/proc/{supervisor(tmux, 'app-1')}/cmdline").read_bytes()
    kept = [path for path in tmux.dir("app-1").iterdir() if b"hush" in path.read_bytes()]
    assert kept == []


def test_the_log_is_complete_after_the_disk_was_full(
    tmux: TmuxStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cat`, which writes the log, fails at first, as on a full disk, and loses what it has read.

    The lost lines are later copied from the tmux pane to the log.
    """
    cat = tmp_path / "bin" / "cat"
    cat.parent.mkdir()
    cat.write_text(
        f"#!/bin/sh\ncd {tmp_path}; [ -e full ] || exec /bin/cat; read lost; touch met; exit 1\n"
    )
    cat.chmod(0o755)
    (tmp_path / "full").touch()
    monkeypatch.setenv("PATH", f"{cat.parent}:{os.environ['PATH']}")
    tmux.run("app-1", "sh", "-c", "echo early; read x; echo late; exec sleep 1000")
    eventually((tmp_path / "met").exists, "the full disk")
    (tmp_path / "full").unlink()
    eventually(lambda: "early" in tmux.output("app-1"), "the early output")
    tmux.runtime.send("app-1", "x", "a-key")
    eventually(lambda: "late" in tmux.output("app-1"), "the late output")
    assert tmux.output("app-1").index("early") < tmux.output("app-1").index("late")


def test_the_log_of_an_endless_output_is_limited(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtimes.tmux._LOG_BLOCKS", 4)
    app = tmux.run("app-1", "sh", "-c", "seq 100000; echo over; exec sleep 1000")
    eventually(lambda: "over" in tmux.runtime.screens([app])[app], "its last words")
    eventually(lambda: (tmux.dir("app-1") / "output.log").stat().st_size == 2048, "the limit")
    assert tmux.output("app-1").startswith("1\r\n2\r\n")
    full = (tmux.dir("app-1") / "output.log").stat().st_mtime
    os.utime(tmux.dir("app-1") / "output.log", (full - 1000, full - 1000))
    assert tmux.seen(app).output_at > from_seconds(full - 900)  # type: ignore[operator]


def test_the_first_output_of_a_program_is_in_the_log(tmux: TmuxStage) -> None:
    for number in range(8):
        app = tmux.run(f"app-{number}", "echo", f"first words of {number}")
        eventually(lambda app=app: tmux.seen(app).exit, "its end")  # type: ignore[misc]
        eventually(lambda number=number: tmux.output(f"app-{number}"), "its words")  # type: ignore[misc]
        assert tmux.output(f"app-{number}") == f"first words of {number}\r\n"


def test_a_screen_has_its_colours_where_they_are_asked_for(tmux: TmuxStage) -> None:
    red = "printf '\\033[1;31mred\\033[0m plain'; exec sleep 1000"
    app = tmux.run("app-1", "sh", "-c", red)
    eventually(lambda: tmux.runtime.screens([app]) == {app: "red plain"}, "its words")
    coloured = tmux.runtime.screens([app], coloured=True)[app]
    assert "31" in coloured.partition("red")[0]
    assert coloured.rpartition("red")[2].startswith("\x1b[")


def test_concurrent_starts_start_one_program(tmux: TmuxStage) -> None:
    app = tmux.start("app-1")
    assert tmux.start("app-1") == app
    tmux.prints(app, "one")
    eventually(lambda: tmux.runtime.screens([app]) == {app: "one"}, "the program")
    assert tmux.tmux(app, "list-panes", "-a", "-F", "#{session_name}") == "app-1\n"


def test_ctrl_c_reaches_the_program_but_not_its_supervisor(tmux: TmuxStage) -> None:
    app = tmux.shell("app-1", "echo $$ >pid; exec sleep 1000")
    written_pid(tmux, "app-1")
    tmux.tmux(app, "send-keys", "C-c")
    eventually(lambda: tmux.seen(app).exit, "its end")
    end = tmux.seen(app).exit
    assert end is not None
    assert end.signal == signal.SIGINT


def test_stop_ends_processes_that_try_to_escape(
    tmux: TmuxStage,
) -> None:
    app = tmux.shell(
        "app-1",
        """
        trap '' HUP TERM INT
        (echo $(exec sh -c 'echo $PPID') >ignores; sleep 1000) &
        setsid sh -c 'echo $$ >left; sleep 1000' &
        env -i PATH="$PATH" setsid -f setsid -f sh -c 'echo $$ >cleared; sleep 1000'
        kill -STOP $$
        """,
    )
    pids = [written_pid(tmux, "app-1", name) for name in ("ignores", "left", "cleared")]
    tmux.runtime.stop(app, grace_seconds=0.2)
    assert not any(alive(pid) for pid in pids)
    assert tmux.processes("app-1") == []
    assert tmux.runtime.look() == {}


def test_stop_lets_a_suspended_program_handle_sigterm(tmux: TmuxStage) -> None:
    app = tmux.shell(
        "app-1", "trap 'echo bye >bye; kill $!; exit 0' TERM; sleep 1000 & echo $$ >pid; wait"
    )
    os.kill(written_pid(tmux, "app-1"), signal.SIGSTOP)
    tmux.runtime.stop(app)
    assert (tmux.dir("app-1") / "bye").exists()


def test_a_stop_during_the_start_leaves_no_process(tmux: TmuxStage) -> None:
    for number in range(8):
        app = tmux.shell(f"app-{number}", "trap '' HUP TERM; sleep 1000")
        tmux.runtime.stop(app, grace_seconds=0.0)
        assert tmux.processes(f"app-{number}") == []


def test_background_processes_end_with_their_program(tmux: TmuxStage) -> None:
    app = tmux.shell("app-1", "setsid -f sh -c 'echo $$ >left; exec sleep 1000'; read go; exit 5")
    left = written_pid(tmux, "app-1", "left")
    tmux.runtime.send(app, "go", key="a")
    eventually(lambda: tmux.seen(app).exit, "its end")
    end = tmux.seen(app).exit
    assert end is not None
    assert end.code == 5
    assert not alive(left)


LEAVES = "trap '' HUP; echo $$ >pid; setsid sh -c 'echo $$ >left; sleep 1000' & sleep 1000"


def test_a_look_ends_what_outlived_a_killed_supervisor(tmux: TmuxStage) -> None:
    app, other = tmux.shell("app-1", LEAVES), tmux.shell("app-10", LEAVES)
    pid, left = written_pid(tmux, app), written_pid(tmux, app, "left")
    untouched = written_pid(tmux, other, "left")
    os.kill(supervisor(tmux, app), signal.SIGKILL)
    eventually(lambda: not alive(pid), "the program's end")
    assert alive(left)
    eventually(lambda: tmux.seen(app).program is Probe.DEAD, "the look to see it")
    eventually(lambda: tmux.seen(app).exit, "proof")
    end = tmux.seen(app).exit
    assert end is not None
    assert end.code is None
    eventually(lambda: not alive(left), "the end of what was left")
    eventually(lambda: tmux.seen(app) and tmux.processes(app) == [], "nothing is left")
    assert alive(untouched)
    assert tmux.seen(other).program is Probe.ALIVE


def test_a_restarted_bot_ends_what_outlived_a_supervisor_meanwhile(tmux: TmuxStage) -> None:
    app = tmux.shell("app-1", LEAVES)
    left = written_pid(tmux, app, "left")
    os.kill(supervisor(tmux, app), signal.SIGKILL)
    tmux.tmux(app, "kill-server")
    assert alive(left)
    restarted = Tmux(Options(data=tmux.data))
    eventually(lambda: restarted.look() and not alive(left), "the end of what was left")


def test_stop_ends_what_outlived_a_killed_supervisor(tmux: TmuxStage) -> None:
    app = tmux.shell("app-1", LEAVES)
    left = written_pid(tmux, app, "left")
    os.kill(supervisor(tmux, app), signal.SIGKILL)
    tmux.runtime.stop(app)
    assert not alive(left)
    assert tmux.processes("app-1") == []


def test_exits_are_recorded_when_the_tmux_servers_are_killed(tmux: TmuxStage) -> None:
    ended, running = tmux.start("app-1"), tmux.shell("app-2", "echo $$ >pid; exec sleep 1000")
    written_pid(tmux, "app-2")
    tmux.exits(ended, 3)
    eventually(lambda: tmux.seen(ended).exit, "the first end")
    for app in (ended, running):
        os.kill(int(tmux.tmux(app, "display-message", "-p", "#{pid}")), signal.SIGKILL)
    eventually(lambda: tmux.runtime.look()[running].exit, "the other end")
    seen = tmux.runtime.look()
    assert {item.runtime for item in seen.values()} == {Probe.DEAD}
    first, second = seen[ended].exit, seen[running].exit
    assert first is not None
    assert (first.code, first.lost) == (3, "")
    assert second is not None
    assert second.lost == "its terminal was closed"
    assert second.signal in (signal.SIGHUP, signal.SIGTERM)  # The kernel's or the supervisor's.
    assert tmux.runtime.screens([ended]) == {}
    with pytest.raises(Gone):
        tmux.runtime.send(running, "hello", key="a")
    again = tmux.start("app-2_r2")
    assert tmux.seen(again).program is Probe.ALIVE
    tmux.runtime.stop(running)
    assert set(tmux.runtime.look()) == {ended, again}


def test_a_program_without_supervisor_and_terminal_is_dead(
    tmux: TmuxStage,
) -> None:
    app = tmux.shell("app-1", "echo $$ >pid; exec sleep 1000")
    written_pid(tmux, "app-1")
    server, watcher = (
        int(tmux.tmux(app, "display-message", "-p", f"#{{{name}}}")) for name in ("pid", "pane_pid")
    )
    os.kill(server, signal.SIGSTOP)
    os.kill(watcher, signal.SIGKILL)
    os.kill(server, signal.SIGKILL)
    eventually(lambda: not alive(server), "the server's end")
    eventually(lambda: tmux.runtime.look()[app].exit, "proof")
    seen = tmux.seen(app)
    assert seen.program is Probe.DEAD
    assert seen.exit is not None
    assert (seen.exit.code, seen.exit.signal) == (None, None)
    assert seen.exit.lost == "its supervisor vanished"
    assert tmux.seen(app) == seen


def test_an_unreadable_folder_raises_unavailable(tmux: TmuxStage) -> None:
    app = tmux.start("app-1")
    runs = tmux.data / "runs"
    runs.rename(tmux.data / "elsewhere")
    with pytest.raises(Unavailable, match="cannot be read"):
        tmux.runtime.look()
    (tmux.data / "elsewhere").rename(runs)
    assert tmux.seen(app).program is Probe.ALIVE


def test_a_missing_tmux_raises_unavailable_with_a_remedy(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("env", "timeout"):
        (tools / tool).symlink_to(f"/usr/bin/{tool}")
    app = tmux.start("app-1")
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tools))
        for ask in (
            lambda: tmux.runtime.screens([app]),
            lambda: tmux.runtime.send(app, "hello", key="a"),
            lambda: tmux.start("app-2"),
        ):
            with pytest.raises(Unavailable, match="install"):
                ask()
    assert tmux.seen(app).program is Probe.ALIVE


def play_tmux(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Put a script named tmux first on PATH; it may `exec $TMUX_BINARY`."""
    folder.mkdir()
    fake = folder / "tmux"
    fake.write_text(f"#!/bin/sh\n{script}\n".replace("$TMUX_BINARY", shutil.which("tmux") or ""))
    fake.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_hanging_server_raises_unavailable(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    play_tmux(monkeypatch, tmp_path / "tools", "exit 124")  # As `timeout` ends, once time is up.
    with pytest.raises(Unavailable, match="did not answer"):
        tmux.runtime.screens(["app-1"])


def test_an_exiting_server_counts_as_empty(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    play_tmux(monkeypatch, tmp_path / "tools", "echo 'no current target' >&2; exit 1")
    assert tmux.runtime.screens(["app-1"]) == {}


def test_a_server_without_permission_raises_unavailable(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    error = "error connecting to tmux.sock (Permission denied)"
    play_tmux(monkeypatch, tmp_path / "tools", f"echo '{error}' >&2; exit 1")
    with pytest.raises(Unavailable, match="Permission denied"):
        tmux.runtime.screens(["app-1"])


def test_a_foreign_tmux_session_does_not_break_the_look(tmux: TmuxStage) -> None:
    app = tmux.start("app-1")
    tmux.tmux(app, "new-session", "-d", "-s", "my own one")
    assert tmux.seen(app).program is Probe.ALIVE


def test_a_folder_with_special_characters_works(tmux: TmuxStage) -> None:
    stage = TmuxStage(tmux.folder / "a #{b} %H 'c' [d];e")
    try:
        app = stage.start("app-1")
        stage.runtime.send(app, "hello", key="a")
        eventually(lambda: stage.received(app) == "hello\n", "the message")
        eventually(lambda: "hello" in stage.runtime.screens([app])[app], "the screen")
        eventually(lambda: "hello" in stage.output("app-1"), "the log")
        stage.runtime.type(app, ("b", "Enter"), "a")
        eventually(lambda: stage.received(app) == "hello\nab\n", "the typed line")
        stage.runtime.stop(app)
        assert stage.runtime.look() == {}
    finally:
        stage.close()


def test_unusable_names_and_folders_are_refused_with_a_remedy(tmux: TmuxStage) -> None:
    with pytest.raises(RuntimeFailure, match=r"'a\.b:c' cannot name"):
        tmux.run("a.b:c", "true")
    with pytest.raises(RuntimeFailure, match="shorter path"):
        Tmux(Options(data=tmux.folder / ("x" * 100)))


def test_a_program_that_ends_during_a_look_has_the_recorded_exit(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = tmux.start("app-1")
    eventually(lambda: supervised.supervisor(tmux.dir(app)), "its start")
    # What tmux before 3.5 prints while it does not know the exit yet.
    unknown = ["1 1000000000  "]
    with monkeypatch.context() as patch:
        patch.setattr(supervised, "started", lambda _: False)
        patch.setattr(tmux.runtime._servers, "run", lambda *_: unknown)
        assert tmux.runtime.look()[app].exit is None, "its supervisor only closed the terminal"
    tmux.exits(app, 3)
    eventually(lambda: tmux.seen(app).exit, "its end")
    at_first, recorded = iter([None]), tmux.runtime._record
    monkeypatch.setattr(tmux.runtime, "_record", lambda name: next(at_first, recorded(name)))
    monkeypatch.setattr(supervised, "started", lambda _: False)
    monkeypatch.setattr(tmux.runtime._servers, "run", lambda *_: unknown)
    end = tmux.runtime.look()[app].exit
    assert end is not None
    assert end.code == 3
