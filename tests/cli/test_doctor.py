"""`mergewright doctor`: every check with its remedy."""

import json
import re
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import respx

from bot.cli.doctor import OF_GITHUB
from bot.store import Store
from tests.cli.conftest import CommandLine, Deployment

API = "https://github.example/api/v3/"
GRAPHQL = "https://github.example/api/graphql"
TOKEN = "ghp_" + "x" * 36

LineTail = Callable[[], dict[str, str]]


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Programs that print a version, the only ones on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(**answers: str) -> None:
        for old in folder.iterdir():
            old.unlink()
        for name, answer in answers.items():
            (folder / name).write_text(f"#!/bin/sh\necho '{answer}'\n")
            (folder / name).chmod(0o755)

    install(git="git version 2.39.5", tmux="tmux 3.5a", cat="")
    return install


def configured(deployment: Deployment, table: str, lines: str) -> None:
    """Add lines to a table of the configuration."""
    text = deployment.file.read_text()
    deployment.file.write_text(text.replace(table, f"{table}\n{lines}"))


def printed(protected: bool = False, *rules: str) -> dict[str, Any]:
    """The GraphQL response: login, no workflows, rules of the base branch."""
    ref = {
        "refUpdateRule": {"requiresSignatures": protected},
        "rules": {"nodes": [{"type": rule} for rule in rules]},
    }
    viewer = {"login": "mergewright-bot"}
    labels = {"nodes": [{"name": "Mergewright"}, {"name": "mergewright:codex"}]}
    repository = {"object": None, "defaultBranchRef": None, "ref": ref, "labels": labels}
    return {"viewer": viewer, "repository": repository}


def hook(**fields: Any) -> dict[str, Any]:
    """The repository's webhook, as the REST API returns it."""
    url = "https://bot.example/webhooks/github"
    return {"active": True, "events": ["*"], "config": {"url": url}, **fields}


@pytest.fixture
def github() -> Iterator[respx.MockRouter]:
    """A GitHub without problems."""
    with respx.mock(assert_all_called=False) as router:
        router.head(API).respond(headers={"Date": format_datetime(datetime.now(UTC))})
        router.post(GRAPHQL).respond(json={"data": printed()})
        router.get(f"{API}repos/acme/widgets/hooks").respond(json=[hook()])
        router.get("https://bot.example/healthz").respond(text='{"alive":true}')
        router.route(host="127.0.0.1").pass_through()
        router.get(f"{API}repos/acme/widgets").respond(
            json={
                "id": 7,
                "full_name": "acme/widgets",
                "default_branch": "main",
                "private": False,
                "archived": False,
                "clone_url": "https://github.example/acme/widgets.git",
            }
        )
        yield router


@pytest.fixture
def lines(
    mergewright: CommandLine,
    deployment: Deployment,
    tools: Callable[..., None],
    github: respx.MockRouter,
    monkeypatch: pytest.MonkeyPatch,
) -> LineTail:
    """The results of doctor for an installation without problems."""
    with deployment.file.open("a") as file:
        file.write(f'\n[github]\napi-url = "{API}"\n[runtime]\nsandbox = "none"\n')
    configured(deployment, "[server]", 'port = 0\npublic-url = "https://bot.example/"')
    monkeypatch.setenv("MERGEWRIGHT_GITHUB_TOKEN", TOKEN)
    monkeypatch.setenv("MERGEWRIGHT_WEBHOOK_SECRET", "w" * 32)
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", "p" * 32)

    def ask() -> dict[str, str]:
        result = mergewright("doctor")
        assert not {TOKEN, "w" * 32, "p" * 32} & set(result.out.split())
        found: dict[str, str] = {}
        for line in result.out.splitlines():
            if begins := re.fullmatch(r"(ok|warn|fail) +(.+?)(?:  +(.+))?", line):
                severity, name, says = begins.groups()
                found[name] = f"{severity} {says or ''}".rstrip()
            else:
                found[name] += f" {line.strip()}"
        assert result.code == any(text.startswith("fail") for text in found.values())
        return found

    return ask


