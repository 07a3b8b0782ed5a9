"""An event stream covers only the visitor's projects, and ends when the visitor loses access."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import httpx
import pytest

from bot.web import access
from bot.web.sign_ins import COOKIE
from bot.web.visitor import Visitor
from lifecycle.model.status import Reason, Status
from tests.web.people import People

STREAMS = ("/events", "/api/v1/events")


@pytest.fixture
def filled(people: People) -> People:
    """With a session in each project, and somebody who may read one of them."""
    people.site.session(1)
    people.site.session(1, project="gears")
    people.may("wendy", "read", "widgets")
    return people


@contextmanager
def following(client: httpx.Client, path: str) -> Iterator[Iterator[str]]:
    with client.stream("GET", path) as response:
        assert response.status_code == 200
        lines = response.iter_lines()
        assert next(lines).startswith(":")
        yield (line for line in lines if line.startswith("data: "))


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_has_only_events_of_the_visitors_projects(filled: People, path: str) -> None:
    with filled.signed_in("wendy") as client, following(client, path) as lines:
        filled.site.decide("gears-1", Status.NEEDS_INPUT, "it asks for a secret")
        filled.site.decide("widgets-1", Status.NEEDS_INPUT, "it asks: why?")
        line = next(lines)
    assert "widgets-1" in line
    assert "gears-1" not in line


def test_an_open_page_gets_the_buttons_of_its_role(filled: People) -> None:
    def card(login: str) -> str:
        with filled.signed_in(login) as client, following(client, "/events") as lines:
            paused = f"paused while {login} watches"
            reason = Reason.PAUSED_BY_PERSON
            filled.site.decide("widgets-1", Status.PAUSED, paused, reason=reason)
            html: str = json.loads(next(lines).removeprefix("data: "))[0]["html"]
            return html

    filled.may("william", "write")
    assert 'value="resume"' in card("william")
    assert 'value="resume"' not in card("wendy")


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("how", ["permission", "sign-out"])
def test_a_stream_ends_when_its_visitor_may_no_longer_see_it(
    filled: People, path: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_STREAM_SECONDS", 0.0)
    with filled.signed_in("wendy") as client, following(client, path) as lines:
        filled.site.decide("widgets-1", Status.NEEDS_INPUT, "it asks: why?")
        next(lines)
        if how == "permission":
            filled.may("wendy", "none")
            filled.later += timedelta(seconds=300)
        else:
            filled.site.sign_ins.end_all(Visitor(login="wendy"))
        filled.site.decide("widgets-1", Status.WORKING, "it works")
        assert list(lines) == []


def test_a_stream_remains_open_when_its_browser_gets_another_cookie(
    filled: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_STREAM_SECONDS", 0.0)
    with filled.signed_in("wendy") as client, following(client, "/events") as lines:
        before = client.cookies[COOKIE]
        filled.later += timedelta(minutes=61)
        for _ in range(2):
            assert client.get("/account").status_code == 200
        assert client.cookies[COOKIE] != before
        filled.later += timedelta(minutes=2)
        filled.site.decide("widgets-1", Status.NEEDS_INPUT, "it asks: why?")
        assert "widgets-1" in next(lines)
