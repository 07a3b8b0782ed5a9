"""A thread is answered, and settled only where that was asked for."""

from typing import Any

import pytest

from bot.act.dispatch import ActionDispatcher
from bot.system.redaction import Redaction
from lifecycle.model.actions import Reply
from lifecycle.model.key import parse
from tests.harness.site import Site


class Told:
    """A GitHub that remembers what was done with its threads."""

    def __init__(self) -> None:
        self.reviews = self
        self.done: list[str] = []

    def answer(
        self, repository: str, number: int, threads: tuple[str, ...], body: str, key: str
    ) -> None:
        self.done.append(f"{' '.join(threads)}: {body}")

    def resolve(self, repository: str, threads: tuple[str, ...]) -> None:
        self.done.append(f"{' '.join(threads)} settled")


@pytest.mark.parametrize("resolve", [False, True])
def test_a_thread_is_settled_only_where_that_was_asked_for(site: Site, resolve: bool) -> None:
    github: Any = Told()
    nobody: Any = None
    room = site.room
    act = ActionDispatcher(
        room.store, github, site.locations, site.agents, "", Redaction(), nobody, room.clock
    )
    values = {"sha": "cafe"}
    reply = Reply(
        key=parse("reply:1"),
        number=3,
        threads=("T1", "T2"),
        topic="done_in",
        values=values,
        resolve=resolve,
    )
    site.room.orders(site.id, reply)
    (due,) = site.room.store.outbox.due(site.room.clock())
    act.do(due, lambda: None)
    assert github.done == ["T1 T2: Done in cafe.", *(["T1 T2 settled"] if resolve else [])]
