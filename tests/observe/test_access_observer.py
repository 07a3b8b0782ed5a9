"""The observer of access: missing permissions, renamed and archived repositories."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.observe.access import AccessObserver
from bot.store import ACCESS, RefreshRequest, RepositoryRecord, Store
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


def test_a_missing_permission_is_an_incident_while_it_is_missing(house: House) -> None:
    assert house.refresh_budget() == ["acme/widgets: its account may not write"]
    house.repo.permission("wright", "write")
    assert house.refresh_budget() == []


def test_an_outage_says_nothing_about_access(house: House) -> None:
    house.repo.permission("wright", "write")
    house.github.fail_next("GET", "/repos/acme/widgets", 502)
    assert house.refresh_budget() == []
    house.repo.permission("wright", "read")
    before = house.refresh_budget()
    house.github.fail_next("GET", "/repositories/", 502)
    house.repo.permission("wright", "write")
    assert house.refresh_budget() == before


def test_reading_unchanged_access_again_costs_no_points(house: House) -> None:
    house.repo.permission("wright", "write")
    refresh_budget, before = [house.refresh_budget() for _ in range(2)], house.used()
    assert (refresh_budget, house.refresh_budget(), house.used()) == ([[], []], [], before)
    house.repo.permission("wright", "read")
    assert len(house.refresh_budget()) == 1


def test_a_refusal_is_an_incident(house: House) -> None:
    house.github.fail_next("GET", "/repos/acme/widgets", 404)
    (said,) = house.refresh_budget()
    assert "404" in said


def test_a_renamed_repository_is_recognized_by_its_id(
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


def test_renamed_repositories_are_known_after_a_restart(house: House) -> None:
    house.repo.permission("wright", "write")
    house.refresh_budget()
    house.repo.rename("gadgets", by="acme")
    house.refresh_budget()
    again = GitHub(f"{house.github.url}api/v3", Credentials(token="wrights"))
    AccessObserver(house.store, again, [], lambda: NOW)
    assert again.aliases.name("acme/widgets") == "acme/gadgets"
    again.close()


def test_another_repository_may_take_the_name_of_a_deleted_one(house: House) -> None:
    house.repo.permission("wright", "write")
    place = RepositoryRecord(id=5, name="acme/widgets", current_name="acme/widgets")
    house.store.repositories.record(place, NOW)
    house.watch = AccessObserver(house.store, house.client, house.watch._projects, lambda: NOW)
    assert house.refresh_budget() == []
    assert [one.id for one in house.store.repositories.all()] == [house.repo.id]


def test_an_archived_repository_is_an_incident_while_it_is_archived(house: House) -> None:
    house.repo.permission("wright", "write")
    house.repo.archive(by="acme")
    assert house.refresh_budget() == ["acme/widgets: it is archived, so that nothing starts there"]
    assert [one.archived for one in house.store.repositories.all()] == [True]
    house.repo.archive(by="acme", archived=False)
    assert house.refresh_budget() == []


def test_a_webhook_about_access_leads_to_one_read_at_once(house: House) -> None:
    asked = [
        RefreshRequest(repository=name, subject=ACCESS) for name in ("acme/widgets", "acme/gears")
    ]
    house.store.refreshes.request(asked, NOW)
    assert house.watch.read_requested() == 2
    assert len(house.store.incidents.current()) == 1
    assert house.watch.read_requested() == 0
