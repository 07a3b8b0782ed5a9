"""`scripts/test-agents`: a failed or skipped trial is never reported as passed."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Never

import pytest

from bot.demo.programs import MODELS, cached
from scripts import engines
from scripts.agents import __main__ as trials
from scripts.agents import install as installing
from scripts.agents.install import CannotRun, Release, install, releases


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    """Run a trial of Codex with these steps."""
    monkeypatch.setattr(trials, "install", lambda name, release: tmp_path / name)
    monkeypatch.setattr(trials, "isolate", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(trials, "Stage", _Stage)
    monkeypatch.setattr(trials, "_FOLDER", str(tmp_path))

    def tried(*words: str, **steps: Callable[[object], None]) -> tuple[int, list[dict[str, Any]]]:
        monkeypatch.setattr(trials, "STEPS", steps)
        out = tmp_path / "out.json"
        monkeypatch.setattr(sys, "argv", ["x", "--only", "codex", "--json", str(out), *words])
        code = trials.main()
        return code, json.loads(out.read_text()) if out.exists() else []

    return tried


class _Stage:
    def __init__(self, folder: Path, model: object) -> None:
        self.folder = folder

    def close(self) -> None:
        """Nothing was started."""


def goes_well(trial: object) -> None:
    """Nothing is wrong."""


def goes_wrong(trial: object) -> None:
    raise RuntimeError("it is all wrong")


def test_every_agent_of_the_demo_has_a_trial() -> None:
    assert releases().keys() == MODELS.keys()


def test_a_trial_passes_if_every_step_passes(
    run: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, (result,) = run(start=goes_well, exit=goes_well)
    assert code == 0
    assert (result["agent"], result["failed"]) == ("codex", "")
    assert result["steps"].keys() == {"start", "exit"}
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["agent", "version", "start", "exit"]
    assert row.split()[:2] == ["codex", releases()["codex"].version]


def test_a_failed_step_is_named_and_ends_the_trial(
    run: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, (result,) = run(start=goes_well, write=goes_wrong, exit=goes_well)
    assert code == 1
    assert (result["failed"], result["why"]) == ("write", "it is all wrong")
    assert capsys.readouterr().out.splitlines()[1].split()[3:] == ["FAILED", "-"]


def test_a_selected_step_ends_the_trial(run: Callable[..., Any]) -> None:
    code, (result,) = run("--step", "start", start=goes_well, write=goes_wrong)
    assert (code, *result["steps"]) == (0, "start")


def test_a_skipped_trial_is_not_a_pass(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nobody_may() -> None:
        raise CannotRun("it is a sandbox")

    monkeypatch.setattr(trials, "isolate", nobody_may)
    assert run(start=goes_well) == (3, [])
    assert capsys.readouterr().err == "not tried: it is a sandbox\n"


def test_the_step_in_docker_has_an_engine_of_its_own(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    @contextmanager
    def engine(name: str) -> Iterator[None]:
        started.append(name)
        yield
        started.remove(name)

    def docker(trial: object) -> None:
        assert started == ["docker"]

    monkeypatch.setattr(engines, "installed_engine", engine)
    code, (result,) = run(demo=goes_well, docker=docker)
    assert (code, *result["steps"], *started) == (0, "demo", "docker")
    code, (result,) = run("--step", "demo", demo=goes_well, docker=goes_wrong)
    assert (code, *result["steps"]) == (0, "demo")


@pytest.mark.parametrize(("demo", "code"), [(goes_well, 3), (goes_wrong, 1)])
def test_without_docker_the_other_steps_run_and_are_not_a_pass(
    run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    demo: Callable[[object], None],
    code: int,
) -> None:
    def missing(name: str) -> Never:
        raise engines.CannotRun("not installed: dockerd")

    monkeypatch.setattr(engines, "installed_engine", missing)
    found, (result,) = run(start=goes_well, demo=demo, docker=goes_wrong)
    assert found == code
    assert "docker" not in (*result["steps"], result["failed"])
    reason = "not tried: the step docker: not installed: dockerd\n"
    assert capsys.readouterr().err.endswith(reason)


def test_a_trial_without_permission_fetches_nothing(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(trials, "install", lambda name, release: fetched.append(name))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run(start=goes_well) == (3, [])
    assert "run it as root" in capsys.readouterr().err
    assert fetched == []


#: Of "the package".
_INTEGRITY = (
    "sha512-jjb8r/nhhANO0PV22GZdh5epVe5w5CrCN0r9d4Jm"
    "R/IAZmgxqikDxLPfJASfN5iLXv+b/bNMcFhzn76iBs5tug=="
)


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that the installation runs. A fake npm "downloads" the text "the package"."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    commands: list[list[str]] = []

    def run(command: list[str]) -> None:
        commands.append(command)
        if command[1] == "pack":
            (cached("codex", "1.2.3") / "codex.tgz").write_text("the package")

    monkeypatch.setattr(installing, "_run", run)
    return commands


def test_a_program_is_fetched_once_and_an_incomplete_one_again(ran: list[list[str]]) -> None:
    (cached("codex", "1.2.3") / "lib").mkdir(parents=True)  # Of an interrupted installation.
    release = Release(version="1.2.3", npm="codex-package", integrity=_INTEGRITY)
    assert install("codex", release) == cached("codex", "1.2.3") / "bin" / "codex"
    archive = str(cached("codex", "1.2.3") / "codex.tgz")
    assert [command[-1] for command in ran] == ["codex-package@1.2.3", archive]
    assert not (cached("codex", "1.2.3") / "lib").exists()
    install("codex", release)
    assert len(ran) == 2


def test_a_package_with_another_hash_is_not_installed(ran: list[list[str]]) -> None:
    release = Release(version="1.2.3", npm="codex-package", integrity="sha512-other")
    for _ in range(2):
        with pytest.raises(CannotRun, match="has another hash"):
            install("codex", release)
    assert [command[1] for command in ran] == ["pack", "pack"]


def test_every_npm_package_has_its_hash() -> None:
    assert [name for name, one in releases().items() if one.npm and not one.integrity] == []


def test_without_a_network_the_failure_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRun, match="npm cannot run"):
        install("codex", Release(version="1.2.3", npm="codex-package"))
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho no route to anywhere\nexit 1\n")
    npm.chmod(0o755)
    with pytest.raises(CannotRun, match="no route to anywhere"):
        install("codex", Release(version="1.2.3", npm="codex-package"))
