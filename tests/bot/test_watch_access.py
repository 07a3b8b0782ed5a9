"""Rights that are gone are told for as long as they are, and an outage is no answer."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.demo.github import GitHubServer
from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.store import Store
from bot.watch_access import WatchAccess
from config.settings import Project

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class House:
    """A repository at the stand-in, and who looks whether it is open to us."""

    def __init__(self, github: GitHubServer, repo: Repository, store: Store) -> None:
        self.github, self.repo, self.store = github, repo, store
        self.client = GitHub(f"{github.url}api/v3", Credentials(token="wrights"))
        project = Project(repository=repo.full_name)
        self.watch = WatchAccess(store, self.client, [project], lambda: NOW)

    def looks(self) -> list[str]:
        self.watch.look()
        return [one.text for one in self.store.incidents()]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    store = Store(tmp_path / "database")
    with GitHubServer(tmp_path / "github") as github:
        github.user("wright", token="wrights")
        house = House(github, github.repository("acme/widgets"), store)
        yield house
        house.client.close()
    store.close()


def test_a_right_that_is_missing_is_told_while_it_is(house: House) -> None:
    assert house.looks() == ["acme/widgets: its account may not write"]
    house.repo.permission("wright", "write")
    assert house.looks() == []


def test_an_outage_says_nothing_about_rights(house: House) -> None:
    house.repo.permission("wright", "write")
    house.github.fail_next("GET", "/repos/acme/widgets", 502)
    assert house.looks() == []
    house.repo.permission("wright", "read")
    before = house.looks()
    house.github.fail_next("GET", "/repos/acme/widgets", 502)
    assert house.looks() == before


def test_a_refusal_is_told(house: House) -> None:
    house.github.fail_next("GET", "/repos/acme/widgets", 404)
    (said,) = house.looks()
    assert "404" in said
