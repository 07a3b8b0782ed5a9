"""Cached lists."""

from collections.abc import Callable
from typing import Any

import pytest

from bot.demo.github.issues import Issue
from bot.demo.github.repository import Repository
from bot.github.client import GitHub
from tests.world.faulty_github import FaultyGitHub

#: Reads a list; returns it with the status of each page and the cost.
GitHubReader = Callable[[], tuple[Any, list[int], int]]


@pytest.fixture
def waiting(repo: Repository) -> Issue:
    """An issue that is blocked by more issues than fit on a page."""
    issue = repo.open_issue("Last", by="ann")
    for number in range(102):
        issue.waits_for(repo.open_issue(f"First {number}", by="ann"), by="ann")
    return issue


@pytest.fixture
def reads(github: GitHub, server: FaultyGitHub, waiting: Issue) -> GitHubReader:
    def answer() -> tuple[Any, list[int], int]:
        seen, used = len(server.requests), _used(server)
        found = github.read.blocked_by(waiting.repo.full_name, waiting.number)
        return found, [one.status for one in server.requests[seen:]], _used(server) - used

    return answer


def _used(server: FaultyGitHub) -> int:
    return server.traffic.spend("wright", "core", 0)["used"]


def test_an_unchanged_list_is_served_from_the_cache_for_free(
    github: GitHub, reads: GitHubReader, waiting: Issue
) -> None:
    with github.caching():
        found, statuses, cost = reads()
    assert (len(found), statuses, cost) == (102, [200, 200], 2)
    for _ in range(2):
        with github.caching():
            assert reads() == (found, [304, 304], 0)
    waiting.blocked_by[-1].close(by="ann")
    with github.caching():
        assert reads() == (found[:-1], [304, 200], 1)


def test_a_list_read_in_a_failed_block_is_read_again(github: GitHub, reads: GitHubReader) -> None:
    def fails_to_write() -> None:
        with github.caching():
            reads()
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        fails_to_write()
    with github.caching():
        assert reads()[1] == [200, 200]
    assert reads()[1] == [200, 200], "who does not remember reads all of it"


def test_the_oldest_cached_list_is_dropped(
    github: GitHub, reads: GitHubReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.github.transport._CACHE_SIZE", 1)
    for _ in range(2):
        with github.caching():
            assert len(reads()[0]) == 102
    with github.caching():
        assert reads()[1] == [200, 304]


def test_a_new_token_reads_the_list_again(
    app: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    issue = repo.open_issue("Broken", by="ann")
    statuses = []
    for _ in range(3):
        with app.caching():
            assert app.read.blocked_by(repo.full_name, issue.number) == ()
        statuses.append(server.requests[-1].status)
        if len(statuses) == 2:
            app._api.tokens.forget(repo.full_name)
    assert statuses == [200, 304, 200]


def test_permissions_are_never_cached(
    github: GitHub, server: FaultyGitHub, repo: Repository
) -> None:
    for _ in range(2):
        with github.caching():
            assert github.read.may_write(repo.full_name, "ann")
        assert server.requests[-1].status == 200
