"""Authentication as an App."""

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.errors import NotInstalled, Refused
from bot.github.github_app import PERMISSIONS, AppPermission
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.mirror import Mirror
from tests.github.contract.conftest import names, read
from tests.world.faulty_github import FaultyGitHub


def test_an_app_recognises_its_own_comments(app: GitHub, repo: Repository, pull: Pull) -> None:
    assert app.read.me() == "mergewright[bot]"
    for _ in range(2):
        app.write.comment(repo.full_name, pull.number, "Started.", "started:1")
    (remark,) = read(app, pull).pull.comments
    assert (remark.author, remark.own, remark.bot) == ("mergewright[bot]", True, True)


def test_git_authenticates_with_the_password(
    server: FaultyGitHub, github: GitHub, app: GitHub, tmp_path: Path
) -> None:
    repo = server.repository(f"acme/secrets-{next(names)}", private=True)
    repo.permission("wright", "write")
    for name, client in {"token": github, "app": app}.items():
        password = client.git_password(repo.full_name)
        mirror = Mirror(tmp_path / name, repo.clone_url, partial(str, password))
        mirror.refresh()
        assert mirror.head_of("main") == repo.heads["main"]
    with pytest.raises(GitFailure, match="check the token"):
        Mirror(tmp_path / "none", repo.clone_url).refresh()
    with pytest.raises(GitFailure, match="check the token"):
        Mirror(tmp_path / "wrong", repo.clone_url, lambda: "wrong").refresh()


def test_the_token_of_git_allows_nothing_but_git(
    server: FaultyGitHub, app: GitHub, pull: Pull
) -> None:
    repo = pull.repo.full_name
    of_git = Credentials(token=app.git_password(repo))
    with (
        closing(GitHub(f"{server.url}api/v3", of_git)) as client,
        pytest.raises(Refused, match="Resource not accessible by integration"),
    ):
        client.read.labelled_issues(repo, ["agent"])


@pytest.mark.parametrize("level", ["", "none"])
@pytest.mark.parametrize("needed", PERMISSIONS, ids=lambda one: one.name)
def test_every_missing_permission_is_named(
    server: FaultyGitHub, app: GitHub, repo: Repository, needed: AppPermission, level: str
) -> None:
    granted = server.world.apps["mergewright"].permissions
    assert app.read.missing_permissions(repo.full_name) == ()
    before = granted.pop(needed.name)
    if level:
        granted[needed.name] = level
    try:
        (missing_one,) = app.read.missing_permissions(repo.full_name)
    finally:
        granted[needed.name] = before
    assert f"{needed.name}: {needed.level} is missing (it has none)" in missing_one


#: A call that needs each permission.
TAKES: dict[str, Callable[[GitHub, Pull], object]] = {
    "actions": lambda app, pull: app.write.rerun(
        pull.repo.full_name, [pull.check("unit", conclusion="failure", suite="ci").id]
    ),
    "checks": read,
    "contents": lambda app, pull: app.write.delete_branch(
        pull.repo.full_name, pull.head_branch, pull.head
    ),
    "issues": lambda app, pull: app.read.labelled_issues(pull.repo.full_name, ["agent"]),
    "merge_queues": lambda app, pull: app.merges.enqueue(
        pull.repo.full_name, app.merges.target(pull.repo.full_name, pull.number), pull.head
    ),
    "metadata": lambda app, pull: app.read.may_write(pull.repo.full_name, "ann"),
    "pull_requests": lambda app, pull: app.write.make_ready(pull.repo.full_name, pull.number),
    "statuses": read,
}


@pytest.mark.parametrize("needed", PERMISSIONS, ids=lambda one: one.name)
def test_every_permission_is_needed(
    server: FaultyGitHub, app: GitHub, pull: Pull, needed: AppPermission
) -> None:
    manifest: dict[str, str] = {one.name: one.level for one in PERMISSIONS}
    pull.repo.protect("main", queue=True)
    known = server.world.apps["mergewright"]
    before, known.permissions = known.permissions, manifest | {needed.name: "none"}
    try:
        with pytest.raises(Refused, match="Resource not accessible by integration"):
            TAKES[needed.name](app, pull)
        known.permissions = manifest
        TAKES[needed.name](app, pull)
    finally:
        known.permissions = before


