"""Secrets are removed from what is sent to GitHub."""

from bot.demo.github.pulls import Pull
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.system.redaction import Redaction
from tests.world.faulty_github import FaultyGitHub


def test_secrets_are_removed_from_what_is_written(server: FaultyGitHub, pull: Pull) -> None:
    where, known = f"{server.url}api/v3", Credentials(token="wrights-token")
    github = GitHub(where, known, redact=Redaction(["wrights-token"]))
    github.write.comment(pull.repo.full_name, pull.number, "It is wrights-token.", "started:1")
    github.close()
    assert pull.comments[0].body.startswith("It is [secret].")