def test_a_complete_installation_has_no_failures(lines: LineTail) -> None:
    found = lines()
    assert found["configuration"] == "ok projects: widgets"
    assert found["git"] == "ok git version 2.39.5"
    assert found["tmux"] == "ok tmux 3.5a"
    assert found["data folder"].endswith("writable and private")
    assert found["GitHub"] == f"ok {API}: signed in as mergewright-bot"
    assert found["clock"] == "ok in sync with GitHub"
    assert found["agents"].startswith("ok shell /")
    assert found["sandbox"].startswith("warn none: agents run with the rights of this user")
    assert found["webhook"] == "ok every repository sends to https://bot.example/webhooks/github"
    assert found["labels"] == "ok every repository has its label"
    assert found["port"] == "ok any free one"
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
    assert found.startswith("warn these run for every pushed branch and have secrets: ")
    assert (
        "acme/widgets: .github/workflows/ci.yml: NPM_TOKEN -> move the secrets to an environment"
        in found
    )
    assert "README" not in found


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
    assert "another version" in lines()["incidents"]


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
    assert lines()["data folder"].endswith("will be created")


def test_an_unwritable_data_directory_fails(lines: LineTail, deployment: Deployment) -> None:
    deployment.paths.data.rmdir()
    deployment.paths.data.touch()
    assert "is not writable -> make this user its owner" in lines()["data folder"]
    text = deployment.file.read_text()
    deployment.file.write_text(
        text.replace(str(deployment.paths.data), f"{deployment.paths.data}/below")
    )
    assert "cannot be created -> make " in lines()["data folder"]


def test_a_rejected_token_fails(lines: LineTail, github: respx.MockRouter) -> None:
    github.post("https://github.example/api/graphql").respond(
        401, json={"message": "Bad credentials"}
    )
    found = lines()["GitHub"]
    assert found.startswith("fail ")
    assert "Bad credentials" in found


def test_an_inaccessible_repository_fails(lines: LineTail, github: respx.MockRouter) -> None:
    github.get(f"{API}repos/acme/widgets").respond(404, json={"message": "Not Found"})
    found = lines()["GitHub"]
    assert found.startswith("fail ")
    assert "acme/widgets" in found


def test_an_unreachable_github_fails(lines: LineTail, github: respx.MockRouter) -> None:
    for route in github.routes:
        route.side_effect = httpx.ConnectError("refused")
    found = lines()
    assert found["GitHub"].startswith("fail ")
    assert "Nothing else about GitHub was checked. -> check the network" in found["GitHub"]
    assert not found.keys() & OF_GITHUB, "one outage is one line"


@pytest.mark.parametrize(
    ("status", "headers", "ends"),
    [
        (502, {}, "-> check the network and github.api-url, then run `mergewright doctor` again"),
        (429, {"retry-after": "60"}, "-> run `mergewright doctor` again after that"),
    ],
)
def test_what_doctor_does_not_retry_is_not_announced(
    lines: LineTail,
    github: respx.MockRouter,
    status: int,
    headers: dict[str, str],
    ends: str,
) -> None:
    github.post(GRAPHQL).respond(status, headers=headers, json={"message": "Sorry"})
    found = lines()
    assert found["GitHub"].endswith(ends)
    assert not found.keys() & OF_GITHUB
    assert not [text for text in found.values() if "later" in text]


def test_a_clock_that_cannot_be_compared_fails(lines: LineTail, github: respx.MockRouter) -> None:
    github.head(API).side_effect = httpx.ConnectError("refused")
    assert lines()["clock"].startswith(f"fail {API} does not answer: refused")


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        ([], "fail acme/widgets: the webhook is missing or inactive -> add https://"),
        ([hook(active=False)], "fail acme/widgets: the webhook is missing or inactive"),
        ([hook(config={"url": "https://else.example/"})], "fail acme/widgets: the webhook is mis"),
        ([hook(events=["push"])], "fail acme/widgets: the webhook does not send check_run, "),
        (None, "warn not visible to this token: acme/widgets -> if missing, add https://"),
    ],
)
def test_a_missing_webhook_is_found(
    lines: LineTail, github: respx.MockRouter, hooks: list[Any] | None, expected: str
) -> None:
    route = github.get(f"{API}repos/acme/widgets/hooks")
    if hooks is None:
        route.respond(404, json={"message": "Not Found"})
    else:
        route.respond(json=hooks)
    assert lines()["webhook"].startswith(expected)


def test_a_missing_label_is_found(lines: LineTail, deployment: Deployment) -> None:
    configured(deployment, "[projects.widgets]", 'label = "agents"')
    assert lines()["labels"].startswith("fail acme/widgets has no label `agents` -> create it")


