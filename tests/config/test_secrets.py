"""Secrets come from the environment or files, never from the configuration."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from config.load import (
    VARIABLES,
    ConfigError,
    Secrets,
    load,
    missing,
    secret_values,
    settings_of,
)
from config.settings import AgentTypeSettings, GitHubSettings, ProjectSettings, Settings

Complaints = Callable[[str], list[str]]

TOKEN = "ghp_" + "x" * 36


@pytest.mark.parametrize(
    ("text", "place", "variable"),
    [
        (f"[github]\ntoken = '{TOKEN}'", "github.token", "MERGEWRIGHT_GITHUB_TOKEN "),
        ("[server]\npage-token = 'x'", "server.page-token", "MERGEWRIGHT_PAGE_TOKEN "),
        ("webhook-secret = 'x'", "webhook-secret", "MERGEWRIGHT_WEBHOOK_SECRET "),
        ("[github]\nsecret = 'x'", "github.secret", "MERGEWRIGHT_WEBHOOK_SECRET"),
        (f"[github]\napp-id = '{TOKEN}'", "github.app-id", "MERGEWRIGHT_GITHUB_TOKEN"),
        (
            "[github]\ngit-url = 'https://me:hunter2@example.com/'",
            "github.git-url",
            "MERGEWRIGHT_GITHUB_TOKEN",
        ),
        (
            f"[agent-types.x]\nprogram = 'x'\nargs = ['{TOKEN}']",
            "agent-types.x.args[0]",
            "pass-env",
        ),
        (
            f"[agent-types.x]\nprogram = 'x'\nenv = {{X = '{TOKEN}'}}",
            "agent-types.x.env.X",
            "pass-env",
        ),
        (
            "[agent-types.x]\nprogram = 'x'\nenv = {ACME_API_KEY = 'hunter2'}",
            "agent-types.x.env.ACME_API_KEY",
            "pass-env",
        ),
        (
            "[agent-types.x]\nprogram = 'x'\napi-key = 'hunter2'",
            "agent-types.x.api-key",
            "name the variable here",
        ),
        (
            "[notify.a]\nkind = 'webhook'\nurl = 'U'\ntoken = 'hunter2'",
            "notify.a.token",
            "name the variable here",
        ),
        (
            "[github]\nprivate-key-file = '-----BEGIN hunter2'",
            "github.private-key-file",
            ": set MERGEWRIGHT_GITHUB_PRIVATE_KEY (",
        ),
        ("[signing]\nkey = 'hunter2'", "signing.key", ": set MERGEWRIGHT_SIGNING_KEY ("),
        (
            "[signing]\nkey-file = '-----BEGIN hunter2'",
            "signing.key-file",
            ": set MERGEWRIGHT_SIGNING_KEY (",
        ),
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(
    text: str, place: str, variable: str, complaints: Complaints
) -> None:
    (line,) = complaints(text)
    assert line.startswith(f"{place}: ")
    assert variable in line
    assert TOKEN not in line
    assert "hunter2" not in line


@pytest.mark.parametrize("variable", ["GITHUB_TOKEN", "GH_TOKEN", "MERGEWRIGHT_PAGE_TOKEN"])
def test_agents_cannot_get_the_bots_credentials(variable: str, complaints: Complaints) -> None:
    (line,) = complaints(f"[agent-types.x]\nprogram = 'x'\npass-env = ['{variable}']")
    assert line.startswith(f"agent-types.x.pass-env: {variable} would give the agent")


def test_an_agent_can_get_a_key_of_its_own(file: Path) -> None:
    file.write_text("[agent-types.x]\nprogram = 'x'\npass-env = ['ACME_API_KEY']")
    settings, _ = load(file, {})
    assert settings.agent_types["x"] == AgentTypeSettings(program="x", pass_env=("ACME_API_KEY",))


@pytest.mark.parametrize("field", VARIABLES)
def test_a_secret_is_read_from_its_variable_or_from_a_file(
    field: str, file: Path, tmp_path: Path
) -> None:
    file.touch()
    kept = tmp_path / "secret"
    kept.write_text("hunter2\n")
    variable = VARIABLES[field]
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / variable).write_text("hunter2\n")
    for environ in (
        {variable: "hunter2"},
        {f"{variable}_FILE": str(kept)},
        {"CREDENTIALS_DIRECTORY": str(credentials)},
        {"CREDENTIALS_DIRECTORY": str(tmp_path), variable: "hunter2"},
    ):
        _, secrets = load(file, environ)
        assert getattr(secrets, field) == "hunter2"


def test_a_secret_is_read_from_a_descriptor(file: Path) -> None:
    file.touch()
    reading, writing = os.pipe()
    os.write(writing, b"hunter2\n")
    os.close(writing)
    _, secrets = load(file, {"MERGEWRIGHT_PAGE_TOKEN_FILE": f"/dev/fd/{reading}"})
    os.close(reading)
    assert secrets.page_token == "hunter2"


KEYED = """
[projects.widgets]
repository = "acme/widgets"
model-keys = {claude = "WIDGETS_KEY"}
[agent-types.claude]
program = "claude"
key = "SERVER_KEY"
[agents.ada]
types = ["claude"]
model-keys = {claude = "ADA_KEY"}
"""


def test_model_keys_are_read_like_all_secrets_and_known_as_such(file: Path, tmp_path: Path) -> None:
    file.write_text(KEYED)
    kept = tmp_path / "key"
    kept.write_text("of the server\n")
    environ = {"SERVER_KEY_FILE": str(kept), "ADA_KEY": "of ada", "OTHER": "x"}
    settings, secrets = load(file, environ)
    assert secrets.model_keys == {"SERVER_KEY": "of the server", "ADA_KEY": "of ada"}
    assert set(secret_values(settings, secrets, environ)) == {"of the server", "of ada"}
    absent = [line for line in missing(settings, secrets) if "model key" in line]
    assert absent == ["no model key: set WIDGETS_KEY (named by projects.widgets.model-keys.claude)"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "key = 'AIzaSyA0123456789abcdefghij'",
            "x.key: this looks like a secret, which does not belong in a file: set it as",
        ),
        ("pass-env = ['a key']", "x.pass-env: expected variable names"),
        ("env = {'A=B' = 'x'}", "x.env: expected variable names"),
        ("key = 'a key, not its name'", "x.key: expected the name of an environment variable"),
        ("key = 'GITHUB_TOKEN'", "x.key: GITHUB_TOKEN would send Mergewright's own credentials"),
        (
            "endpoint = 'http://models/v1/'",
            "x.endpoint = 'http://models/v1/': expected a URL without",
        ),
        ("endpoint = 'models'", "x.endpoint = 'models': expected a URL"),
        ("endpoint = 'http://[::1/'", "x.endpoint = 'http://[::1/': expected a URL"),
        ("endpoint = 'http://m:99999/'", "x.endpoint = 'http://m:99999/': expected a URL"),
        ("endpoint = 'http://m/?a=1'", "x.endpoint = 'http://m/?a=1': expected a URL"),
    ],
)
def test_an_invalid_key_or_endpoint_is_refused(text: str, why: str, complaints: Complaints) -> None:
    (line,) = complaints(f"[agent-types.x]\nprogram = 'x'\n{text}")
    assert line.startswith(f"agent-types.{why}")
    assert "a key" not in line


def test_a_key_for_an_unknown_agent_type_is_refused(complaints: Complaints) -> None:
    (line,) = complaints(KEYED.replace('{claude = "ADA', '{claud = "ADA'))
    assert line.startswith("agents.ada.model-keys.claud: no [agent-types.claud]; did you mean")


@pytest.mark.parametrize("token", [f"{TOKEN[:20]}\n{TOKEN[20:]}", f"token {TOKEN}", f"{TOKEN}\tx"])
def test_a_token_with_whitespace_is_refused_without_repeating_it(file: Path, token: str) -> None:
    file.write_text("")
    with pytest.raises(
        ConfigError, match="MERGEWRIGHT_GITHUB_TOKEN: contains whitespace"
    ) as refused:
        load(file, {"MERGEWRIGHT_GITHUB_TOKEN": token})
    assert "xxxx" not in str(refused.value)


def test_a_secret_in_two_places_is_refused(file: Path) -> None:
    file.touch()
    environ = {"MERGEWRIGHT_PAGE_TOKEN": "a", "MERGEWRIGHT_PAGE_TOKEN_FILE": "b"}
    with pytest.raises(ConfigError, match="both set; unset one"):
        load(file, environ)


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), ("\n", "is empty")])
def test_an_unusable_secret_file_is_named(
    content: str | None, why: str, file: Path, tmp_path: Path
) -> None:
    file.touch()
    kept = tmp_path / "secret"
    if content is not None:
        kept.write_text(content)
    with pytest.raises(ConfigError, match=f"MERGEWRIGHT_PAGE_TOKEN_FILE: {kept} .*{why}"):
        load(file, {"MERGEWRIGHT_PAGE_TOKEN_FILE": str(kept)})


def test_the_private_key_is_read_from_a_file_or_the_environment(file: Path) -> None:
    file.write_text(
        "[github]\napp-id = '1'\nprivate-key-file = 'app.pem'\nallowed-owners = ['acme']\n"
    )
    (file.parent / "app.pem").write_text("the key")
    _, secrets = load(file, {})
    assert secrets.private_key == "the key"
    _, secrets = load(file, {"MERGEWRIGHT_GITHUB_PRIVATE_KEY": "another key"})
    assert secrets.private_key == "another key"


def test_printing_the_secrets_shows_which_and_not_what() -> None:
    secrets = Secrets(token="hunter2", page_token="hunter2")
    assert repr(secrets) == "Secrets(token=***, page_token=***)"
    assert secrets.__rich_repr__() == [("token", "***"), ("page_token", "***")]


def test_missing_requirements_are_named() -> None:
    assert len(missing(Settings(), Secrets())) == 3
    settings = Settings(projects={"w": ProjectSettings(repository="a/b")})
    assert missing(settings, Secrets(token="x", webhook_secret="y")) == ()
    polling = Settings(projects=settings.projects, github=GitHubSettings(events="polling"))
    assert missing(polling, Secrets(token="x")) == ()
    app = Settings(projects=settings.projects, github=GitHubSettings(app_id="1"))
    (line,) = missing(app, Secrets(token="x", webhook_secret="y"))
    assert line.startswith("no private key for the GitHub App")


OPEN = "[server]\npublic-url = 'https://bot.example/'\n"
SIGN_IN = f"{OPEN}[sign-in]\nmethod = '{{}}'\nclient-id = 'Iv1.1'\n"


@pytest.mark.parametrize(
    ("text", "secrets", "wanted"),
    [
        ("", Secrets(), ""),
        ("[server]\nhost = '127.0.0.2'", Secrets(), ""),
        ("[server]\nhost = '0.0.0.0'", Secrets(), "MERGEWRIGHT_PAGE_TOKEN"),
        ("[server]\nhost = '::'", Secrets(), "MERGEWRIGHT_PAGE_TOKEN"),
        (OPEN, Secrets(), "https://bot.example/: set MERGEWRIGHT_PAGE_TOKEN"),
        (OPEN, Secrets(page_token="x"), ""),
        (SIGN_IN.format("github"), Secrets(page_token="x"), "MERGEWRIGHT_GITHUB_CLIENT_SECRET"),
        (SIGN_IN.format("both"), Secrets(page_token="x"), "MERGEWRIGHT_GITHUB_CLIENT_SECRET"),
        (SIGN_IN.format("github"), Secrets(client_secret="x"), ""),
        (SIGN_IN.format("both"), Secrets(client_secret="x"), ""),
    ],
)
def test_a_server_that_others_reach_needs_a_way_to_sign_in(
    text: str, secrets: Secrets, wanted: str
) -> None:
    found = [one for one in missing(settings_of(text, ""), secrets) if "sign-in" in one]
    assert len(found) == bool(wanted)
    assert all(wanted in one for one in found)


def test_the_signing_key_is_read_from_its_file_and_missing_without(file: Path) -> None:
    project = "[projects.w]\nrepository = 'a/b'\nagent = 'shell'\npolicy = {sign-commits = true}\n"
    email = "email = 'bot@example.com'\n"
    types = "[agent-types.shell]\nprogram = 'shell'\ncommand = ['true']\n"
    file.write_text(f"{project}{types}[signing]\n{email}")
    wanted = [line for line in missing(*load(file, {})) if "sign" in line]
    assert wanted[0].startswith("no key to sign commits: set signing.key-file or MERGEWRIGHT_")
    file.with_name("key").write_text("the key\n")
    file.write_text(f"{project}{types}[signing]\n{email}key-file = 'key'\n")
    settings, secrets = load(file, {})
    assert secrets.signing_key == "the key"
    assert "the key" in secret_values(settings, secrets, {})
    assert "the key" not in repr(secrets)
