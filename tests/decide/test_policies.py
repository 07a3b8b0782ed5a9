"""Policies: what a repository's file narrows, and what silences a repository."""

import json
from pathlib import Path

import pytest

from bot.app.application import App
from bot.decide.policies import Policies
from bot.intake.dry_run import Effect, WebhookFile, effects
from bot.intake.inbox import Inbox
from bot.store import Configuration
from config.load import Secrets
from config.settings import ProjectSettings, ServerSettings, Settings
from lifecycle.model.policy import Policy
from tests.harness.observers import REPOSITORY, Bench

SILENT = Configuration(repository=REPOSITORY, blob="b", valid='[policy]\nmode = "observe"\n')
DEAF = Configuration(repository=REPOSITORY, blob="b", valid="[policy]\nbots = []\n")


def test_an_observed_or_frozen_repository_is_silenced(tmp_path: Path) -> None:
    projects = {
        "widgets": ProjectSettings(repository=REPOSITORY),
        "gears": ProjectSettings(repository="a/gears"),
    }
    settings = Settings(
        server=ServerSettings(port=0, data=str(tmp_path / "data")), projects=projects
    )
    app = App(settings, Secrets(token="t"))
    try:
        assert not app.wiring.policies.is_silenced(REPOSITORY)
        assert app.wiring.policies.apply(SILENT)
        assert app.wiring.policies.is_silenced(REPOSITORY)
        assert not app.wiring.policies.is_silenced("a/gears")
        app.wiring.store.freezes.add("project:gears", "ann")
        assert app.wiring.policies.is_silenced("a/gears")
    finally:
        app.stop()


def test_commands_of_a_bot_that_the_repository_does_not_list_are_ignored(bench: Bench) -> None:
    bench.scenario.session()
    projects = {"widgets": ProjectSettings(repository=REPOSITORY)}
    policies = Policies(bench.store, projects, Policy(bots=("ci-bot",)))
    asked = Effect(what="@ci-bot[bot] asks: pause", session="widgets-12")
    assert asked in _effects(bench, policies)
    assert policies.is_listed(REPOSITORY, "ci-bot[bot]")
    assert policies.apply(DEAF)
    assert asked not in _effects(bench, policies)
    assert not policies.is_listed(REPOSITORY, "ci-bot[bot]")


def test_the_last_valid_file_is_in_force_after_a_restart(bench: Bench) -> None:
    projects = {
        "widgets": ProjectSettings(repository=REPOSITORY),
        "gears": ProjectSettings(repository="a/gears"),
    }
    bench.store.configurations.set(SILENT)
    policies = Policies(bench.store, projects, Policy())
    assert (policies.of("widgets").mode, policies.of("gears").mode) == ("observe", "propose")


def test_a_kept_setting_that_the_server_no_longer_allows_is_ignored_alone(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    said = '[policy]\nmode = "observe"\nsession-usd = 4\nprotected-paths = ["ci/**"]\n'
    bench.store.configurations.set(Configuration(repository=REPOSITORY, blob="b", valid=said))
    server = Policy(session_usd=3)
    policy = Policies(bench.store, {"widgets": ProjectSettings(repository=REPOSITORY)}, server).of(
        "widgets"
    )
    assert (policy.mode, policy.session_usd) == ("observe", 3)
    assert "ci/**" in policy.protected_paths
    assert f"{REPOSITORY}: " in caplog.text
    assert "policy.session-usd = 4.0: the server allows no more than 3" in caplog.text


def test_a_kept_file_that_cannot_be_parsed_any_more_is_ignored(bench: Bench) -> None:
    kept = Configuration(repository=REPOSITORY, blob="b", valid="[policy]\ngone = 1\n")
    bench.store.configurations.set(kept)
    policies = Policies(bench.store, {"widgets": ProjectSettings(repository=REPOSITORY)}, Policy())
    assert policies.of("widgets") == Policy()


def _effects(bench: Bench, policies: Policies) -> list[Effect]:
    repositories = frozenset(policies.repositories.values())
    webhook = _a_bot_says("/mergewright pause")
    inbox = Inbox(bench.store, repositories, lambda: None, policies.is_bot_listed)
    return effects(bench.store, inbox, webhook)


def _a_bot_says(text: str) -> WebhookFile:
    body = {
        "action": "created",
        "repository": {"id": 1, "full_name": REPOSITORY},
        "issue": {"number": 12},
        "comment": {
            "id": 7,
            "created_at": "2026-11-20T10:00:00Z",
            "body": text,
            "user": {"login": "ci-bot[bot]", "type": "Bot"},
        },
    }
    return WebhookFile(event="issue_comment", body=json.dumps(body).encode())
