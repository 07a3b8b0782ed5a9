"""What `doctor`, `serve` and `config check` say about steps of the README that were left out."""

from pathlib import Path

import pytest
import respx

from bot.setup.files import SECRETS
from tests.cli.conftest import API, CommandLine, Deployment, LineTail, configured
from tests.world.app_key import PRIVATE

LOAD = "set -a; . ./mergewright.env; set +a"
_STORED = "MERGEWRIGHT_WEBHOOK_SECRET=hunter2hunter2\nexport X_KEY='hunter2hunter2'\n"


@pytest.fixture
def unloaded(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of secrets with two variables that are not set, beside the configuration."""
    for name in ("MERGEWRIGHT_WEBHOOK_SECRET", "MERGEWRIGHT_PAGE_TOKEN", "X_KEY"):
        monkeypatch.delenv(name, raising=False)
    agent = '\n[agent-types.x]\nprogram = "shell"\ncommand = ["cat"]\nkey = "X_KEY"\n'
    deployment.file.write_text(deployment.file.read_text() + agent)
    file = deployment.file.with_name(SECRETS)
    file.write_text(f"{_STORED}MERGEWRIGHT_PAGE_TOKEN=\n# MERGEWRIGHT_GITHUB_TOKEN=hunter2\n")
    file.chmod(0o600)
    return file


@pytest.mark.usefixtures("unloaded")
def test_doctor_says_how_to_load_the_file_of_secrets(
    lines: LineTail, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WEBHOOK_SECRET", "PAGE_TOKEN"):
        monkeypatch.delenv(f"MERGEWRIGHT_{name}")
    found = lines()
    assert found["webhook secret"] == (
        f"fail not set -> load {SECRETS}, which has MERGEWRIGHT_WEBHOOK_SECRET: {LOAD}"
    )
    assert f"x: no model key: load {SECRETS}, which has X_KEY: {LOAD}" in found["agents"]
    assert (
        found["page token"]
        == "warn not set: the pages are off -> set MERGEWRIGHT_PAGE_TOKEN to use them"
    )
    assert "hunter2" not in str(found)


@pytest.mark.usefixtures("unloaded")
@pytest.mark.parametrize("command", [("serve",), ("config", "check")])
def test_a_refused_configuration_says_how_to_load_the_file_of_secrets(
    mergewright: CommandLine, deployment: Deployment, command: tuple[str, ...]
) -> None:
    refused = mergewright(*command)
    assert refused.code == 2
    webhook = f"no webhook secret: load {SECRETS}, which has MERGEWRIGHT_WEBHOOK_SECRET: {LOAD}"
    assert webhook in refused.err.splitlines()[1]
    assert f"no model key: load {SECRETS}, which has X_KEY: {LOAD}" in refused.err
    assert "no GitHub token: set MERGEWRIGHT_GITHUB_TOKEN" in refused.err
    assert "hunter2" not in refused.err
    elsewhere = mergewright("serve", "--config", str(deployment.file))
    assert f"set -a; . {deployment.file.parent}/{SECRETS}; set +a" in elsewhere.err


def test_a_wrong_path_of_the_apps_key_has_a_remedy(
    mergewright: CommandLine, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    remedy = (
        "No such file or directory; name the .pem file of the App's private key, or generate"
        " another key in the App's settings on GitHub (General, Private keys)"
    )
    monkeypatch.setenv("MERGEWRIGHT_GITHUB_PRIVATE_KEY_FILE", "there.pem")
    refused = mergewright("serve").err
    assert f"MERGEWRIGHT_GITHUB_PRIVATE_KEY_FILE: there.pem cannot be read: {remedy}" in refused
    monkeypatch.delenv("MERGEWRIGHT_GITHUB_PRIVATE_KEY_FILE")
    app = "[github]\napp-id = '7'\nallowed-owners = ['acme']\nprivate-key-file = 'app.pem'\n"
    deployment.file.write_text(f"{deployment.file.read_text()}\n{app}")
    refused = mergewright("serve").err
    assert f"github.private-key-file: app.pem cannot be read: {remedy}" in refused


def test_an_unreadable_secret_file_has_a_remedy(
    mergewright: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN_FILE", "there")
    refused = mergewright("serve").err
    assert "there cannot be read: No such file or directory; name a file that the bot's" in refused


@pytest.mark.parametrize(
    ("key", "status", "expected"),
    [
        (
            PRIVATE,
            401,
            "the App's ID and its private key do not belong together, or this machine's",
        ),
        (PRIVATE, 403, "check github.api-url and the credentials"),
        ("no key", 401, "check github.api-url and the credentials"),
    ],
)
def test_a_key_of_another_app_is_recognised(
    lines: LineTail,
    github: respx.MockRouter,
    deployment: Deployment,
    key: str,
    status: int,
    expected: str,
) -> None:
    app = 'app-id = "7"\nallowed-owners = ["acme"]\nprivate-key-file = "app.pem"'
    configured(deployment, "[github]", app)
    deployment.file.with_name("app.pem").write_text(key)
    refusal = {"message": "A JSON web token could not be decoded"}
    for path in ("app", "app/hook/config", "repos/acme/widgets/installation"):
        github.get(f"{API}{path}").respond(status, json=refusal)
    found = lines()["GitHub"]
    assert found.startswith("fail ")
    assert f"-> {expected}" in found
    mismatch = status == 401 and key == PRIVATE
    assert ("compare github.app-id (7) with the App ID" in found) == mismatch
    assert ("generate a key there (General, Private keys)" in found) == mismatch
