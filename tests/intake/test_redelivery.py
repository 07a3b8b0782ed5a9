"""Redelivery: every webhook that GitHub could not deliver is requested once."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.github.auth import Credentials
from bot.github.client import GitHub
from bot.intake.redelivery import Redelivery
from bot.store import Delivery, Store
from tests.world.app_key import PRIVATE, PUBLIC
from tests.world.databases import empty_database
from tests.world.faulty_github import FaultyGitHub
from tests.world.waiting import eventually

NOBODY = "http://127.0.0.1:1/nobody"


class House:
    """An App whose webhook nobody answers, and who asks for what was lost."""

    def __init__(self, github: FaultyGitHub, store: Store, url: str = NOBODY) -> None:
        self.github, self.store = github, store
        self.app = github.app("mergewright", PUBLIC)
        github.app_webhook(self.app, url, "secret")
        self.repo = github.repository("acme/widgets")
        credentials = Credentials(app_id=str(self.app.id), private_key=PRIVATE)
        self.client = GitHub(f"{github.url}api/v3", credentials)
        self.ahead = timedelta(minutes=2)
        self.redelivery = Redelivery(store.deliveries, store.cursors, self.client, self.clock)

    def clock(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def loses(self, count: int = 1) -> list[str]:
        """Issues are opened and their webhooks lost; the names of those deliveries."""
        before = len(self.github.deliveries)
        for _ in range(count):
            self.repo.open_issue("Broken", by="acme")
        lost = self.github.deliveries[before:]
        eventually(lambda: all(one.status_code for one in lost), "nobody answered")
        return [one.guid for one in lost]

    def sent_again(self) -> list[str]:
        return sorted(one.guid for one in self.github.deliveries if one.redelivery)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    store = Store(empty_database(tmp_path / "database"))
    with FaultyGitHub(tmp_path / "github") as github:
        house = House(github, store)
        yield house
        house.client.close()
    store.close()


def test_every_lost_delivery_is_requested_once(house: House) -> None:
    house.github.lose_next(130)
    lost = house.loses(130)
    for _ in range(2):
        house.redelivery.request_lost()
        assert house.sent_again() == sorted(lost)


def test_a_delivery_that_arrived_is_not_requested(house: House) -> None:
    first, second = house.loses(2)
    come = Delivery(id=first, event="issues", at=datetime.now(UTC), body=b"{}")
    house.store.deliveries.add([come]).result(5)
    house.redelivery.request_lost()
    assert house.sent_again() == [second]


def test_a_recent_delivery_is_requested_by_the_next_run(house: House) -> None:
    lost = house.loses()
    house.ahead = timedelta()
    house.redelivery.request_lost()
    assert house.sent_again() == []
    house.ahead = timedelta(minutes=2)
    house.redelivery.request_lost()
    assert house.sent_again() == lost


def test_a_delivery_refused_for_its_content_is_not_requested(house: House) -> None:
    house.github.app_webhook(house.app, f"{house.github.url}nowhere", "secret")
    house.loses()
    codes = {one.guid: one.status_code for one in house.github.deliveries}
    assert sorted(code for code in codes.values() if code) == [404, 502]
    house.redelivery.request_lost()
    assert house.sent_again() == [guid for guid, code in codes.items() if code == 502]


def test_an_outage_leaves_lost_deliveries_to_the_next_run(house: House) -> None:
    lost = house.loses()
    house.github.fail_next("POST", "attempts", status=502)
    house.redelivery.request_lost()
    assert house.sent_again() == []
    house.redelivery.request_lost()
    assert house.sent_again() == lost


def test_a_delivery_that_github_deleted_does_not_stop_the_others(house: House) -> None:
    lost = house.loses(3)
    house.github.fail_next("POST", "attempts", status=422)
    house.redelivery.request_lost()
    assert len(house.sent_again()) == 2
    house.redelivery.request_lost()
    assert set(house.sent_again()) < set(lost), "nor is it asked for without an end"


def test_a_delivery_older_than_githubs_retention_is_not_requested(house: House) -> None:
    house.loses()
    house.ahead = timedelta(days=4)
    house.redelivery.request_lost()
    assert house.sent_again() == []


def test_with_a_token_nothing_is_requested(house: House) -> None:
    house.loses()
    client = GitHub(f"{house.github.url}api/v3", Credentials(token="s3cret"))
    Redelivery(house.store.deliveries, house.store.cursors, client, house.clock).request_lost()
    client.close()
    assert house.github.requests == []