def test_read_permission_is_missing_where_write_is_needed(
    server: FaultyGitHub, app: GitHub, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted = server.world.apps["mergewright"].permissions
    monkeypatch.setitem(granted, "contents", "read")
    monkeypatch.setitem(granted, "statuses", "write")
    (missing_one,) = app.read.missing_permissions(repo.full_name)
    assert "contents: write is missing (it has read)" in missing_one


def test_a_token_without_push_access_is_reported(
    server: FaultyGitHub, github: GitHub, repo: Repository
) -> None:
    assert github.read.missing_permissions(repo.full_name) == ()
    repo.permission("wright", "read")
    assert github.read.missing_permissions(repo.full_name) == ("the account has no write access",)


@pytest.mark.parametrize(
    ("scopes", "lacks"),
    [
        ("", True),
        ("read:org, notifications", True),
        ("repo:status, repo_deployment", True),
        ("public_repo, read:org", False),
        ("read:org, repo, workflow", False),
    ],
)
def test_a_classic_token_without_a_write_scope_is_reported(
    server: FaultyGitHub, repo: Repository, scopes: str, lacks: bool
) -> None:
    server.user("wright", token="classic", scopes=scopes)
    client = GitHub(f"{server.url}api/v3", Credentials(token="classic"))
    missing = ("the token may only read: it lacks the scope `repo`",) if lacks else ()
    assert client.read.missing_permissions(repo.full_name) == missing
    client.close()


def test_a_suspended_app_waits_until_it_is_unsuspended(
    server: FaultyGitHub, app: GitHub, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = server.world.apps["mergewright"]
    monkeypatch.setattr(known, "suspended", True)
    with pytest.raises(NotInstalled, match="unsuspend it") as failure:
        app.read.repository(repo.full_name)
    assert failure.value.at is not None
    known.suspended = False
    assert app.read.repository(repo.full_name).default_branch == "main"
    known.suspended = True  # The token created meanwhile is not used.
    with pytest.raises(NotInstalled, match="Unsuspend"):
        app.read.repository(repo.full_name)


def test_an_uninstalled_app_waits_until_it_is_installed(
    server: FaultyGitHub, app: GitHub, repo: Repository
) -> None:
    known = server.world.apps["mergewright"]
    assert app.read.repository(repo.full_name).default_branch == "main"
    server.uninstall(known)
    try:
        with pytest.raises(NotInstalled, match="install it"):
            app.read.repository(repo.full_name)
    finally:
        known.owners = None
    assert app.read.repository(repo.full_name).default_branch == "main"


def test_an_installation_of_another_owner_is_ignored(
    server: FaultyGitHub, key: str, repo: Repository
) -> None:
    number = str(server.world.apps["mergewright"].id)
    credentials = Credentials(app_id=number, private_key=key, owners=("ACME",))
    others = Credentials(app_id=number, private_key=key, owners=("umbrella",))
    with closing(GitHub(f"{server.url}api/v3", credentials)) as client:
        assert client.read.repository(repo.full_name).default_branch == "main"
    with (
        closing(GitHub(f"{server.url}api/v3", others)) as client,
        pytest.raises(Refused, match=r"acme is not in github\.allowed-owners"),
    ):
        client.read.repository(repo.full_name)


def test_the_repositories_of_each_installation_are_listed(
    server: FaultyGitHub, key: str, repo: Repository
) -> None:
    known, other = server.world.apps["mergewright"], server.repository("umbra/tools")
    credentials = Credentials(app_id=str(known.id), private_key=key, owners=("acme", "zeta"))
    with closing(GitHub(f"{server.url}api/v3", credentials)) as client:
        server.repository("zeta/gears").archive(by="zeta")
        found = client.installations.repositories()
        assert repo.full_name in [one.full_name for one in found["acme"] or ()]
        seen = [(one.full_name, one.archived, one.fork) for one in found["zeta"] or ()]
        assert seen == [("zeta/gears", True, False)]
        assert found[other.owner.login] is None, "its owner is not allowed"
        server.install_on(known, repo, installed=False)
        now = client.installations.repositories()["acme"] or []
        assert {one.id for one in found["acme"] or ()} - {one.id for one in now} == {repo.id}
        assert not repo.allows(known.bot.login, "write")
        server.install_on(known, repo)
        server.suspend(known)
        assert client.installations.repositories()["acme"] is None
        server.suspend(known, suspended=False)
