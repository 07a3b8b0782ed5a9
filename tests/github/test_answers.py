"""Whether GitHub answers at all, as a request to each of its servers shows."""

from typing import Any

import httpx
import pytest
import respx

from bot.github.client import GitHub
from tests.github.conftest import API

LIMITED = {"x-ratelimit-remaining": "0"}


@pytest.mark.parametrize(
    ("api", "git", "answers"),
    [
        (httpx.Response(200), httpx.Response(200), True),
        (httpx.Response(404), httpx.Response(302, headers={"location": "/login"}), True),
        (httpx.Response(403, headers=LIMITED), httpx.Response(200), True),
        (httpx.Response(502), httpx.Response(200), False),
        (httpx.Response(200), httpx.Response(503), False),
        (httpx.ConnectError("no route"), httpx.Response(200), False),
        (httpx.Response(200), httpx.ReadTimeout("silence"), False),
    ],
)
def test_github_answers_unless_one_of_its_servers_is_out_of_order(
    github: GitHub, api: Any, git: Any, *, answers: bool
) -> None:
    with respx.mock(assert_all_called=False) as servers:
        servers.head(f"{API}/").mock(side_effect=[api])
        servers.head("https://github.example/").mock(side_effect=[git])
        assert github.answers("https://github.example/") == answers
