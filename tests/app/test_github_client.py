"""The pace at which the bot's GitHub client reads and writes."""

import time
from datetime import UTC, datetime

import pytest
import respx

from bot.app.github_client import github_client
from config.load import Secrets
from config.settings import Settings

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def test_writes_to_github_are_a_second_apart_and_reads_are_not(
    respx_mock: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    repo = "https://api.github.com/repos/acme/widgets"
    read = respx_mock.get(f"{repo}/collaborators/ann/permission").respond(
        json={"permission": "write"}
    )
    respx_mock.post(f"{repo}/issues/comments/5/reactions").respond(201)
    github = github_client(Settings(), Secrets(token="s3cret"), lambda: NOW)
    for _ in range(3):
        assert github.read.may_write("acme/widgets", "ann")
        github.write.react("acme/widgets", 5, "eyes")
    assert (slept, read.call_count) == ([0, 1, 2], 3)
    github.close()
