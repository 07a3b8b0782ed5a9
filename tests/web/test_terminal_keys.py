"""People type into the terminals of sandboxed sessions, on the page and over the API."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from bot.store import HistoryKind, Observation, TokenScope
from lifecycle.model.actions import PressKeys
from lifecycle.model.facts import Agent, Exit
from lifecycle.model.status import Probe, Status
from tests.web.conftest import Site, bearer
from tests.web.people import People, form_token

ID = "widgets-1"


def typed(
    site: Site, key: str = "k-1", *, headers: Mapping[bytes, bytes] | None = None, **body: Any
) -> httpx.Response:
    """Type over the API, by default the letter y as somebody with the page's token."""
    return site.http.post(
        f"/api/v1/sessions/{ID}/keys",
        json=body or {"keys": ["y"]},
        headers={b"idempotency-key": key.encode(), **(headers or bearer())},
    )


def due(site: Site) -> list[PressKeys]:
    found = site.store.outbox.due(site.store.clock())
    return [one.action for one in found if isinstance(one.action, PressKeys)]


def recorded(site: Site) -> list[tuple[str, int]]:
    """Who typed how much, by the history."""
    history = reversed(site.store.history.of(ID))
    return [(one.actor, one.data["count"]) for one in history if one.kind is HistoryKind.KEYS]


def test_what_is_typed_waits_in_the_outbox_and_only_its_length_is_in_the_history(
    site: Site,
) -> None:
    site.session(1)
    response = typed(site, paste="a pass\x1bword", keys=["Enter"])
    assert response.status_code == 202
    assert response.json() == {"session": ID, "run": 1, "count": 11, "new": True}
    (action,) = due(site)
    assert (action.paste, action.keys, action.by) == ("a password", ("Enter",), "api:client")
    assert recorded(site) == [("api:client", 11)]
    assert "password" not in str(site.store.history.of(ID))
    assert "typed 11 characters into the terminal" in site.seen(f"/sessions/{ID}").text


def test_batches_are_one_entry_of_the_timeline(site: Site) -> None:
    site.session(1)
    for number in range(3):
        typed(site, f"k-{number}", keys=["a"] * 4)
    page = site.seen(f"/sessions/{ID}").text
    assert page.count("into the terminal.") == 1
    assert "typed 12 characters into the terminal." in page


def test_a_repeated_request_types_nothing_again(site: Site) -> None:
    site.session(1)
    typed(site)
    again = typed(site)
    assert (again.status_code, again.json()["new"]) == (200, False)
    other = typed(site, keys=["n", "o"])
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    assert recorded(site) == [("api:client", 1)]
    assert len(due(site)) == 1


def test_a_session_without_a_sandbox_is_refused_with_a_remedy(site: Site) -> None:
    site.session(1)
    site.isolated = False
    problem = typed(site)
    assert problem.status_code == 403
    assert "does not run in a sandbox" in problem.json()["detail"]
    assert "restart the session" in problem.json()["remedy"]
    assert due(site) == []
    site.screen = "$"
    page = site.seen(f"/sessions/{ID}/terminal").text
    assert "You cannot type here: the agent of widgets-1 does not run in a sandbox" in page
    assert 'id="keyboard"' not in page


def test_a_frozen_bot_types_nothing(site: Site) -> None:
    site.session(1)
    site.store.freezes.add("", "ada")
    problem = typed(site)
    assert (problem.status_code, problem.json()["detail"]) == (409, "@ada froze everything.")
    assert problem.json()["remedy"] == "Undo the freeze first."


@pytest.mark.parametrize(
    "agent",
    [
        {"program": Probe.DEAD},
        {"stopped": True},
        {"exit": "now"},
        {"run": 0},
    ],
)
def test_a_program_that_does_not_run_is_typed_nothing(site: Site, agent: dict[str, Any]) -> None:
    site.session(1)
    now = site.store.clock()
    facts = {**agent, "exit": Exit(at=now, code=0) if "exit" in agent else None}
    seen = Observation(session=ID, agent=replace(Agent(run=1), **facts))
    site.store.observations.record([seen], now)
    problem = typed(site)
    assert problem.status_code == 409
    assert problem.json()["detail"] == "The agent of widgets-1 is not running."


