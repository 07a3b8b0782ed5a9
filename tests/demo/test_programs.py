"""The demo finds and configures the agents' programs."""

import tomllib
from pathlib import Path

import msgspec
import pytest

from bot.demo.programs import MODELS, SCRIPTED, cached, found, lacking, table
from config.settings import AgentTypeSettings
from runtimes.agents import AGENTS


@pytest.fixture(autouse=True)
def nothing_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def install(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(0o755)
    return path


def test_the_demo_covers_every_agent_except_shell() -> None:
    assert MODELS.keys() == AGENTS.keys() - {"shell"}


def test_a_program_is_found_on_path_or_in_the_cache(tmp_path: Path) -> None:
    assert found("codex") is None
    fetched = install(cached("codex", "1.2.3") / "bin" / "codex")
    assert found("codex") == fetched
    assert found("claude") is None
    usual = install(tmp_path / "bin" / "codex")
    assert found("codex") == usual


@pytest.mark.parametrize("program", MODELS)
def test_a_missing_program_is_reported_with_its_remedy(program: str) -> None:
    (problem,) = lacking(program, SCRIPTED)
    assert f"scripts/test-agents --only {program}" in problem


def test_a_real_model_requires_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "bin" / "gemini")
    assert lacking("gemini", SCRIPTED) == []
    (problem,) = lacking("gemini", "")
    assert "GEMINI_API_KEY" in problem
    monkeypatch.setenv("GEMINI_API_KEY", "a key")
    assert lacking("gemini", "") == []


@pytest.mark.parametrize("model", [SCRIPTED, "acme/large"])
@pytest.mark.parametrize("program", MODELS)
def test_the_bot_accepts_the_generated_configuration(
    program: str, model: str, tmp_path: Path
) -> None:
    place = install(tmp_path / "bin" / program)
    written = tomllib.loads(table(program, model, "http://127.0.0.1:1"))["agent-types"][program]
    kind = msgspec.convert(written, AgentTypeSettings)
    assert (kind.program, kind.command) == (program, (str(place),))
    scripted = model == SCRIPTED
    assert kind.endpoint == ("http://127.0.0.1:1" if scripted else "")
    assert bool(kind.key) == scripted
    assert kind.model == (MODELS[program] if scripted else model)
    assert set(AGENTS[program].login_variables).isdisjoint(kind.pass_env) == scripted
