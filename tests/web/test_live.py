"""The event stream of changed sessions, and the server's shutdown."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from typing import Any

import httpx
import pytest

from bot.system.http_server import CannotListen, HttpServer
from bot.web import page_feed
from bot.web.live import Watchers
from bot.web.page_feed import PageFeed
from lifecycle.model.status import Status
from tests.web.conftest import Site, bearer
from tests.world.waiting import PATIENCE, eventually


@contextmanager
def watching(site: Site) -> Iterator[Iterator[str]]:
    """The lines of an open stream."""
    with site.http.stream("GET", "/events", headers=bearer(), timeout=PATIENCE) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        assert next(lines).startswith(":")
        yield lines


def next_changes(lines: Iterator[str]) -> list[dict[str, Any]]:
    for line in lines:
        if line.startswith("data: "):
            changes: list[dict[str, Any]] = json.loads(line.removeprefix("data: "))
            return changes
    raise AssertionError("the stream ended")


def streams(site: Site) -> int:
    return len(site.watchers._streams)


def test_a_changed_session_is_sent_as_its_row(site: Site) -> None:
    session = site.session(1, title="<b>Title</b>")
    with watching(site) as lines:
        site.decide(session, Status.NEEDS_INPUT, "it asks: why?")
        (change,) = next_changes(lines)
    assert (change["id"], change["group"]) == (session, "people")
    assert "&lt;b&gt;Title&lt;/b&gt;" in change["html"]
    assert "It asks: why?" in change["html"]


def test_a_new_session_is_sent_to_every_page(site: Site) -> None:
    with watching(site) as first, watching(site) as second:
        session = site.session(5)
        for lines in (first, second):
            assert session in {change["id"] for change in next_changes(lines)}


def test_a_change_is_read_once_for_all_pages(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    session, read = site.session(1), list[str]()
    get = site.store.sessions.get

    def counted(id: str) -> Any:
        read.append(id)
        return get(id)

    with ExitStack() as opened:
        pages = [opened.enter_context(watching(site)) for _ in range(50)]
        monkeypatch.setattr(site.store.sessions, "get", counted)
        for number in range(3):
            site.watchers.changed(session)
            for lines in pages:
                assert [change["id"] for change in next_changes(lines)] == [session]
            assert read == [session] * (number + 1)


def test_a_page_that_is_far_behind_connects_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server keeps only a few messages in memory, so it ends the stream of a slow page.

    The page then connects again and reloads.
    """
    monkeypatch.setattr(page_feed, "_KEPT", 2)
    assert asyncio.run(_received("ab")) == [b"a", b"b"]
    assert asyncio.run(_received("abc")) is None


async def _received(changes: str) -> Sequence[bytes] | None:
    """Return the first change that a page receives after several; None if its stream ends."""
    watchers = Watchers()
    watchers.open()
    feed = PageFeed(watchers, lambda ids: min(ids).encode())
    async with (
        asyncio.timeout(PATIENCE),
        aclosing(feed.follow()) as slow,
        aclosing(feed.follow()) as fast,
    ):
        assert await anext(slow) == await anext(fast) == ()
        for change in changes:
            watchers.changed(change)
            assert await anext(fast) == [change.encode()]
        return await anext(slow, None)


def test_a_closed_page_is_removed_from_the_watchers(site: Site) -> None:
    with watching(site):
        eventually(lambda: streams(site) == 1, "it watches")
    site.session(1)  # a dead connection is noticed when something is sent
    eventually(lambda: streams(site) == 0, "it is removed")


def test_unread_changes_use_bounded_memory(site: Site) -> None:
    session = site.session(1)
    with watching(site) as lines:
        for _ in range(10_000):
            site.watchers.changed(session)
        assert [change["id"] for change in next_changes(lines)] == [session]


def test_a_corrupt_row_does_not_break_the_stream(site: Site) -> None:
    bad, good = site.session(1), site.session(2)
    site.store.db.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET issue = '{}' WHERE id = ?", (bad,)
        )
    )
    with watching(site) as lines:
        site.watchers.changed(bad)
        site.decide(good, Status.STUCK, "no progress")
        seen: list[str] = []
        while not seen:
            seen = [change["id"] for change in next_changes(lines)]
        assert seen == [good]


def test_open_streams_do_not_delay_the_shutdown(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvicorn would wait for them, and then cut them off."""
    monkeypatch.setattr("bot.system.http_server._STOP_SECONDS", 2 * PATIENCE)
    site = make_site()
    with watching(site) as lines:
        stopper = threading.Thread(target=site.server.stop)
        stopper.start()
        stopper.join(PATIENCE)
        assert not stopper.is_alive()
        assert "data" not in "".join(lines)  # ended in order: nothing is raised


def test_a_change_without_a_running_server_is_ignored(make_site: Callable[..., Site]) -> None:
    site = make_site()
    Watchers().changed("before the start")
    site.server.stop()
    site.watchers.changed("after the end")
    site.server.stop()


def test_a_running_request_finishes_before_the_shutdown(make_site: Callable[..., Site]) -> None:
    site = make_site()
    started = threading.Event()

    def slow() -> bool:
        started.set()
        time.sleep(0.2)
        return True

    site.store.writable = slow  # type: ignore[method-assign]
    answers: list[int] = []
    asker = threading.Thread(
        target=lambda: answers.append(httpx.get(f"{site.url}/readyz").status_code)
    )
    asker.start()
    assert started.wait(PATIENCE)
    site.server.stop()
    asker.join()
    assert answers == [200]


def test_an_address_in_use_is_reported_before_the_start(site: Site) -> None:
    with pytest.raises(CannotListen, match=rf"port {site.server.port}: .* set another `port`"):
        HttpServer(site.app, "127.0.0.1", site.server.port)


@pytest.mark.parametrize(("host", "error"), [("192.0.2.1", "check `host`"), ("no host", "`host`")])
def test_an_invalid_address_is_reported(site: Site, host: str, error: str) -> None:
    with pytest.raises(CannotListen, match=error):
        HttpServer(site.app, host, 0)
