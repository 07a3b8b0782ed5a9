"""Tests of tmux servers that hang, and of terminals whose logs miss output."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lifecycle.model.status import Probe
from runtimes import tmux_servers
from runtimes.base import Unavailable
from runtimes.tmux import Tmux
from tests.runtimes.stages import TmuxStage
from tests.world.waiting import eventually


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have tmux give up after half a second instead of ten."""
    timeout = tmp_path / "timeout"
    timeout.write_text(
        '#!/bin/sh\nshift 3\necho >>"$0.calls"\nexec /usr/bin/timeout -k 1 0.5 "$@"\n'
    )
    timeout.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.fixture
def hung(tmux: TmuxStage) -> Iterator[str]:
    """A run whose tmux server is stopped."""
    app = tmux.start("app-1")
    tmux.prints(app, "words")
    eventually(lambda: tmux.runtime.screens([app]) == {app: "words"}, "its screen")
    eventually(lambda: tmux.output(app) == "words", "its log")
    handle = os.pidfd_open(int(tmux.tmux(app, "display-message", "-p", "#{pid}")))
    signal.pidfd_send_signal(handle, signal.SIGSTOP)
    yield app
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGCONT)
    os.close(handle)


@pytest.mark.usefixtures("soon")
def test_a_stopped_server_does_not_block_its_callers(tmux: TmuxStage, hung: str) -> None:
    """A stopped tmux server keeps the standard output of its clients open after they are killed.

    A caller that waits for the end of a client's output would wait forever.
    """
    failed: list[Unavailable] = []

    def asks() -> None:
        try:
            tmux.runtime.screens([hung])
        except Unavailable as failure:
            failed.append(failure)

    asking = threading.Thread(target=asks, daemon=True)
    asking.start()
    asking.join(30)
    assert "did not answer" in str(failed)
    assert tmux.seen(hung).program is Probe.ALIVE


@pytest.mark.usefixtures("soon")
def test_the_sweep_does_not_ask_a_hanging_server_each_time(
    tmux: TmuxStage, hung: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmux.start("app-2")
    with pytest.raises(Unavailable):
        tmux.runtime.screens([hung])
    asked = (tmp_path / "timeout.calls").read_text()
    assert tmux.runtime.screens([hung], recent=True) in ({}, {hung: "words"})
    assert (tmp_path / "timeout.calls").read_text() == asked
    assert tmux.runtime.screens([hung, other], recent=True)[other] == ""
    monkeypatch.setattr(tmux_servers, "monotonic", lambda: 1e12)
    monkeypatch.setattr("runtimes.tmux.monotonic", lambda: 1e12)
    with pytest.raises(Unavailable):
        tmux.runtime.screens([hung], recent=True)


@pytest.mark.usefixtures("soon")
def test_a_run_whose_server_hangs_can_be_stopped(tmux: TmuxStage, hung: str) -> None:
    server = int(Path(f"/proc/{supervisor(tmux, hung)}/stat").read_text().split()[3])
    tmux.runtime.stop(hung)
    eventually(lambda: not Path(f"/proc/{server}/cmdline").read_bytes(), "the end of the server")
    assert tmux.processes(hung) == []
    assert tmux.runtime.look() == {}
    assert not list(tmux.data.glob("t????????"))


def supervisor(stage: TmuxStage, name: str) -> int:
    """The pid of a run's supervisor, without a question to tmux."""
    found = stage.runtime._supervisor(stage.data / "runs" / name)
    assert found is not None
    return found.pid


def test_only_the_sweep_takes_the_screen_of_an_earlier_capture(tmux: TmuxStage) -> None:
    """An answer that is typed must be typed into what the terminal shows now."""
    app = tmux.start("app-1")
    tmux.prints(app, "Delete the file?")
    log = tmux.dir(app) / "output.log"
    eventually(lambda: log.exists() and log.stat().st_size == 16, "the log")
    assert tmux.runtime.screens([app], recent=True) == {app: "Delete the file?"}
    tmux.tmux(app, "pipe-pane")  # As if the disk were full: the log gets no more.
    tmux.prints(app, " Push it?")
    eventually(
        lambda: tmux.tmux(app, "capture-pane", "-p").strip() == "Delete the file? Push it?",
        "the next question",
    )
    assert tmux.runtime.screens([app]) == {app: "Delete the file? Push it?"}


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "call",
    [
        lambda runtime, app: runtime.type(app, ("y", "Enter")),
        lambda runtime, app: runtime.press(app, ("y", "Enter"), "a"),
        lambda runtime, app: runtime.send(app, "y", "a"),
    ],
    ids=["type", "press", "send"],
)
def test_what_a_hanging_server_did_not_take_is_not_typed_later(
    tmux: TmuxStage, hung: str, call: Callable[[Tmux, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the program may show another dialog, which nobody has answered."""
    server = int(Path(f"/proc/{supervisor(tmux, hung)}/stat").read_text().split()[3])
    with pytest.raises(Unavailable):
        call(tmux.runtime, hung)
    os.kill(server, signal.SIGCONT)
    monkeypatch.undo()  # It answers, even on a busy machine.
    tmux.runtime.type(hung, ("n", "Enter"))
    eventually(lambda: "n\n" in tmux.received(hung), "the next key")
    assert tmux.received(hung) == "n\n"