@contextmanager
def http_server(port: int, says: bytes) -> Iterator[None]:
    """A program that answers every request with these bytes."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(says)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", port), Answer) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield
        server.shutdown()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as there:
        return int(there.getsockname()[1])


def test_a_taken_port_is_found(lines: LineTail, deployment: Deployment) -> None:
    taken = free_port()
    deployment.file.write_text(deployment.file.read_text().replace("port = 0", f"port = {taken}"))
    with http_server(taken, b"someone else"):
        found = lines()
    expected = f"fail 127.0.0.1:{taken}: another program listens there -> stop that program, or"
    assert found["port"].startswith(expected)


def test_a_server_that_runs_already_is_recognized(lines: LineTail, deployment: Deployment) -> None:
    ours = free_port()
    deployment.file.write_text(
        deployment.file.read_text()
        .replace("port = 0", f"port = {ours}")
        .replace("https://bot.example/", f"http://127.0.0.1:{ours}/")
    )
    with http_server(ours, b'{"alive":true}'):
        found = lines()
    assert found["port"] == f"ok 127.0.0.1:{ours}: the server is running"
    assert found["public URL"] == f"ok http://127.0.0.1:{ours}/ leads to this server"


def test_a_public_url_is_tried_before_the_server_runs(
    lines: LineTail, deployment: Deployment
) -> None:
    ours, elsewhere = free_port(), free_port()
    text = deployment.file.read_text().replace("port = 0", f"port = {ours}")
    deployment.file.write_text(text.replace("https://bot.example/", f"http://127.0.0.1:{ours}/"))
    found = lines()
    assert found["port"] == f"ok 127.0.0.1:{ours} is free"
    assert found["public URL"] == f"ok http://127.0.0.1:{ours}/ leads to this server"
    other = f"http://127.0.0.1:{elsewhere}/"
    deployment.file.write_text(text.replace("https://bot.example/", other))
    says = lines()["public URL"]
    assert says.startswith(f"fail {other} cannot be reached from here: ")
    assert f"-> make it lead to 127.0.0.1:{ours}, for example" in says
    with http_server(elsewhere, b"someone else"):
        says = lines()["public URL"]
    assert says.startswith(f"fail {other} does not lead to this server: it answers 200")


def test_webhooks_need_a_public_url(lines: LineTail, deployment: Deployment) -> None:
    text = deployment.file.read_text().replace('public-url = "https://bot.example/"', "")
    deployment.file.write_text(text)
    assert lines()["public URL"].startswith("fail not set: GitHub cannot send webhooks")
    configured(deployment, "[github]", 'events = "polling"')
    assert lines()["public URL"].startswith("ok not set: links lead to http://127.0.0.1:0/")


def test_a_wrong_clock_fails(lines: LineTail, github: respx.MockRouter) -> None:
    then = datetime.now(UTC) - timedelta(minutes=5)
    github.head(API).respond(headers={"Date": format_datetime(then)})
    assert lines()["clock"].endswith("s off GitHub's clock -> set the clock with NTP")


def test_a_response_without_a_date_is_a_warning(lines: LineTail, github: respx.MockRouter) -> None:
    github.head(API).respond()
    assert lines()["clock"].startswith("warn ")


@pytest.mark.parametrize(
    ("thing", "variable"),
    [
        ("GitHub", "MERGEWRIGHT_GITHUB_TOKEN"),
        ("webhook secret", "MERGEWRIGHT_WEBHOOK_SECRET"),
        ("page token", "MERGEWRIGHT_PAGE_TOKEN"),
    ],
)
def test_a_missing_secret_fails_with_its_variable(
    thing: str, variable: str, lines: LineTail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable)
    found = lines()[thing]
    assert found.startswith("fail ")
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


def test_an_undecided_sandbox_fails(lines: LineTail, deployment: Deployment) -> None:
    deployment.file.write_text(deployment.file.read_text().replace('sandbox = "none"', ""))
    assert lines()["sandbox"].startswith("fail not decided: agents run with the rights")


def test_without_a_valid_configuration_the_machine_is_checked(
    lines: LineTail, deployment: Deployment
) -> None:
    deployment.file.write_text("[server]\nprt = 1\n")
    found = lines()
    assert list(found) == ["git", "sqlite", "configuration"]
    assert "server.prt: unknown key" in found["configuration"]
    deployment.file.unlink()
    assert "-> to create one: mergewright config example" in lines()["configuration"]


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


def test_a_damaged_or_missing_database_fails(lines: LineTail, deployment: Deployment) -> None:
    database = deployment.paths.database
    assert lines()["database"] == "ok will be created"
    deployment.has_session(12)
    assert lines()["database"] == "ok whole"
    content = database.read_bytes()
    database.write_bytes(content[: len(content) // 2])
    assert re.match(r"fail the database .* is damaged: .*SQLite says", lines()["database"])
    (deployment.paths.archive / "widgets-12").mkdir(parents=True)
    database.write_bytes(b"")
    assert "holds the files of sessions, such as archive/widgets-12" in lines()["database"]
