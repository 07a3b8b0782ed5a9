"""The observer of access: missing permissions, renamed and archived repositories."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.demo.github.repository import Repository
from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.observe.repositories import AccessObserver
from bot.store import ACCESS, RefreshRequest, RepositoryRecord, Store
from config.settings import ProjectSettings
from tests.world.databases import empty_database
from tests.world.faulty_github import FaultyGitHub

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class ObservedAccess:
    """A repository at the stand-in, and its access observer."""

    def __init__(self, github: FaultyGitHub, repo: Repository, store: Store) -> None:
        self.github, self.repo, self.store = github, repo, store
        self.client = GitHub(f"{github.url}api/v3", Credentials(token="wrights"))
        self.watch = self.observer(self.client)

    def observer(self, client: GitHub) -> AccessObserver:
        store, project = self.store, ProjectSettings(repository=self.repo.full_name)
        return AccessObserver(
            *(store.repositories, store.refreshes, store.incidents, client, {"widgets": project}),
            lambda: NOW,
        )

    def used(self) -> int:
        """Points of the rate limit that were used."""
        return self.github.traffic.spend("wright", "core", 0)["used"]

    def incidents(self) -> list[str]:
        self.watch.read_all()
        return [one.text for one in self.store.incidents.current()]


@pytest.fixture
def access(tmp_path: Path) -> Iterator[ObservedAccess]:
    store = Store(empty_database(tmp_path / "database"))
    with FaultyGitHub(tmp_path / "github") as github:
        github.user("wright", token="wrights")
        access = ObservedAccess(github, github.repository("acme/widgets"), store)
        yield access
        access.client.close()
    store.close()


def test_a_missing_permission_is_an_incident_while_it_is_missing(access: ObservedAccess) -> None:
    assert access.incidents() == ["acme/widgets: the account has no write access"]
    access.repo.permission("wright", "write")
    assert access.incidents() == []


def test_an_outage_says_nothing_about_access(access: ObservedAccess) -> None:
    access.repo.permission("wright", "write")
    access.github.fail_next("GET", "/repos/acme/widgets", 502)
    assert access.incidents() == []
    access.repo.permission("wright", "read")
    before = access.incidents()
    access.github.fail_next("GET", "/repositories/", 502)
    access.repo.permission("wright", "write")
    assert access.incidents() == before


def test_reading_unchanged_access_again_costs_no_points(access: ObservedAccess) -> None:
    access.repo.permission("wright", "write")
    later, before = [access.incidents() for _ in range(2)], access.used()
    assert (later, access.incidents(), access.used()) == ([[], []], [], before)
    access.repo.permission("wright", "read")
    assert len(access.incidents()) == 1


def test_a_refusal_is_an_incident(access: ObservedAccess) -> None:
    access.github.fail_next("GET", "/repos/acme/widgets", 404)
    (said,) = access.incidents()
    assert "404" in said


def test_a_renamed_repository_is_recognized_by_its_id(
    access: ObservedAccess,
) -> None:
    access.repo.permission("wright", "write")
    access.incidents()
    access.repo.rename("gadgets", by="acme")
    squatter = access.github.repository("acme/widgets")
    assert access.incidents() == []
    (place,) = access.store.repositories.all()
    assert (place.id, place.name, place.current_name) == (
        access.repo.id,
        "acme/widgets",
        "acme/gadgets",
    )
    issue = access.repo.open_issue("It breaks", by="acme")
    access.client.write.comment("acme/widgets", issue.number, "Hello", "key")
    assert [len(issue.comments), len(squatter.issues)] == [1, 0]
    assert access.client.read.issue("acme/widgets", issue.number)


def test_renamed_repositories_are_known_after_a_restart(access: ObservedAccess) -> None:
    access.repo.permission("wright", "write")
    access.incidents()
    access.repo.rename("gadgets", by="acme")
    access.incidents()
    again = GitHub(f"{access.github.url}api/v3", Credentials(token="wrights"))
    access.observer(again)
    assert again.aliases.name("acme/widgets") == "acme/gadgets"
    again.close()


def test_another_repository_may_take_the_name_of_a_deleted_one(access: ObservedAccess) -> None:
    access.repo.permission("wright", "write")
    place = RepositoryRecord(id=5, name="acme/widgets", current_name="acme/widgets")
    access.store.repositories.record(place, NOW)
    access.watch = access.observer(access.client)
    assert access.incidents() == []
    assert [one.id for one in access.store.repositories.all()] == [access.repo.id]


def test_an_archived_repository_is_an_incident_while_it_is_archived(access: ObservedAccess) -> None:
    access.repo.permission("wright", "write")
    access.repo.archive(by="acme")
    assert access.incidents() == ["acme/widgets: it is archived, so no session starts there"]
    assert [one.archived for one in access.store.repositories.all()] == [True]
    access.repo.archive(by="acme", archived=False)
    assert access.incidents() == []


def test_a_webhook_about_access_leads_to_one_read_at_once(access: ObservedAccess) -> None:
    asked = [
        RefreshRequest(repository=name, subject=ACCESS) for name in ("acme/widgets", "acme/gears")
    ]
    access.store.refreshes.request(asked, NOW)
    assert access.watch.read_requested() == 2
    assert len(access.store.incidents.current()) == 1
    assert access.watch.read_requested() == 0
