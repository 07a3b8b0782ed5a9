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


class LostWebhooks:
    """An App whose webhook URL does not respond, and the redelivery."""

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
        """Open `count` issues whose webhooks are lost; return the ids of the lost deliveries."""
        before = len(self.github.deliveries)
        for _ in range(count):
            self.repo.open_issue("Broken", by="acme")
        lost = self.github.deliveries[before:]
        eventually(lambda: all(one.status_code for one in lost), "every delivery failed")
        return [one.guid for one in lost]

    def sent_again(self) -> list[str]:
        return sorted(one.guid for one in self.github.deliveries if one.redelivery)


@pytest.fixture
def webhooks(tmp_path: Path) -> Iterator[LostWebhooks]:
    store = Store(empty_database(tmp_path / "database"))
    with FaultyGitHub(tmp_path / "github") as github:
        webhooks = LostWebhooks(github, store)
        yield webhooks
        webhooks.client.close()
    store.close()


def test_every_lost_delivery_is_requested_once(webhooks: LostWebhooks) -> None:
    webhooks.github.lose_next(130)
    lost = webhooks.loses(130)
    for _ in range(2):
        webhooks.redelivery.request_lost()
        assert webhooks.sent_again() == sorted(lost)


def test_a_delivery_that_arrived_is_not_requested(webhooks: LostWebhooks) -> None:
    first, second = webhooks.loses(2)
    come = Delivery(id=first, event="issues", at=datetime.now(UTC), body=b"{}")
    webhooks.store.deliveries.add([come]).result(5)
    webhooks.redelivery.request_lost()
    assert webhooks.sent_again() == [second]


def test_a_recent_delivery_is_requested_by_the_next_run(webhooks: LostWebhooks) -> None:
    lost = webhooks.loses()
    webhooks.ahead = timedelta()
    webhooks.redelivery.request_lost()
    assert webhooks.sent_again() == []
    webhooks.ahead = timedelta(minutes=2)
    webhooks.redelivery.request_lost()
    assert webhooks.sent_again() == lost


def test_a_delivery_refused_for_its_content_is_not_requested(webhooks: LostWebhooks) -> None:
    webhooks.github.app_webhook(webhooks.app, f"{webhooks.github.url}nowhere", "secret")
    webhooks.loses()
    codes = {one.guid: one.status_code for one in webhooks.github.deliveries}
    assert sorted(code for code in codes.values() if code) == [404, 502]
    webhooks.redelivery.request_lost()
    assert webhooks.sent_again() == [guid for guid, code in codes.items() if code == 502]


def test_an_outage_leaves_lost_deliveries_to_the_next_run(webhooks: LostWebhooks) -> None:
    lost = webhooks.loses()
    webhooks.github.fail_next("POST", "attempts", status=502)
    webhooks.redelivery.request_lost()
    assert webhooks.sent_again() == []
    webhooks.redelivery.request_lost()
    assert webhooks.sent_again() == lost


def test_a_delivery_that_github_deleted_does_not_stop_the_others(webhooks: LostWebhooks) -> None:
    lost = webhooks.loses(3)
    webhooks.github.fail_next("POST", "attempts", status=422)
    webhooks.redelivery.request_lost()
    assert len(webhooks.sent_again()) == 2
    webhooks.redelivery.request_lost()
    assert set(webhooks.sent_again()) < set(lost), "nor is it asked for without an end"


def test_a_delivery_older_than_githubs_retention_is_not_requested(webhooks: LostWebhooks) -> None:
    webhooks.loses()
    webhooks.ahead = timedelta(days=4)
    webhooks.redelivery.request_lost()
    assert webhooks.sent_again() == []


def test_with_a_token_nothing_is_requested(webhooks: LostWebhooks) -> None:
    webhooks.loses()
    client = GitHub(f"{webhooks.github.url}api/v3", Credentials(token="s3cret"))
    Redelivery(
        webhooks.store.deliveries, webhooks.store.cursors, client, webhooks.clock
    ).request_lost()
    client.close()
    assert webhooks.github.requests == []
