"""Rights that are gone are told for as long as they are, and an outage is no answer."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.observe.access import AccessObserver
from bot.store import RIGHTS, RefreshRequest, RepositoryRecord, Store
from config.settings import ProjectSettings
from tests.world.databases import empty_database
from tests.world.faulty_github import FaultyGitHub

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class House:
    """A repository at the stand-in, and who looks whether it is open to us."""

    def __init__(self, github: FaultyGitHub, repo: Repository, store: Store) -> None:
        self.github, self.repo, self.store = github, repo, store
        self.client = GitHub(f"{github.url}api/v3", Credentials(token="wrights"))
        project = ProjectSettings(repository=repo.full_name)
        self.watch = AccessObserver(store, self.client, [project], lambda: NOW)

    def used(self) -> int:
        """How much of what may be asked in an hour was."""
        return self.github.traffic.spend("wright", "core", 0)["used"]

    def refresh_budget(self) -> list[str]:
        self.watch.read_all()
        return [one.text for one in self.store.incidents.current()]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    store = Store(empty_database(tmp_path / "database"))
    with FaultyGitHub(tmp_path / "github") as github:
        github.user("wright", token="wrights")
        house = House(github, github.repository("acme/widgets"), store)
        yield house
        house.client.close()
    store.close()


def test_a_right_that_is_missing_is_told_while_it_is(house: House) -> None:
    assert house.refresh_budget() == ["acme/widgets: its account may not write"]
    house.repo.permission("wright", "write")
    assert house.refresh_budget() == []


def test_an_outage_says_nothing_about_rights(house: House) -> None:
    house.repo.permission("wright", "write")
    house.github.fail_next("GET", "/repos/acme/widgets", 502)
    assert house.refresh_budget() == []
    house.repo.permission("wright", "read")
    before = house.refresh_budget()
    house.github.fail_next("GET", "/repositories/", 502)
    house.repo.permission("wright", "write")
    assert house.refresh_budget() == before


def test_looking_again_where_nothing_has_changed_costs_nothing(house: House) -> None:
    house.repo.permission("wright", "write")
    refresh_budget, before = [house.refresh_budget() for _ in range(2)], house.used()
    assert (refresh_budget, house.refresh_budget(), house.used()) == ([[], []], [], before)
    house.repo.permission("wright", "read")
    assert len(house.refresh_budget()) == 1


def test_a_refusal_is_told(house: House) -> None:
    house.github.fail_next("GET", "/repos/acme/widgets", 404)
    (said,) = house.refresh_budget()
    assert "404" in said


def test_a_renamed_repository_is_known_by_its_number_and_written_to_where_it_is(
    house: House,
) -> None:
    house.repo.permission("wright", "write")
    house.refresh_budget()
    house.repo.rename("gadgets", by="acme")
    squatter = house.github.repository("acme/widgets")
    assert house.refresh_budget() == []
    (place,) = house.store.repositories.all()
    assert (place.id, place.name, place.current_name) == (
        house.repo.id,
        "acme/widgets",
        "acme/gadgets",
    )
    issue = house.repo.open_issue("It breaks", by="acme")
    house.client.write.comment("acme/widgets", issue.number, "Hello", "key")
    assert [len(issue.comments), len(squatter.issues)] == [1, 0]
    assert house.client.read.issue("acme/widgets", issue.number)


def test_what_was_known_of_a_repository_is_known_after_a_restart(house: House) -> None:
    house.repo.permission("wright", "write")
    house.refresh_budget()
    house.repo.rename("gadgets", by="acme")
    house.refresh_budget()
    again = GitHub(f"{house.github.url}api/v3", Credentials(token="wrights"))
    AccessObserver(house.store, again, [], lambda: NOW)
    assert again.aliases.now("acme/widgets") == "acme/gadgets"
    again.close()


def test_a_repository_that_is_gone_gives_its_name_to_another(house: House) -> None:
    house.repo.permission("wright", "write")
    place = RepositoryRecord(id=5, name="acme/widgets", current_name="acme/widgets")
    house.store.repositories.record(place, NOW)
    house.watch = AccessObserver(house.store, house.client, house.watch._projects, lambda: NOW)
    assert house.refresh_budget() == []
    assert [one.id for one in house.store.repositories.all()] == [house.repo.id]


def test_an_archived_repository_is_told_of_while_it_is(house: House) -> None:
    house.repo.permission("wright", "write")
    house.repo.archive(by="acme")
    assert house.refresh_budget() == ["acme/widgets: it is archived, so that nothing starts there"]
    assert [one.archived for one in house.store.repositories.all()] == [True]
    house.repo.archive(by="acme", archived=False)
    assert house.refresh_budget() == []


def test_what_github_says_of_our_rights_is_looked_at_at_once_and_once(house: House) -> None:
    asked = [
        RefreshRequest(repository=name, subject=RIGHTS) for name in ("acme/widgets", "acme/gears")
    ]
    house.store.refreshes.request(asked, NOW)
    assert house.watch.read_requested() == 2
    assert len(house.store.incidents.current()) == 1
    assert house.watch.read_requested() == 0
