"""The stand-in GitHub over HTTP, with a repository for each test."""

from collections.abc import Iterator
from itertools import count

import pytest

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.demo.github.world import Token
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.github.github_app import PERMISSIONS
from bot.github.snapshots import PullSnapshot
from tests.world.app_key import PRIVATE, PUBLIC
from tests.world.faulty_github import FaultyGitHub

BRANCH = "mergewright/12-retry"
names = count(1)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyGitHub]:
    with FaultyGitHub(tmp_path_factory.mktemp("github")) as server:
        server.user("wright")
        # The App has only the permissions of the manifest.
        app = server.world.app("manifest")
        app.permissions = {one.name: one.level for one in PERMISSIONS}
        server.world.tokens["wrights-token"] = Token(user=server.user("wright"), app=app)
        server.user("ann")
        server.user("eve")
        server.bot_account("renovate[bot]")
        yield server


@pytest.fixture
def repo(server: FaultyGitHub) -> Repository:
    """A repository of its own for each test, where `ann` and the bot may write."""
    repo = server.repository(f"acme/widgets-{next(names)}", {"retry.py": "one\ntwo\nthree\n"})
    repo.permission("wright", "write")
    repo.permission("ann", "maintain")
    return repo


@pytest.fixture
def github(server: FaultyGitHub) -> Iterator[GitHub]:
    client = GitHub(f"{server.url}api/v3", Credentials(token="wrights-token"))
    yield client
    client.close()


@pytest.fixture(scope="session")
def key(server: FaultyGitHub) -> str:
    """The private key of an App that is installed everywhere."""
    server.app("mergewright", PUBLIC)
    return PRIVATE


@pytest.fixture
def app(server: FaultyGitHub, key: str) -> Iterator[GitHub]:
    number = server.world.apps["mergewright"].id
    client = GitHub(f"{server.url}api/v3", Credentials(app_id=str(number), private_key=key))
    yield client
    client.close()


@pytest.fixture
def pull(repo: Repository) -> Pull:
    """An open pull request of the bot's with one commit."""
    repo.push(BRANCH, {"retry.py": "one\n2\nthree\n"}, by="wright")
    return repo.open_pull(BRANCH, title="Retry", by="wright", body="Tries again.")


def read(github: GitHub, pull: Pull) -> PullSnapshot:
    reading = github.read.pull(pull.repo.full_name, pull.number)
    assert reading is not None
    return reading
