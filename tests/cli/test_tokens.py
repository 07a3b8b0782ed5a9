"""Personal tokens on the command line."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.demo.github import GitHubServer
from bot.store import Store
from tests.cli.conftest import CommandLine, Deployment, configured
from tests.world.databases import empty_database

TOKEN = "the-bots-token"


@pytest.fixture
def github(tmp_path: Path) -> Iterator[GitHubServer]:
    with GitHubServer(tmp_path / "github") as server:
        server.user("wright", token=TOKEN)
        repo = server.repository("acme/widgets")
        repo.permission("wright", "write")
        repo.permission("alice", "write")
        yield server


@pytest.fixture
def tokens(
    mergewright: CommandLine,
    deployment: Deployment,
    github: GitHubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> CommandLine:
    """The command line of an installation on which people sign in with GitHub."""
    text = f'\n[github]\napi-url = "{github.url}api/v3/"\n[sign-in]\nmethod = "both"\n'
    with deployment.file.open("a") as file:
        file.write(f'{text}client-id = "Iv1.1"\n')
    configured(deployment, "[server]", 'public-url = "https://bot.example/"')
    monkeypatch.setenv("MERGEWRIGHT_GITHUB_TOKEN", TOKEN)
    empty_database(deployment.paths.database)
    return mergewright


def test_a_token_is_created_listed_and_revoked(
    tokens: CommandLine, deployment: Deployment, github: GitHubServer
) -> None:
    made = tokens("token", "create", "alice", "ci", "--scope", "steer", "--days", "7")
    assert made.code == 0
    token = made.out.splitlines()[0]
    assert token.startswith("mwp_")
    assert "acts for @alice with the scope steer" in " ".join(made.out.split())
    with closing(Store.reading(deployment.paths.database)) as store:
        (one,) = store.personal_tokens.of("alice")
    assert (one.user, one.scope) == (github.user("alice").id, "steer")
    listed = tokens("token", "list").out
    assert "ci" in listed
    assert token not in listed
    assert json.loads(tokens("token", "list", "bob", "--json").out) == []
    assert tokens("token", "revoke", str(one.id)).out == f"Token {one.id} is revoked.\n"
    again = tokens("token", "revoke", str(one.id))
    assert (again.code, "no token" in again.err) == (1, True)
    assert tokens("token", "list").out == "No personal tokens.\n"


def test_a_person_is_signed_out_of_browsers_and_programs(
    tokens: CommandLine, deployment: Deployment
) -> None:
    assert tokens("token", "create", "alice", "ci").code == 0
    now = datetime.now(UTC)
    with closing(Store(deployment.paths.database)) as store:
        for one, login in (("a", "Alice"), ("b", "rob"), ("c", "")):
            store.sign_ins.add(one, login, 7, now, now)
    ended = tokens("token", "sign-out", "alice")
    assert ended.out == "@alice is signed out of all browsers. Tokens revoked: 1.\n"
    again = tokens("token", "sign-out", "alice")
    assert (again.code, again.err) == (
        1,
        "mergewright: @alice is signed in nowhere and has no token\n",
    )
    assert tokens("token", "sign-out", "").code == 2
    with closing(Store.reading(deployment.paths.database)) as store:
        left = [one for one in "abc" if store.sign_ins.get(one)]
        assert (left, store.personal_tokens.of("")) == (["b", "c"], [])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("alice", "ci", "--scope", "steal"), "did you mean 'steer'?"),
        (("alice", " "), "a token needs a name"),
        (("alice", "ci", "--days", "400"), "at most 365 days"),
        (("nobody-of-this-name", "ci"), "no account 'nobody-of-this-name' at GitHub"),
    ],
)
def test_a_token_that_cannot_be_created_has_a_reason(
    tokens: CommandLine, words: tuple[str, ...], says: str
) -> None:
    refused = tokens("token", "create", *words)
    assert refused.code
    assert says in " ".join(refused.err.split())


def test_a_token_needs_a_project(tokens: CommandLine, deployment: Deployment) -> None:
    text = deployment.file.read_text()
    begins, ends = text.index("[projects.widgets]"), text.index("[agent-types.shell]")
    deployment.file.write_text(text[:begins] + text[ends:])
    refused = tokens("token", "create", "alice", "ci")
    assert (refused.code, "add [projects.NAME]" in refused.err) == (2, True)


def test_tokens_need_people_who_sign_in(mergewright: CommandLine, deployment: Deployment) -> None:
    assert deployment.file.exists()
    refused = mergewright("token", "create", "alice", "ci")
    assert refused.code == 2
    assert 'sign-in.method = "github" or "both"' in refused.err
