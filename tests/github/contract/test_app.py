"""An App instead of a token, and what git is let in with."""

import os
import subprocess
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.demo.github.server import GitHubServer
from bot.github.auth import Credentials
from bot.github.client import GitHub
from tests.github.contract.conftest import names, read


@pytest.fixture(scope="session")
def key(server: GitHubServer) -> str:
    """The private key of an App that is installed everywhere."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    server.app("mergewright", public.decode())
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture
def app(server: GitHubServer, key: str) -> Iterator[GitHub]:
    number = server.world.apps["mergewright"].id
    client = GitHub(f"{server.url}api/v3", Credentials(app_id=str(number), private_key=key))
    yield client
    client.close()


def test_an_app_knows_its_own_words_again(app: GitHub, repo: Repository, pull: Pull) -> None:
    assert app.read.me() == "mergewright[bot]"
    for _ in range(2):
        app.write.comment(repo.full_name, pull.number, "Started.", "started:1")
    (remark,) = read(app, pull).pull.comments
    assert (remark.author, remark.own, remark.bot) == ("mergewright[bot]", True, True)


def test_git_is_let_in_with_the_header(server: GitHubServer, github: GitHub, app: GitHub) -> None:
    repo = server.repository(f"acme/secrets-{next(names)}", private=True)
    repo.permission("wright", "write")
    for client in (github, app):
        listed = git_ls_remote(repo.clone_url, client.git_header(repo.full_name))
        assert repo.heads["main"] in listed.stdout
    assert git_ls_remote(repo.clone_url, "X-Nothing: at all").returncode != 0


def git_ls_remote(url: str, header: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{url}.extraHeader",
        "GIT_CONFIG_VALUE_0": header,
    }
    command = ["git", "ls-remote", url]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
