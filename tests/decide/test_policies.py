"""The policy of a repository: its own file can restrict it, and keep the bot from writing there."""

import json
from pathlib import Path
from typing import Any

import pytest

from bot.app.application import App
from bot.decide.policies import Policies
from bot.github.pulls import login_of
from bot.github.shapes import Actor
from bot.github.write_access import WriteAccess
from bot.intake.dry_run import Effect, WebhookFile, effects
from bot.intake.inbox import Inbox
from bot.store import Configuration
from config.load import Secrets
from config.settings import ProjectSettings, ServerSettings, Settings
from lifecycle.model.policy import Mode, Policy
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


def test_a_project_has_its_own_policy_and_its_file_narrows_that_one(bench: Bench) -> None:
    own = Policy(mode=Mode.MERGE, session_usd=2)
    projects = {
        "widgets": ProjectSettings(repository=REPOSITORY, policy=own),
        "gears": ProjectSettings(repository="a/gears"),
    }
    policies = Policies(bench.store, projects, Policy(session_usd=9))
    assert policies.of("widgets") == own
    assert policies.of("gears") == Policy(session_usd=9)
    wider = "[policy]\nsession-usd = 3\ndraft = true\n"
    policies.apply(Configuration(repository=REPOSITORY, blob="b", valid=wider))
    found = policies.of("widgets")
    assert (found.mode, found.session_usd, found.draft) == ("merge", 2, True)


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
    assert "policy.session-usd = 4.0: expected 3" in caplog.text


def test_a_kept_file_that_cannot_be_parsed_any_more_is_ignored(bench: Bench) -> None:
    kept = Configuration(repository=REPOSITORY, blob="b", valid="[policy]\ngone = 1\n")
    bench.store.configurations.set(kept)
    policies = Policies(bench.store, {"widgets": ProjectSettings(repository=REPOSITORY)}, Policy())
    assert policies.of("widgets") == Policy()


#: GitHub's logins of two bots: with and without the suffix, and Copilot's by REST and by GraphQL.
BOTS = {
    "ci-bot[bot]": ("ci-bot", "ci-bot[bot]", "CI-Bot[bot]"),
    "Copilot": ("Copilot", "copilot[bot]", "copilot-pull-request-reviewer[bot]"),
}


@pytest.mark.parametrize(
    ("login", "listed"), [(login, name) for login, names in BOTS.items() for name in names]
)
def test_a_listed_bot_is_recognised_by_webhook_query_and_policy(
    bench: Bench, login: str, listed: str
) -> None:
    bench.scenario.session()
    projects = {"widgets": ProjectSettings(repository=REPOSITORY)}
    policies = Policies(bench.store, projects, Policy(bots=(listed,)))
    webhook = _a_bot_says("/mergewright pause", login)
    inbox = Inbox(bench.store, [REPOSITORY], lambda: None, policies.is_listed)
    (command,) = inbox.interpret(webhook.event, webhook.body)[1]
    github: Any = bench.github
    people = WriteAccess(github, bench.scenario.clock, policies.is_listed)
    assert people.may_command(REPOSITORY, command.actor)
    assert not people.may_write(REPOSITORY, command.actor)
    for spelled in (name for names in BOTS.values() if listed in names for name in names):
        queried = login_of(Actor(typename="Bot", login=spelled.removesuffix("[bot]")))
        assert people.may_command(REPOSITORY, queried)
        assert policies.of("widgets").lists(queried)


@pytest.mark.parametrize("login", [name for names in BOTS.values() for name in names])
def test_a_person_with_the_name_of_a_listed_bot_is_not_that_bot(bench: Bench, login: str) -> None:
    login = login.removesuffix("[bot]")
    projects = {"widgets": ProjectSettings(repository=REPOSITORY)}
    policies = Policies(bench.store, projects, Policy(bots=tuple(BOTS)))
    webhook = _a_bot_says("/mergewright pause", login, "User")
    inbox = Inbox(bench.store, frozenset([REPOSITORY]), lambda: None, policies.is_listed)
    (command,) = inbox.interpret(webhook.event, webhook.body)[1]
    assert not policies.is_listed(REPOSITORY, command.actor)
    assert not policies.is_listed(REPOSITORY, login_of(Actor(typename="User", login=login)))


def _effects(bench: Bench, policies: Policies) -> list[Effect]:
    webhook = _a_bot_says("/mergewright pause")
    inbox = Inbox(bench.store, [REPOSITORY], lambda: None, policies.is_listed)
    return effects(bench.store, inbox, webhook)


def _a_bot_says(text: str, login: str = "ci-bot[bot]", type: str = "Bot") -> WebhookFile:
    body = {
        "action": "created",
        "repository": {"id": 1, "full_name": REPOSITORY},
        "issue": {"number": 12},
        "comment": {
            "id": 7,
            "created_at": "2026-11-20T10:00:00Z",
            "body": text,
            "user": {"login": login, "type": type},
        },
    }
    return WebhookFile(event="issue_comment", body=json.dumps(body).encode())
