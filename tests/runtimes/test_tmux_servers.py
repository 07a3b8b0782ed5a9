"""Tests that each run has a tmux server of its own, whose failures concern no other run."""

import os
import resource
import shutil
import sys
from pathlib import Path

import pytest

from lifecycle.model.status import Probe
from tests.runtimes.stages import TmuxStage
from tests.world.waiting import eventually


def test_output_that_fills_tmux_with_titles_ends_its_own_run_alone(tmux: TmuxStage) -> None:
    """With every 7 bytes that push a title of 0.9 MB, tmux 3.3a needs 0.9 MB more memory."""
    other = tmux.start("app-2")
    titles = "b'\\x1b]2;' + b'x' * 900000 + b'\\x07' + b'\\x1b[22;0t' * 2000"
    attack = f"import sys, time; sys.stdout.buffer.write({titles}); sys.stdout.flush()"
    app = tmux.run("app-1", sys.executable, "-c", f"{attack}; time.sleep(1000)")
    eventually(lambda: tmux.seen(app).exit, "the end of the run")
    assert tmux.seen(app).runtime is Probe.DEAD
    assert tmux.seen(other).program is Probe.ALIVE
    tmux.prints(other, "as before")
    eventually(lambda: tmux.runtime.screens([other]) == {other: "as before"}, "the other screen")


def test_the_limit_of_a_terminals_memory_is_not_one_of_its_program(tmux: TmuxStage) -> None:
    tmux.shell("app-1", "ulimit -S -d; exec sleep 1000")
    eventually(lambda: tmux.output("app-1"), "the limit")
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    expected = "unlimited" if most == resource.RLIM_INFINITY else str(most // 1024)
    assert tmux.output("app-1").strip() == expected


def test_a_hanging_server_hides_no_other_screen(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hung, other = tmux.start("app-1"), tmux.start("app-2")
    tmux.prints(other, "words")
    eventually(lambda: tmux.runtime.screens([other]) == {other: "words"}, "its screen")
    fake = tmp_path / "tmux"
    hangs = f'case "$*" in *{Path(tmux.runtime.attach(hung)[3]).name}*) exit 124; esac'
    fake.write_text(f'#!/bin/sh\n{hangs}\nexec {shutil.which("tmux")} "$@"\n')
    fake.chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        assert tmux.runtime.screens([hung, other]) == {other: "words"}
        assert tmux.seen(hung).program is Probe.ALIVE
