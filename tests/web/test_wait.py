"""Waiting for a session over the API."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lifecycle.model.status import Reason, Status
from tests.web.conftest import Site
from tests.world.waiting import PATIENCE, eventually

FOREVER = int(PATIENCE)


class Waiting:
    """A request that waits, in its own thread."""

    def __init__(self, site: Site, query: str) -> None:
        self.answer: dict[str, Any] = {}
        self._site = site
        self._query = query
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        eventually(lambda: site.watchers._streams or not self._thread.is_alive(), "it waits")

    def _run(self) -> None:
        self.answer = self._site.seen(f"/api/v1/sessions/widgets-1?{self._query}").json()

    @property
    def waits(self) -> bool:
        return self._thread.is_alive()

    def status(self) -> str:
        self._thread.join(PATIENCE)
        return str(self.answer["session"]["status"])


def test_a_request_waits_until_the_session_needs_a_person(site: Site) -> None:
    session = site.session(1)
    waiting = Waiting(site, f"wait=needs_input&timeout={FOREVER}")
    site.decide(session, Status.CI_FAILED, "checks failed")
    assert waiting.waits
    site.decide(session, Status.STUCK, "no progress", reason=Reason.REPAIRS_EXHAUSTED)
    assert waiting.status() == "stuck"


def test_a_request_waits_for_the_merge(site: Site) -> None:
    session = site.session(1)
    waiting = Waiting(site, f"wait=merged&timeout={FOREVER}")
    site.decide(session, Status.NEEDS_INPUT, "it asks")
    assert waiting.waits
    site.end(session, Status.MERGED)
    assert waiting.status() == "merged"


def test_a_session_that_ended_otherwise_is_not_waited_for(site: Site) -> None:
    session = site.session(1)
    waiting = Waiting(site, f"wait=merged&timeout={FOREVER}")
    site.end(session, Status.KILLED)
    assert waiting.status() == "killed"
    assert Waiting(site, f"wait=needs_input&timeout={FOREVER}").status() == "killed"


def test_the_answer_comes_at_once_if_it_is_reached(site: Site) -> None:
    site.session(1, status=Status.NEEDS_INPUT, reason=Reason.AGENT_QUESTION)
    assert Waiting(site, f"wait=needs_input&timeout={FOREVER}").status() == "needs_input"


def test_the_answer_comes_when_the_time_is_over(site: Site) -> None:
    site.session(1)
    begun = time.monotonic()
    assert Waiting(site, "wait=merged&timeout=0.2").status() == "working"
    assert time.monotonic() - begun >= 0.2


def test_a_request_that_waits_does_not_delay_the_shutdown(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.system.http_server._STOP_SECONDS", 2 * PATIENCE)
    site = make_site()
    site.session(1)
    waiting = Waiting(site, f"wait=merged&timeout={FOREVER}")
    site.server.stop()
    assert waiting.status() == "working"


@pytest.mark.parametrize("query", ["wait=later", "wait=merged&timeout=601", "timeout=-1"])
def test_an_invalid_wait_is_refused(site: Site, query: str) -> None:
    site.session(1)
    assert site.seen(f"/api/v1/sessions/widgets-1?{query}").status_code == 400


def test_an_unknown_session_is_not_waited_for(site: Site) -> None:
    assert site.seen("/api/v1/sessions/nope?wait=merged").status_code == 404
