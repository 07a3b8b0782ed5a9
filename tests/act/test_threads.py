"""Replies to review threads, which are resolved only on request."""

from typing import Any

import pytest

from lifecycle.model.actions import Reply
from lifecycle.model.key import parse
from tests.harness.site import Site


class ReviewThreads:
    """A GitHub that records replies and resolutions."""

    def __init__(self) -> None:
        self.reviews = self
        self.done: list[str] = []

    def reply(
        self, repository: str, number: int, threads: tuple[str, ...], body: str, key: str, **_: Any
    ) -> None:
        self.done.append(f"{' '.join(threads)}: {body}")

    def resolve(self, repository: str, threads: tuple[str, ...]) -> None:
        self.done.append(f"{' '.join(threads)} resolved")


@pytest.mark.parametrize("resolve", [False, True])
def test_a_thread_is_resolved_only_on_request(site: Site, resolve: bool) -> None:
    github: Any = ReviewThreads()
    values = {"sha": "cafe"}
    reply = Reply(
        key=parse("reply:1"),
        number=3,
        threads=("T1", "T2"),
        topic="done_in",
        values=values,
        resolve=resolve,
    )
    site.scenario.orders(site.id, reply)
    (due,) = site.scenario.store.outbox.due(site.scenario.clock())
    site.dispatcher(github).do(due, lambda: None)
    said = "T1 T2: The agent has read this conversation and then pushed cafe."
    assert github.done == [said, *(["T1 T2 resolved"] if resolve else [])]
