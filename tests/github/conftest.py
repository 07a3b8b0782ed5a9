"""A client whose responses the test defines, at a fixed time."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from bot.github.auth import Credentials
from bot.github.client import GitHub

API = "https://github.example/api/v3"
GRAPHQL = "https://github.example/api/graphql"
REPO = f"{API}/repos/acme/widgets"
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.fixture
def github() -> Iterator[GitHub]:
    """A client with a token, at an Enterprise server that exists only in respx."""
    client = GitHub(API, Credentials(token="s3cret"), clock=lambda: NOW)
    yield client
    client.close()
