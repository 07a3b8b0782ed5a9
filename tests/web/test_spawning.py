"""Sessions for prompts and further sessions of issues, by the API."""

from typing import Any

import httpx
import pytest

from bot.store import NewSession, Observation
from lifecycle.model.candidates import Spawn
from lifecycle.model.facts import Agent, Issue, Usage
from lifecycle.model.status import Origin, Status
from tests.web.conftest import Site, bearer


def spawned(site: Site, key: str = "k-1", **body: Any) -> httpx.Response:
    headers = {**bearer(), b"idempotency-key": key.encode()}
    return site.http.post("/api/v1/sessions", json={"project": "widgets", **body}, headers=headers)


def test_the_api_opens_a_session_for_a_prompt_once(site: Site) -> None:
    wanted: dict[str, Any] = {
        "prompt": "Add a flag",
        "agent": "shell",
        "permission_mode": "confirm",
        "branch": "ann/flags",
        "budget_usd": 2.5,
        "metadata": {"team": "core"},
    }
    response = spawned(site, **wanted)
    assert (response.status_code, response.json()) == (
        202,
        {
            "key": "api:widgets:k-1",
            "session": "widgets-p1",
            "kind": "start",
            "text": "shell permission-mode=confirm",
            "new": True,
        },
    )
    again = spawned(site, **wanted)
    assert (again.status_code, again.json()["session"]) == (200, "widgets-p1")
    assert spawned(site, prompt="Something else").status_code == 409
    assert spawned(site, "k-2", prompt="Add a flag").json()["session"] == "widgets-p2"
    first, _ = site.store.commands.new()
    assert first.spawn == Spawn(
        session="widgets-p1",
        prompt="Add a flag",
        branch="ann/flags",
        budget_usd=2.5,
        metadata={"team": "core"},
    )


def test_a_session_that_is_not_open_yet_or_was_refused_says_so(site: Site) -> None:
    spawned(site, prompt="Add a flag")
    problem = site.seen("/api/v1/sessions/widgets-p1").json()
    assert (problem["status"], problem["detail"]) == (404, "No session widgets-p1 yet.")
    assert "Try again in a second" in problem["remedy"]
    site.store.commands.refuse("api:widgets:k-1", "there is no agent `ada` here")
    problem = site.seen("/api/v1/sessions/widgets-p1").json()
    why = "The session widgets-p1 was not opened: there is no agent `ada` here."
    assert (problem["status"], problem["detail"]) == (404, why)


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/agents/shell", "/costs", "/projects/widgets", "/sessions/widgets-p1"),
        *(f"/sessions/widgets-p1{tab}" for tab in ("?raw=true", "/checks", "/cost", "/facts")),
    ],
)
def test_every_page_shows_a_session_without_an_issue(site: Site, path: str) -> None:
    opened = NewSession(
        id="widgets-p1",
        project="widgets",
        repository="acme/widgets",
        created=site.store.clock(),
        issue=Issue(number=0, title="Add a flag"),
        branch="flags",
        origin=Origin.PROMPT,
        requester="mara",
        agent_type="shell",
        agent_name="shell",
    )
    assert site.store.sessions.create(opened)
    agent = Agent(run=1, usage=Usage(input=1000, cost_usd=1.5))
    site.store.observations.record(
        [Observation(session="widgets-p1", agent=agent)], site.store.clock()
    )
    site.decide("widgets-p1", Status.WORKING, "the agent is at work")
    response = site.seen(path)
    assert response.status_code == 200
    assert "Add a flag" in response.text
    assert "widgets-p1" in response.text
    assert "#0" not in response.text
    assert "issue 0" not in response.text.casefold()


def test_the_api_opens_another_session_of_an_issue_only_on_request(site: Site) -> None:
    site.session(1)
    refused = spawned(site, issue=1, branch="flags")
    assert (refused.status_code, refused.json()["detail"]) == (
        409,
        "issue #1 already has the session widgets-1.",
    )
    assert spawned(site, "k-2", issue=1, another=True).json()["session"] == "widgets-1b"


def test_a_start_names_the_session_of_the_issue_that_gets_it(site: Site) -> None:
    site.session(1)
    second = NewSession(
        id="widgets-1b",
        project="widgets",
        repository="acme/widgets",
        created=site.store.clock(),
        issue=Issue(number=1, title="A title"),
        branch="second",
    )
    assert site.store.sessions.create(second)
    assert spawned(site, issue=1).json()["session"] == "widgets-1b"


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({}, 400, "a session needs either an issue or a prompt"),
        ({"prompt": " "}, 400, "a session needs either an issue or a prompt"),
        ({"prompt": "x", "issue": 1}, 400, "a session needs either an issue or a prompt"),
        ({"chat": True, "issue": 1}, 400, "a chat has no issue"),
        ({"prompt": "x", "branch": "a b"}, 400, "'a b' is not a branch name"),
        ({"prompt": "x", "budget_usd": -1}, 400, "budget_usd: Expected `float` >= 0.0"),
        ({"prompt": "x", "another": 0}, 400, "another: Expected `bool`, got `int`"),
        ({"issue": "1"}, 400, "issue: Expected `int | null`, got `str`"),
        ({"prompt": "x", "branch": "a.lock"}, 400, "'a.lock' is not a branch name"),
        ({"prompt": "x", "metadata": {"two words": "x"}}, 400, "is not a key of metadata"),
        ({"prompt": "x", "agent": "ada"}, 404, "No agent 'ada'."),
        ({"prompt": "x", "permission_mode": "yolo"}, 400, "permission_mode: Invalid enum value"),
    ],
)
def test_an_invalid_request_for_a_session_is_refused_at_once(
    site: Site, body: dict[str, Any], status: int, expected: str
) -> None:
    response = spawned(site, **body)
    assert response.status_code == status, response.json()
    assert expected in response.json()["detail"]
    assert site.store.commands.new() == []
