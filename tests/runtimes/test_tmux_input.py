"""Tests of messages and keys in tmux: unchanged, once, and submitted."""

import os
import shutil
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lifecycle.model.status import Probe
from runtimes.base import KEY, Gone, RuntimeFailure
from tests.runtimes.stages import TmuxStage, processes
from tests.world.waiting import eventually

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
    app = tmux.run("app-1", sys.executable, "-c", RAW)
    eventually(lambda: "ready" in tmux.output("app-1"), "the program")
    text = (
        "-dash\t`id` $(id) #{pane_id} #(id) 'q' \"q\" \\ äöü 🎉 ~ %d;\nEnter C-c ;\n"
        + "x" * 160_000
    )
    tmux.runtime.send(app, text, key="a/b 'c'", submit_seconds=submit_seconds)
    eventually((tmux.dir("app-1") / "raw").exists, "the paste")
    eventually(lambda: tmux.seen(app).exit, "its end")
    received = (tmux.dir("app-1") / "raw").read_bytes()
    assert received == b"\x1b[200~" + text.replace("\n", "\r").encode() + b"\x1b[201~\r"


def test_keys_are_pressed_by_name_once_for_each_key(tmux: TmuxStage) -> None:
    app = tmux.start("app-1")
    for key, name in (("a", "y"), ("a", "n"), ("b", "Enter")):
        tmux.runtime.press(app, (name,), key=key)
    eventually(lambda: tmux.received(app) == "y\n", "the line")
    tmux.exits(app, 0)
    eventually(lambda: tmux.seen(app).program is Probe.DEAD, "its end")
    with pytest.raises(Gone, match="app-1"):
        tmux.runtime.press(app, ("y",), key="c")


#: Reads its terminal raw and with bracketed paste, up to Control-D.
TYPED = RAW.replace('b"\\x1b[201~\\r"', 'b"\\x04"')


def test_typed_keys_arrive_unchanged_and_in_order(tmux: TmuxStage) -> None:
    app = tmux.run("app-1", sys.executable, "-c", TYPED)
    eventually(lambda: "ready" in tmux.output("app-1"), "the program")
    text = "-l;äß🎉'\"\\ #{pane_id} $HOME ~%if {x} ; kill-server;"
    tmux.runtime.type(app, text)
    tmux.runtime.type(app, ("Enter", "Up", "Up", "a", "Tab", "BTab", "Escape", "BSpace", "C-c"))
    tmux.runtime.type(app, ("Enter",), "one\n\x1b[201~two;")
    tmux.runtime.type(app, (), "\x1b")
    tmux.runtime.type(app, ("M-;", "S-Up", "C-\\", "C-d"))
    eventually((tmux.dir("app-1") / "raw").exists, "the keys")
    assert (tmux.dir("app-1") / "raw").read_bytes() == b"".join(
        (
            text.encode(),
            b"\r\x1b[A\x1b[Aa\t\x1b[Z\x1b\x7f\x03",
            b"\x1b[200~one\r[201~two;\x1b[201~\r",
            b"\x1b;\x1b[1;2A\x1c\x04",
        )
    )


@pytest.mark.parametrize(
    "key", ["a", " ", "ä", ";", "Enter", "C-c", "C-\\", "C-S-Up", "M-b", "F12"]
)
def test_a_key_is_a_character_or_a_known_name(key: str) -> None:
    assert KEY.fullmatch(key)


@pytest.mark.parametrize(
    "key", ["", "ab", "\n", "a\n", "\x1b", "\x7f", "\x9b", "C-", "-X", "C-ab", "F13"]
)
def test_nothing_else_is_a_key(key: str) -> None:
    assert not KEY.fullmatch(key)


def test_sessions_can_use_the_same_key_at_the_same_time(tmux: TmuxStage) -> None:
    apps = [tmux.start(f"app-{number}") for number in range(4)]

    def tell(app: str) -> None:
        for key in "abc":
            tmux.runtime.send(app, f"{key} for {app}", key=key)

    with ThreadPoolExecutor(len(apps)) as people:
        list(people.map(tell, apps))
    for app in apps:
        own = "".join(f"{key} for {app}\n" for key in "abc")
        eventually(lambda app=app, own=own: tmux.received(app) == own, "all")  # type: ignore[misc]


def test_enter_follows_a_paste_even_if_the_sender_is_killed(tmux: TmuxStage) -> None:
    app = tmux.start("app-1")
    failed: list[RuntimeFailure] = []

    def deliver() -> None:
        try:
            tmux.runtime.send(app, "hello", key="a", submit_seconds=0.5)
        except RuntimeFailure as failure:
            failed.append(failure)

    sender = threading.Thread(target=deliver)
    sender.start()
    eventually(lambda: "hello" in tmux.runtime.screens([app])[app], "the paste")
    socket = os.fsencode(tmux.runtime.attach(app)[3])
    for pid in processes("cmdline", socket, b"load-buffer"):
        os.kill(pid, signal.SIGKILL)
    sender.join()
    assert failed
    tmux.runtime.send(app, "hello", key="a", submit_seconds=0.5)
    eventually(lambda: tmux.received(app), "the Enter")
    tmux.runtime.send(app, "more", key="b")
    eventually(lambda: "more\n" in tmux.received(app), "the second message")
    assert tmux.received(app) == "hello\nmore\n"


def test_what_a_person_types_is_in_no_command_line(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All users of the machine see the arguments of all programs."""
    app = tmux.start("app-1")
    record = f'#!/bin/sh\necho "$*" >>{tmp_path}/arguments\nexec {shutil.which("tmux")} "$@"\n'
    (tmp_path / "tmux").write_text(record)
    (tmp_path / "tmux").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    tmux.runtime.type(app, [*"hush-hush", "Enter"], "a secret ")
    eventually(lambda: tmux.received(app) == "a secret hush-hush\n", "the line")
    arguments = (tmp_path / "arguments").read_text()
    assert "source-file" in arguments
    assert "hush" not in arguments
    assert "secret" not in arguments
