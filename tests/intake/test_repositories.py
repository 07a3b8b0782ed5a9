"""A delivery belongs to the repository with its id, whatever name it gives."""

from typing import Any

import pytest

from bot.intake.inbox import Inbox
from bot.store import RepositoryRecord, Store
from tests.intake.test_inbox import NOW, delivery, inbox, labelled, refreshed, store, woken

__all__ = ["inbox", "store", "woken"]  # Fixtures.


def place(store: Store, id: int, name: str, now: str) -> None:
    store.repositories.record(RepositoryRecord(id=id, name=name, current_name=now), NOW)


def in_repository(id: int, name: str) -> dict[str, Any]:
    return labelled() | {"repository": {"id": id, "full_name": name}}


def test_a_repository_is_recognized_by_its_id_under_any_name(store: Store, inbox: Inbox) -> None:
    place(store, 1, "acme/widgets", "acme/widgets")
    inbox.accept([delivery("a", "issues", in_repository(1, "acme/gadgets"))]).result(5)
    inbox.process()
    assert refreshed(store) == [("acme/widgets", "issue:12")]


def test_another_repository_with_a_former_name_is_ignored(store: Store, inbox: Inbox) -> None:
    place(store, 1, "acme/widgets", "acme/gadgets")
    inbox.accept([delivery("a", "issues", in_repository(2, "acme/widgets"))]).result(5)
    inbox.process()
    assert refreshed(store) == []


def test_a_delivery_counts_while_its_repository_is_being_recorded(
    store: Store, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = store.repositories.named

    def recorded_meanwhile(name: str) -> RepositoryRecord | None:
        place(store, 1, name, name)
        return named(name)

    monkeypatch.setattr(store.repositories, "named", recorded_meanwhile)
    inbox.accept([delivery("a", "issues", in_repository(1, "acme/widgets"))]).result(5)
    inbox.process()
    assert refreshed(store) == [("acme/widgets", "issue:12")]


def test_a_repository_configured_by_its_new_name_counts_before_it_is_read(
    store: Store, inbox: Inbox
) -> None:
    place(store, 1, "acme/gears", "acme/widgets")
    inbox.accept([delivery("a", "issues", in_repository(1, "acme/widgets"))]).result(5)
    inbox.process()
    assert refreshed(store) == [("acme/widgets", "issue:12")]
