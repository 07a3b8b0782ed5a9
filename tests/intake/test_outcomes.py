"""What followed from a delivery is kept with it, or the reason why nothing did."""

import json
from typing import Any

import pytest

from bot.intake.inbox import Inbox
from bot.store import DeliveryEffect, Ignored, Store
from tests.intake.test_inbox import NOW, OUR_REPORT, comment, delivery, inbox, store, woken

__all__ = ["inbox", "store", "woken"]  # Fixtures.


@pytest.mark.parametrize(
    ("event", "body", "why"),
    [
        ("issue_comment", comment(OUR_REPORT), Ignored.OWN),
        (
            "issue_comment",
            comment("hello") | {"repository": {"id": 2, "full_name": "x/y"}},
            Ignored.REPOSITORY,
        ),
        ("issue_comment", comment("/mergewright stop", "Bot"), Ignored.BOT),
        ("issue_comment", comment("hello"), Ignored.SESSION),
        ("ping", {}, Ignored.EVENT),
    ],
)
def test_an_ignored_delivery_is_stored_with_the_reason(
    store: Store, event: str, body: dict[str, Any], why: Ignored
) -> None:
    body = {**body, "issue": {"number": 12, "labels": []}} if body else body
    inbox = Inbox(
        store,
        ["acme/widgets"],
        lambda: None,
        is_me=lambda login: login == "mara",
        triggers={"acme/widgets": ["mergewright"]},
    )
    assert inbox.interpret(event, json.dumps(body).encode()) == ((), ())
    inbox.accept([delivery("a", event, body)]).result(5)
    inbox.process()
    record = store.deliveries.record("a")
    assert record is not None
    assert (record.state, record.ignored, record.effects) == ("done", why, ())


def test_what_follows_from_a_delivery_is_stored_with_it(store: Store, inbox: Inbox) -> None:
    inbox.accept([delivery("a", "issue_comment", comment("/mergewright stop"))]).result(5)
    inbox.process()
    record = store.deliveries.record("a")
    assert record is not None
    assert (record.repository, record.ignored) == ("acme/widgets", "")
    assert record.effects == (
        DeliveryEffect(repository="acme/widgets", subject="issue:12"),
        DeliveryEffect(
            repository="acme/widgets", subject="number:12", command="stop", actor="mara"
        ),
    )
    assert store.deliveries.last() == {"acme/widgets": NOW}
