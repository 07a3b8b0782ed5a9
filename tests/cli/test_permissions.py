"""The doctor's checks of GitHub against the stand-in."""

import json
import os
import re
from collections.abc import Iterator

import pytest

from bot.demo.github.world import App
from bot.github.github_app import PERMISSIONS, AppPermission
from config.repository import PATH
from tests.cli.conftest import CommandLine, Deployment
from tests.world.app_key import PRIVATE, PUBLIC
from tests.world.faulty_github import FaultyGitHub


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyGitHub]:
    with FaultyGitHub(tmp_path_factory.mktemp("github")) as server:
        server.repository("acme/widgets")
        yield server


@pytest.fixture
def app(github: FaultyGitHub, deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> App:
    """The App of the installation."""
    app = github.app("mergewright", PUBLIC)
    with deployment.file.open("a") as file:
        file.write(
            f'\n[github]\napi-url = "{github.url}api/v3/"\napp-id = "{app.id}"\n'
            'allowed-owners = ["acme"]\nprivate-key-file = "app.pem"\n'
        )
    key = deployment.file.with_name("app.pem")
    key.touch(mode=0o600)
    key.write_text(PRIVATE)
    monkeypatch.setenv("COLUMNS", "400")  # A finding on one line.
    for name in [one for one in os.environ if one.startswith("MERGEWRIGHT_")]:
        monkeypatch.delenv(name)
    return app


def finding(mergewright: CommandLine, name: str) -> str:
    """One result of doctor: severity, text and remedy."""
    printed = json.loads(mergewright("doctor", "--json").out)
    return next(
        f"{one['severity']} {one['says']} -> {one['remedy']}"
        for one in printed
        if one["name"] == name
    )


def permissions(mergewright: CommandLine) -> str:
    return finding(mergewright, "permissions")


def test_an_app_with_all_permissions_passes(app: App, mergewright: CommandLine) -> None:
    assert permissions(mergewright).startswith("ok complete")


@pytest.mark.parametrize("needed", PERMISSIONS, ids=lambda one: one.name)
def test_each_missing_permission_is_named_with_its_purpose(
    app: App, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch, needed: AppPermission
) -> None:
    monkeypatch.delitem(app.permissions, needed.name)
    printed = permissions(mergewright)
    assert f"acme/widgets: the permission {needed.name}: {needed.level} is missing" in printed
    assert needed.why in printed
    assert "grant it in the App's settings" in printed


def test_missing_events_are_named(
    app: App, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert finding(mergewright, "events") == "ok the App is subscribed to all events -> "
    monkeypatch.setattr(app, "events", tuple({*app.events} - {"issue_comment", "push"}))
    printed = finding(mergewright, "events")
    assert printed.startswith(
        "warn the App is not subscribed to\nacme/widgets: issue_comment, push -> subs"
    )


def test_an_app_slug_that_differs_from_the_app_is_a_warning(
    app: App, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "are ignored" not in " ".join(mergewright("doctor").out.split())
    monkeypatch.setattr(app, "slug", "acme-bot")
    printed = " ".join(mergewright("doctor").out.split())
    assert "commands to @acme-bot are ignored" in printed
    assert 'set github.app-slug = "acme-bot"' in printed


def test_a_suspended_app_fails(
    app: App, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "suspended", True)
    printed = "fail acme/widgets: the GitHub App's installation is suspended: unsuspend it. -> "
    assert permissions(mergewright) == printed
    assert finding(mergewright, "GitHub") == printed


def test_permissions_of_the_fork_are_checked_too(
    app: App, deployment: Deployment, mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = deployment.file.read_text()
    forked = '[projects.widgets]\npush-to = "fork"\nfork = "wright/widgets"'
    deployment.file.write_text(text.replace("[projects.widgets]", forked))
    printed = "fail wright/widgets: the GitHub App is not installed there: install it. -> "
    assert permissions(mergewright) == printed


def test_required_signatures_are_checked_against_each_repositorys_merge_method(
    app: App, github: FaultyGitHub, deployment: Deployment, mergewright: CommandLine
) -> None:
    for name, allowed, printed in (
        ("all", {"merge", "squash", "rebase"}, ""),
        ("printed", {"merge", "squash"}, 'merge-method = "merge"'),
        ("broken", {"merge", "squash"}, 'merge-method = "no"'),
        ("forbidden", {"rebase"}, ""),
    ):
        repo = github.repository(f"acme/{name}", {PATH: f"[policy]\n{printed}\n"})
        repo.protect("main", signatures=True)
        repo.merge_methods = allowed
        with deployment.file.open("a") as file:
            file.write(f'[projects.{name}]\nrepository = "acme/{name}"\nagent = "shell"\n')
    severity, *findings = re.split(r"\s(?=acme/)", finding(mergewright, "signatures"))
    assert severity == "fail"
    ways = {"all": "squash", "printed": "merge", "broken": "squash", "forbidden": "rebase"}
    for line, (name, way) in zip(findings, ways.items(), strict=True):
        assert line.startswith(f"acme/{name}: main requires signed commits (merge method: {way})")
