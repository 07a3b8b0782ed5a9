"""Signed deliveries that cannot be decoded are shown, and what they name is read again."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec import DecodeError

from bot.intake.inbox import Inbox
from bot.store import DatedKind, Store
from tests.intake.test_inbox import REPOSITORY, SUBJECTS, comment, delivery
from tests.world.databases import empty_database


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(empty_database(tmp_path / "store.db"))
    yield store
    store.close()


@pytest.fixture
def inbox(store: Store) -> Inbox:
    return Inbox(store, frozenset({"acme/widgets"}), lambda: None)


NUMBERED = {"number": 12}


@pytest.mark.parametrize(
    ("event", "body", "read"),
    [
        pytest.param("issues", {"action": 7, "issue": NUMBERED}, ["issue:12"], id="the issue"),
        pytest.param(
            "issue_comment",
            {"action": "created", "issue": NUMBERED, "comment": {"id": "a text"}},
            ["issue:12"],
            id="the commented issue",
        ),
        pytest.param(
            "pull_request_review",
            {"pull_request": {"number": 34}, "review": None},
            ["other:34"],
            id="the pull request",
        ),
        pytest.param(
            "issues",
            {"issue": NUMBERED, "repository": {"id": "odd", "full_name": "acme/widgets"}},
            ["issue:12"],
            id="a repository without a number",
        ),
        pytest.param(
            "issues", {"issue": {"number": 2**70}}, ["repository:"], id="a number beyond 64 bit"
        ),
        pytest.param("push", {"ref": None}, ["repository:"], id="the repository"),
        pytest.param(
            "issues",
            {"issue": NUMBERED, "repository": {"full_name": "other/one", "id": None}},
            [],
            id="not ours",
        ),
        pytest.param("issues", b"[" * 100_000, [], id="deep"),
        pytest.param("issues", b"\xff\xfe", [], id="no text"),
        pytest.param("issues", b"12", [], id="no object"),
    ],
)
def test_an_undecodable_delivery_is_logged_counted_and_what_it_names_is_read(
    store: Store,
    inbox: Inbox,
    caplog: pytest.LogCaptureFixture,
    event: str,
    body: bytes | dict[str, Any],
    read: list[str],
) -> None:
    if isinstance(body, dict):
        body = {"repository": REPOSITORY, **body}
    for name in ("first", "second"):
        inbox.accept([delivery(name, event, body)]).result(5)
        inbox.process()
    due = store.refreshes.due(datetime.now(UTC), (*SUBJECTS, "other:", "repository:"))
    assert [refresh.subject for refresh in due] == read
    assert f"delivery second ({event}) could not be decoded" in caplog.text
    (incident,) = store.incidents.current()
    says = f"2 webhook deliveries could not be processed, the last is an event `{event}`"
    assert incident.text.startswith(says)
    assert {one.id for one in store.deliveries.failed()} == {"second", "first"}


def test_undecodable_deliveries_can_be_processed_again_after_an_upgrade(
    store: Store, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrote = comment("/mergewright stop")
    with monkeypatch.context() as patch:
        patch.setattr("bot.intake.inbox.parse_event", Mock(side_effect=DecodeError("odd")))
        inbox.accept([delivery("a", "issue_comment", wrote)]).result(5)
        inbox.process()
    assert store.commands.new() == []
    assert store.deliveries.retry(["a", "unknown"]) == 1
    assert store.deliveries.retry(["a"]) == 0
    upgraded = Inbox(store, frozenset({"acme/widgets"}), lambda: None)
    assert upgraded.process() == 1
    assert [command.kind for command in store.commands.new()] == ["stop"]
    assert store.incidents.current() == []


def test_an_incident_of_deliveries_that_were_deleted_is_closed(store: Store, inbox: Inbox) -> None:
    inbox.accept([delivery("a", "issues", b"odd")]).result(5)
    inbox.process()
    store.expiry.delete_dated(DatedKind.DELIVERIES, datetime.now(UTC) + timedelta(days=1))
    restarted = Inbox(store, frozenset({"acme/widgets"}), lambda: None)
    restarted.process()
    assert store.incidents.current() == []