def test_an_ended_session_is_typed_nothing(site: Site) -> None:
    site.session(1)
    site.end(ID, Status.MERGED)
    assert typed(site).status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {"keys": ["ab"]},
        {"keys": ["\x1b"]},
        {"keys": ["a\n"]},
        {"keys": ["a"] * 101},
        {"paste": "x" * 10_001},
        {"paste": ""},
        {"keys": "a"},
        {"text": "a"},
    ],
)
def test_what_is_no_key_or_too_much_is_refused(site: Site, body: dict[str, Any]) -> None:
    site.session(1)
    assert typed(site, **body).status_code == 400
    assert due(site) == []


def test_requests_are_limited_for_each_session(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.session(1)
    now = site.store.clock()
    monkeypatch.setattr(site.store, "clock", lambda: now)  # On a busy machine they take long.
    answers = [typed(site, f"k-{number}") for number in range(41)]
    assert [one.status_code for one in answers] == [202] * 40 + [429]
    assert answers[-1].headers["retry-after"] == "1"
    site.typing_clock += 0.125
    assert [typed(site, f"l-{number}").status_code for number in range(3)] == [202, 202, 429]


def test_nothing_is_taken_while_the_bot_does_not_type(people: People) -> None:
    site = people.site
    site.session(1)
    assert typed(site).status_code == 202
    people.later = timedelta(seconds=6)
    problem = typed(site, "k-2")
    assert (problem.status_code, problem.json()["detail"]) == (
        503,
        "the bot is not passing keys on to the terminal now.",
    )


def test_only_administrators_type(filled: People) -> None:
    for level, status in (("read", 403), ("triage", 403), ("write", 403), ("admin", 202)):
        token = filled.token(f"{level}-er", TokenScope.ADMIN)
        response = typed(filled.site, headers=token)
        assert response.status_code == status
        if status == 403:
            assert response.headers["content-type"] == "application/problem+json"
    assert typed(filled.site, headers=filled.token("admin-er", TokenScope.STEER)).status_code == 403
    assert recorded(filled.site) == [("admin-er", 1)]


def test_the_refusal_of_a_cookie_names_the_token_that_a_person_has(filled: People) -> None:
    with filled.signed_in("admin-er") as client:
        response = client.post(f"/api/v1/sessions/{ID}/keys", json={"keys": ["y"]})
    assert response.status_code == 403
    assert response.json()["remedy"].endswith("TOKEN with a personal token.")


def test_the_page_has_a_keyboard_for_administrators(filled: People) -> None:
    filled.site.screen = "$"
    path = f"/sessions/{ID}/terminal"
    with filled.signed_in("write-er") as client:
        assert 'id="keyboard"' not in client.get(path).text
        assert "Typing here needs the permission <code>admin</code>." in client.get(path).text
    with filled.signed_in("admin-er") as client:
        page = client.get(path).text
        assert 'id="keyboard"' in page
        assert '<script src="/static/terminal.js" defer>' in page
        fields = {"csrf": form_token(client), "key": "a1", "keys": json.dumps(["l", "s", "Enter"])}
        assert client.post(f"/sessions/{ID}/keys", data=fields).status_code == 202
        assert client.post(f"/sessions/{ID}/keys", data=fields).json()["new"] is False
        for wrong, status in (
            ({"csrf": ""}, 403),
            ({"keys": "["}, 400),
            ({"keys": "[7]"}, 400),
            ({"key": ""}, 400),
        ):
            problem = client.post(f"/sessions/{ID}/keys", data={**fields, **wrong})
            assert problem.status_code == status
            assert problem.headers["content-type"] == "application/problem+json"
    (action,) = due(filled.site)
    assert (action.keys, action.by) == (("l", "s", "Enter"), "admin-er")
