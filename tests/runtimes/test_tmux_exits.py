"""Tests of the exit codes that a real tmux reports."""

import sys

import pytest

from lifecycle.model.status import Probe
from runtimes.tmux_servers import TmuxServers
from tests.runtimes.stages import TmuxStage
from tests.world.waiting import eventually


def test_a_program_that_cannot_be_run_exits_with_127_and_a_reason(tmux: TmuxStage) -> None:
    app = tmux.run("app-1", "no-such-program")
    eventually(lambda: tmux.seen(app).exit, "its end")
    end = tmux.seen(app).exit
    assert end is not None
    assert end.code == 127
    assert "cannot run ['no-such-program']" in end.tail
    assert "No such file or directory" in end.tail


def test_tmux_reports_the_exit_of_a_supervisor_that_cannot_run(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    app = tmux.run("app-1", "true")

    def code() -> int | None:
        end = tmux.seen(app).exit
        return end.code if end else None

    eventually(lambda: code() == 1, "tmux to know")
    assert tmux.seen(app).program is Probe.DEAD


def test_tmux_is_made_to_collect_an_exit_that_it_missed(
    tmux: TmuxStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    app, run, collected = tmux.run("app-1", "true"), TmuxServers.run, False

    def missed(servers: TmuxServers, name: str, *args: str) -> list[str]:
        nonlocal collected
        collected = collected or args[0] == "run-shell"
        lines = run(servers, name, *args)
        unknown = args[0] == "list-panes" and not collected
        return [f"{line.rsplit(' ', 2)[0]}  " for line in lines] if unknown else lines

    monkeypatch.setattr(TmuxServers, "run", missed)
    eventually(lambda: (end := tmux.seen(app).exit) and end.code == 1, "the exit code")
