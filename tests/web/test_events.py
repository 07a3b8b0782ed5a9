"""The event stream of the API."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.store import Store
from bot.web import event_feed
from lifecycle.model.status import Status
from tests.web.conftest import Site, bearer
from tests.world.waiting import PATIENCE, eventually


@contextmanager
def following(site: Site, query: str = "", last: int | None = None) -> Iterator[Iterator[str]]:
    """The lines of an open stream."""
    headers = bearer() | ({b"last-event-id": str(last).encode()} if last is not None else {})
    path = f"/api/v1/events{query}"
    with site.http.stream("GET", path, headers=headers, timeout=PATIENCE) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        assert next(lines).startswith(":")
        yield lines


def events(lines: Iterator[str], many: int) -> list[dict[str, Any]]:
    """Return the next `many` events; check that the `id:` line of each has the event's own id."""
    found: list[dict[str, Any]] = []
    sent = ""
    while len(found) < many:
        line = next(lines)
        if line.startswith("id: "):
            sent = line.removeprefix("id: ")
        elif line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
            assert sent == str(found[-1]["id"])
    return found


def newest(site: Site) -> int:
    return site.store.history.newest_seq()


def test_an_event_has_what_happened_in_words(site: Site) -> None:
    session = site.session(1)
    with following(site) as lines:
        site.decide(session, Status.NEEDS_INPUT, "it asks: why?")
        (event,) = events(lines, 1)
    at = datetime.fromisoformat(event.pop("at"))
    assert datetime.now(UTC) - at < timedelta(seconds=PATIENCE)
    assert event == {
        "id": newest(site),
        "session": session,
        "project": "widgets",
        "kind": "decision",
        "actor": "",
        "status": "needs_input",
        "text": "it asks: why?",
        "actions": [],
    }
    (shown, *_) = site.seen(f"/api/v1/sessions/{session}/history").json()["items"]
    assert shown["id"] == event["id"]


def test_a_stream_resumes_after_the_last_event_of_the_client(site: Site) -> None:
    session = site.session(1)
    last = newest(site)
    for number in range(3):
        site.decide(session, Status.WORKING, f"step {number}")
    expected = ["step 0", "step 1", "step 2"]
    for query, header in (("", last), (f"?after={last}", None), ("?after=0", last)):
        with following(site, query, header) as lines:
            assert [one["text"] for one in events(lines, len(expected))] == expected
            expected.append(f"then {len(expected)}")
            site.decide(session, Status.WORKING, expected[-1])
            assert events(lines, 1)[0]["text"] == expected[-1]


def test_a_stream_has_only_what_it_asks_for(site: Site) -> None:
    first, second = site.session(1), site.session(2)
    with following(site, f"?session={second}") as lines:
        site.decide(first, Status.WORKING, "not this")
        site.decide(second, Status.WORKING, "but this")
        assert [one["text"] for one in events(lines, 1)] == ["but this"]


def test_a_stream_of_another_project_has_nothing(make_site: Callable[..., Site]) -> None:
    site = make_site()
    session = site.session(1)
    with following(site, "?project=gears&after=0") as lines:
        site.decide(session, Status.WORKING, "nothing of gears")
        site.server.stop()
        assert "data" not in "".join(lines)


def test_every_event_is_sent_once_to_all_clients_by_one_query(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = site.session(1)
    read, answers = site.store.history.after, list[int]()

    def counted(after: int, most: int) -> Any:
        found = read(after, most)
        answers.append(len(found))
        return found

    monkeypatch.setattr(site.store.history, "after", counted)
    with ExitStack() as opened:
        streams = [opened.enter_context(following(site)) for _ in range(20)]
        for number in range(30):
            site.decide(session, Status.WORKING, f"step {number}")
        texts = [[one["text"] for one in events(lines, 30)] for lines in streams]
    assert texts == [[f"step {number}" for number in range(30)]] * 20
    assert sum(answers) == 30, "each event is read once, however many clients follow"


def test_what_another_process_writes_is_sent(site: Site) -> None:
    """The command line writes beside the bot, which hears nothing of it."""
    session = site.session(1)
    other = Store.beside(site.store.path, lambda text: text)
    try:
        with following(site) as lines:
            other.freezes.add("session:" + session, "cli:ada")
            (event,) = events(lines, 1)
    finally:
        other.close()
    assert (event["kind"], event["actor"]) == ("freeze", "cli:ada")


def test_a_client_that_is_far_behind_reads_from_the_store(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "_BATCH", 4)
    session = site.session(1)
    last = newest(site)
    for number in range(10):
        site.decide(session, Status.WORKING, f"step {number}")
    with following(site, last=last) as lines:
        assert [one["text"][5:] for one in events(lines, 10)] == list("0123456789")


def test_nothing_is_read_without_clients(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[int]()

    def read(after: int, most: int) -> Any:
        reads.append(after)
        return []

    monkeypatch.setattr(site.store.history, "after", read)
    session = site.session(1)
    with following(site):
        site.decide(session, Status.WORKING, "read")
        eventually(lambda: len(reads) > 0, "it is read")
    site.decide(session, Status.WORKING, "the connection is seen to be closed")
    eventually(lambda: not site.watchers._streams, "the feed stops")
    reads.clear()
    site.decide(session, Status.WORKING, "not read")
    site.seen("/api/v1/queue")
    assert reads == []


@pytest.mark.parametrize("query", ["?after=-1", "?after=x", f"?after={2**64}"])
def test_an_invalid_place_is_refused(site: Site, query: str) -> None:
    response = site.seen(f"/api/v1/events{query}")
    assert (response.status_code, response.json()["status"]) == (400, 400)


def test_open_streams_end_when_the_server_stops(make_site: Callable[..., Site]) -> None:
    site = make_site()
    with following(site) as lines:
        site.server.stop()
        assert "data" not in "".join(lines)
