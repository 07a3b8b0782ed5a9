"""Tests of messages and keys in tmux: unchanged, once, and submitted."""

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lifecycle.model.status import Probe
from runtimes.base import Gone, RuntimeFailure
from tests.runtimes.stages import TmuxStage, processes, until

#: Reads its terminal raw and with bracketed paste, as agents do, up to the Enter after a paste.
RAW = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"\\x1b[?2004hready")
received = b""
while not received.endswith(b"\\x1b[201~\\r"):
    received += os.read(0, 65536)
open("raw", "wb").write(received)
"""


@pytest.mark.parametrize("submit_seconds", [0.0, 0.05])
def test_hostile_text_arrives_unchanged_in_one_paste(
    tmux: TmuxStage, submit_seconds: float
) -> None:
    handle = tmux.run("app-1", sys.executable, "-c", RAW)
    until(lambda: "ready" in tmux.output("app-1"), "the program")
    text = (
        "-dash\t`id` $(id) #{pane_id} #(id) 'q' \"q\" \\ äöü 🎉 ~ %d;\nEnter C-c ;\n"
        + "x" * 160_000
    )
    tmux.runtime.send(handle, text, key="a/b 'c'", submit_seconds=submit_seconds)
    until((tmux.dir("app-1") / "raw").exists, "the paste")
    until(lambda: tmux.seen(handle).exit, "its end")
    received = (tmux.dir("app-1") / "raw").read_bytes()
    assert received == b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~\r"


def test_keys_are_pressed_by_name_once_for_each_key(tmux: TmuxStage) -> None:
    handle = tmux.start("app-1")
    for key, name in (("a", "y"), ("a", "n"), ("b", "Enter")):
        tmux.runtime.press(handle, (name,), key=key)
    until(lambda: tmux.received(handle) == "y\n", "the line")
    tmux.exits(handle, 0)
    until(lambda: tmux.seen(handle).program is Probe.DEAD, "its end")
    with pytest.raises(Gone, match="app-1"):
        tmux.runtime.press(handle, ("y",), key="c")


def test_sessions_can_use_the_same_key_at_the_same_time(tmux: TmuxStage) -> None:
    handles = [tmux.start(f"app-{number}") for number in range(4)]

    def tell(handle: str) -> None:
        for key in "abc":
            tmux.runtime.send(handle, f"{key} for {handle}", key=key)

    with ThreadPoolExecutor(len(handles)) as people:
        list(people.map(tell, handles))
    for handle in handles:
        own = "".join(f"{key} for {handle}\n" for key in "abc")
        until(lambda handle=handle, own=own: tmux.received(handle) == own, "all")  # type: ignore[misc]


def test_enter_follows_a_paste_even_if_the_sender_is_killed(tmux: TmuxStage) -> None:
    handle = tmux.start("app-1")
    failed: list[RuntimeFailure] = []

    def deliver() -> None:
        try:
            tmux.runtime.send(handle, "hello", key="a", submit_seconds=0.5)
        except RuntimeFailure as failure:
            failed.append(failure)

    sender = threading.Thread(target=deliver)
    sender.start()
    until(lambda: "hello" in tmux.runtime.screens([handle])[handle], "the paste")
    socket = os.fsencode(tmux.data / "tmux.sock")
    for pid in processes("cmdline", socket, b"load-buffer"):
        os.kill(pid, signal.SIGKILL)
    sender.join()
    assert failed
    tmux.runtime.send(handle, "hello", key="a", submit_seconds=0.5)
    until(lambda: tmux.received(handle), "the Enter")
    tmux.runtime.send(handle, "more", key="b")
    until(lambda: "more\n" in tmux.received(handle), "the second message")
    assert tmux.received(handle) == "hello\nmore\n"
