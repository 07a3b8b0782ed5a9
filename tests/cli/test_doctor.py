"""`mergewright doctor`: every check with its remedy."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import respx

from bot.cli.doctor import OF_GITHUB
from bot.store import InstalledProject, Store
from runtimes.isolation.bubblewrap import Bubblewrap
from runtimes.isolation.containers import Containers
from tests.cli.conftest import API, GRAPHQL, CommandLine, Deployment, LineTail, printed
from tests.world import signing_key
from tests.world.databases import empty_database


def test_a_complete_installation_has_no_failures(lines: LineTail) -> None:
    found = lines()
    assert found["configuration"] == "ok projects: widgets"
    assert found["git"] == "ok git version 2.39.5"
    assert found["tmux"] == "ok tmux 3.5a"
    assert found["data folder"].endswith("writable and private")
    assert found["GitHub"] == f"ok {API}: signed in as mergewright-bot"
    assert found["clock"] == "ok in sync with GitHub"
    assert found["agents"].startswith("ok shell /")
    assert found["isolation"].startswith("warn none: Agents run with all rights of the bot's user")
    assert found["webhook"] == "ok every repository sends to https://bot.example/webhooks/github"
    assert found["labels"] == "ok every repository has its label"
    assert found["port"] == "ok any free port"
    assert found["public URL"] == "ok https://bot.example/ leads to this server"
    assert [name for name, text in found.items() if text.startswith("fail")] == []


def test_workflows_that_give_secrets_to_branches_are_listed(
    lines: LineTail, github: respx.MockRouter
) -> None:
    assert lines()["workflows"] == "ok no workflow gives secrets to pushed branches"
    entries = [
        {"name": "ci.yml", "object": {"text": "on: push\nx: ${{ secrets.NPM_TOKEN }}\n"}},
        {"name": "README", "object": {"text": "on: push\nx: ${{ secrets.NPM_TOKEN }}\n"}},
        {"name": "old", "object": {}},
    ]
    printed = {"viewer": {"login": "us"}, "repository": {"object": {"entries": entries}}}
    github.post(GRAPHQL).respond(json={"data": printed})
    found = lines()["workflows"]
    assert found.startswith("warn these workflows run for agents' branches and get secrets: ")
    assert (
        "acme/widgets: .github/workflows/ci.yml: NPM_TOKEN -> move the secrets to an environment"
        in found
    )
    assert "README" not in found


def test_git_lfs_is_needed_where_a_branch_has_its_files(
    lines: LineTail, deployment: Deployment, tools: Callable[..., None]
) -> None:
    assert "git-lfs" not in lines()
    head = deployment.paths.mirror("widgets") / "refs" / "heads" / "main"
    head.parent.mkdir(parents=True)
    head.write_text("a" * 40)  # The git of these tests finds everything that it is asked for.
    assert lines()["git-lfs"] == (
        "fail missing, but required for the Git LFS files of widgets -> apt-get install"
        " git-lfs, or set lfs-max-mb = 0 to check out pointers, not files"
    )
    versions = {"git": "git version 2.39.5", "tmux": "tmux 3.5a", "cat": ""}
    tools(**versions, **{"git-lfs": "git-lfs/3.3.0 (GitHub; linux amd64)"})
    assert lines()["git-lfs"] == "ok git-lfs/3.3.0, for widgets"


def test_all_results_can_be_printed_as_json(mergewright: CommandLine, lines: LineTail) -> None:
    lines()
    found = {one["name"]: one for one in json.loads(mergewright("doctor", "--json").out)}
    assert found["git"] == {
        "name": "git",
        "severity": "ok",
        "says": "git version 2.39.5",
        "remedy": "",
    }
    assert {"GitHub", "agents", "clock"} <= found.keys()


def test_projects_of_the_apps_installations_are_listed(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    lines = 'app-id = "1"\nallowed-owners = ["acme"]\n[installation]\nrepositories = ["acme/*"]'
    deployment.file.write_text(
        deployment.file.read_text() + f'\n[github]\n{lines}\nproject = {{agent = "shell"}}\n'
    )
    says = "projects: widgets{}; and all repositories matching acme/* that have the App installed"
    found = {one["name"]: one for one in json.loads(mergewright("doctor", "--json").out)}
    assert found["configuration"]["says"] == says.format("")
    with closing(Store(empty_database(deployment.paths.database))) as store:
        store.installed.replace([InstalledProject(id=8, name="acme/gears", project="gears")])
    found = {one["name"]: one for one in json.loads(mergewright("doctor", "--json").out)}
    assert found["configuration"]["says"] == says.format(", gears")
    refusal = mergewright("freeze", "--project", "gear").err
    assert "no project 'gear'; did you mean 'gears'?" in refusal


def test_open_incidents_are_warnings(lines: LineTail, deployment: Deployment) -> None:
    assert lines()["incidents"] == "ok none"
    with closing(Store(deployment.paths.database)) as store:
        store.incidents.report("many-lost", "5 of 9 programs vanished in one look", deployment.now)
    assert "5 of 9 programs vanished" in lines()["incidents"]
    with closing(Store(deployment.paths.database)) as store:
        store.incidents.clear("many-lost", deployment.now)
    assert lines()["incidents"] == "ok none"
    with sqlite3.connect(deployment.paths.database) as database:
        database.execute("INSERT INTO _sqlite_migrations (migration_set, name, applied_at)"
                         " VALUES ('mergewright', 'a_later_one', '')")  # fmt: skip
    assert "newer version" in lines()["incidents"]


@pytest.mark.parametrize(
    ("thing", "answers", "expected"),
    [
        ("git", {}, "fail not found -> install git 2.31 or newer"),
        ("git", {"git": "git version 2.30.9"}, "fail git version 2.30.9 -> install git 2.31"),
        ("tmux", {}, "fail not found -> install tmux 3.2 or newer"),
        ("tmux", {"tmux": "tmux 3.1c"}, "fail tmux 3.1c -> install tmux 3.2 or newer"),
        ("tmux", {"tmux": "tmux master"}, "ok tmux master"),
        ("tmux", {"tmux": "tmux 3.3a"}, "warn tmux 3.3a: before 3.5, tmux can lose a program"),
        ("agents", {}, "fail some cannot start -> shell: cat is not installed"),
    ],
)
def test_missing_and_old_programs_have_a_remedy(
    thing: str,
    answers: dict[str, str],
    expected: str,
    lines: LineTail,
    tools: Callable[..., None],
) -> None:
    tools(**answers)
    assert lines()[thing].startswith(expected)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("3.36.0", "fail 3.36.0 -> use a Python with SQLite 3.38"),
        ("3.40.1", "warn 3.40.1: before 3.51.3, two concurrent writers can damage"),
        ("3.51.3", "ok 3.51.3"),
    ],
)
def test_known_bugs_of_sqlite_are_warnings(
    version: str, expected: str, lines: LineTail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version", version)
    assert lines()["sqlite"].startswith(expected)


def test_a_data_directory_readable_by_others_fails(lines: LineTail, deployment: Deployment) -> None:
    deployment.paths.data.chmod(0o755)
    found = lines()["data folder"]
    assert found.startswith("fail ")
    assert "-> chmod 700 /" in found


def test_a_missing_data_directory_is_fine(lines: LineTail, deployment: Deployment) -> None:
    deployment.paths.data.rmdir()
    assert lines()["data folder"].endswith("does not exist yet: `mergewright serve` creates it")


def test_an_unwritable_data_directory_fails(lines: LineTail, deployment: Deployment) -> None:
    deployment.paths.data.rmdir()
    deployment.paths.data.touch()
    assert "is not a folder -> set server.data to a folder" in lines()["data folder"]
    text = deployment.file.read_text()
    deployment.file.write_text(
        text.replace(str(deployment.paths.data), f"{deployment.paths.data}/below")
    )
    found = lines()["data folder"].replace(" ", "")  # A long path continues on the next line.
    assert f"{deployment.paths.data}isnotafolder->setserver.datatoafolder" in found


@pytest.mark.parametrize(
    ("thing", "variable", "severity"),
    [
        ("GitHub", "MERGEWRIGHT_GITHUB_TOKEN", "fail"),
        ("webhook secret", "MERGEWRIGHT_WEBHOOK_SECRET", "fail"),
        ("page token", "MERGEWRIGHT_PAGE_TOKEN", "warn"),
    ],
)
def test_a_missing_secret_is_found_with_its_variable(
    thing: str, variable: str, severity: str, lines: LineTail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable)
    found = lines()[thing]
    assert found.startswith(f"{severity} ")
    assert f"-> set {variable}" in found


def test_an_app_without_its_private_key_fails_even_with_a_token(
    lines: LineTail, deployment: Deployment, mergewright: CommandLine
) -> None:
    text = deployment.file.read_text()
    app = 'app-id = "7"\nallowed-owners = ["acme"]'
    deployment.file.write_text(text.replace("[github]", f"[github]\n{app}"))
    found = lines()
    assert found["GitHub"].startswith("fail no private key for the GitHub App -> set github.priv")
    assert not found.keys() & (OF_GITHUB - {"clock"})
    assert "no private key for the GitHub App: set github.private-key-file" in " ".join(
        mergewright("serve").err.split()
    )


def test_a_bot_that_polls_needs_no_webhook_secret(
    lines: LineTail, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MERGEWRIGHT_WEBHOOK_SECRET")
    text = deployment.file.read_text()
    deployment.file.write_text(text.replace("[github]", '[github]\nevents = "polling"'))
    assert lines()["webhook secret"] == "ok not used: the bot polls GitHub"


def test_a_short_secret_is_a_warning(lines: LineTail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEWRIGHT_WEBHOOK_SECRET", "hunter2")
    assert lines()["webhook secret"].startswith("warn set, but short -> use a longer one")


def test_a_secret_file_readable_by_others_is_a_warning(
    lines: LineTail, deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("p" * 32)
    file.chmod(0o644)
    monkeypatch.delenv("MERGEWRIGHT_PAGE_TOKEN")
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN_FILE", str(file))
    assert lines()["secret files"].startswith("warn other users can read a secret -> chmod 600")
    file.chmod(0o600)
    assert lines()["secret files"].startswith("ok")
    deployment.file.write_text(
        f'{deployment.file.read_text()}\n[agent-types.x]\nprogram = "shell"\nkey = "X"\n'
    )
    monkeypatch.setenv("X_FILE", str(key := tmp_path / "key"))
    key.write_text("k" * 32)
    key.chmod(0o644)
    assert lines()["secret files"].startswith("warn other users can read a secret")


def test_files_written_by_setup_are_checked_too(lines: LineTail, deployment: Deployment) -> None:
    app = 'app-id = "7"\nallowed-owners = ["acme"]\nprivate-key-file = "github-app.pem"'
    deployment.file.write_text(deployment.file.read_text().replace("[github]", f"[github]\n{app}"))
    key, secrets = (
        deployment.file.with_name(name) for name in ("github-app.pem", "mergewright.env")
    )
    for file in (key, secrets):
        file.write_text("not to be read by others")
        file.chmod(0o644)
    assert lines()["secret files"].endswith(f"-> chmod 600 {key.name} {secrets.name}")
    key.chmod(0o600)
    secrets.chmod(0o600)
    assert lines()["secret files"] == "ok private"


def test_agents_are_isolated_unless_the_configuration_forbids_it(
    lines: LineTail, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment.file.write_text(deployment.file.read_text().replace('isolation = "none"', ""))
    monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: "")
    assert lines()["isolation"].split()[1].startswith("bubblewrap")
    why = "bubblewrap is not installed: apt-get install bubblewrap"
    monkeypatch.setattr(Bubblewrap, "unavailable", lambda *_: why)
    monkeypatch.setattr(Containers, "unavailable", lambda _, container: "no engine")
    found = lines()["isolation"]
    assert found.startswith(
        f"fail agents cannot be isolated here: {why}; no engine; no engine. To start them with all"
    )
    assert found.endswith("-> until this is fixed, the bot does not start these agents")


@pytest.mark.parametrize(
    ("isolation", "kind", "remedy"),
    [
        (Bubblewrap, "bubblewrap", "run the service with Delegate=yes and DelegateSubgroup=bot"),
        (Containers, "docker", "let the engine use control groups"),
    ],
)
def test_limits_that_cannot_be_set_are_named_with_who_sets_them(
    lines: LineTail,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
    isolation: type,
    kind: str,
    remedy: str,
) -> None:
    written = deployment.file.read_text()
    deployment.file.write_text(written.replace('isolation = "none"', f'isolation = "{kind}"'))
    monkeypatch.setattr(isolation, "unavailable", lambda *_: "")
    monkeypatch.setattr(isolation, "unlimited", lambda *_: "cpu")
    found = lines()["isolation"]
    assert f"{kind} cannot limit, for a run as a whole: cpu -> {remedy}" in found


def test_without_a_valid_configuration_the_machine_is_checked(
    lines: LineTail, deployment: Deployment
) -> None:
    deployment.file.write_text("[server]\nprt = 1\n")
    found = lines()
    assert list(found) == ["git", "sqlite", "configuration"]
    assert "server.prt: unknown key" in found["configuration"]
    deployment.file.unlink()
    assert "-> to create one: mergewright init" in lines()["configuration"]


def test_every_problem_of_the_configuration_is_a_finding(
    mergewright: CommandLine, deployment: Deployment, tmp_path: Path
) -> None:
    def found() -> list[tuple[str, str, str]]:
        printed = json.loads(mergewright("doctor", "--json").out)
        return [
            (one["severity"], one["says"].removeprefix("mergewright.toml: "), one["remedy"])
            for one in printed
            if one["name"] == "configuration"
        ]

    valid = deployment.file.read_text()
    deployment.file.write_text("[server]\nprt = 1\n[limits]\nsessions = 0\n")
    (_, first, _), (severity, second, remedy) = found()
    assert first.startswith("server.prt: unknown key; did you mean 'port'?")
    assert (severity, remedy) == ("fail", "")
    assert second == "limits.sessions = 0: expected a whole number >= 1"
    deployment.file.write_text(valid.replace("[server]", f"[server]\nprompts = '{tmp_path}/none'"))
    assert found() == [
        (
            "fail",
            f"server.prompts: {tmp_path}/none: cannot read prompts: No such file or directory",
            "`mergewright serve` refuses this configuration until it is fixed",
        )
    ]


@pytest.mark.parametrize("response", [printed(True), printed(False, "REQUIRED_SIGNATURES")])
def test_required_signatures_fail_unless_squash_merges_are_used(
    lines: LineTail, github: respx.MockRouter, deployment: Deployment, response: dict[str, Any]
) -> None:
    github.post(GRAPHQL).respond(json={"data": response})
    wants = "acme/widgets: main requires signed commits"
    assert lines()["signatures"] == f"ok {wants} (merge method: squash)"
    with deployment.file.open("a") as file:
        file.write('\n[policy]\nmerge-method = "rebase"\n')
    found = lines()["signatures"]
    assert found.startswith(f"fail {wants} (merge method: rebase) -> set policy.merge-method")
    assert "policy.sign-commits = true" in found


def signs_commits(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, email: str) -> None:
    monkeypatch.setenv("MERGEWRIGHT_SIGNING_KEY", signing_key.PRIVATE)
    policy = '[policy]\nsign-commits = true\nmerge-method = "merge"\n'
    with deployment.file.open("a") as file:
        file.write(f'\n[signing]\nemail = "{email}"\n{policy}')


def test_signed_commits_need_a_key_that_github_knows(
    lines: LineTail,
    github: respx.MockRouter,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert lines()["signing key"] == "ok not used: no project has policy.sign-commits"
    signs_commits(deployment, monkeypatch, "bot@example.com")
    listed = github.get(f"{API}users/mergewright-bot/ssh_signing_keys").respond(json=[])
    unknown = lines()["signing key"]
    public = signing_key.KEY.public
    assert unknown.startswith("fail mergewright-bot has no such signing key at GitHub: ssh-ed25519")
    assert public.replace(" ", "") in unknown.replace(" ", "")  # It is longer than a line.
    listed.respond(json=[{"id": 1, "key": f"{public} of the bot", "title": "The bot's"}])
    assert lines()["signing key"] == "ok mergewright-bot signs with it, as bot@example.com"
    github.post(GRAPHQL).respond(json={"data": printed(True)})
    assert lines()["signatures"] == (
        "ok acme/widgets: main requires signed commits (merge method: merge; the bot signs)"
    )


def test_the_account_of_a_key_is_known_by_githubs_own_email(
    lines: LineTail,
    github: respx.MockRouter,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signs_commits(deployment, monkeypatch, "12+signer@users.noreply.github.com")
    entry = {"id": 1, "key": signing_key.KEY.public}
    github.get(f"{API}users/signer/ssh_signing_keys").respond(json=[entry])
    assert lines()["signing key"].startswith("ok signer signs with it")


def test_an_unusable_signing_key_is_refused_and_not_repeated(
    lines: LineTail, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    signs_commits(deployment, monkeypatch, "bot@example.com")
    monkeypatch.setenv("MERGEWRIGHT_SIGNING_KEY", "hunter2hunter2")
    found = lines()
    assert found["configuration"].startswith("fail the signing key: it is not a private key as")
    assert "ssh-keygen -t ed25519" in found["configuration"]
    assert "hunter2" not in str(found)
