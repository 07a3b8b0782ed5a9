"""The API: sessions, commands, idempotency and error messages."""

from typing import Any

import httpx
import pytest

from bot.intake.local_commands import LOCAL_COMMANDS
from bot.show.transcripts import NoTranscript
from bot.store import Configuration, Observation
from lifecycle.model import keys
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Pull
from lifecycle.model.status import Status
from runtimes.agents.shared.messages import Message, MessageKind
from tests.web.conftest import Site, bearer, sign_in

HEAD = "a" * 40


def commands(site: Site, session: str) -> list[tuple[str, str, str]]:
    found = site.store.sessions.get(session)
    assert found is not None
    return [(command.kind, command.text, command.actor) for command in found.commands]


def asked(site: Site, session: str, key: str = "k-1", **body: Any) -> httpx.Response:
    headers = {**bearer(), b"idempotency-key": key.encode()}
    return site.http.post(f"/api/v1/sessions/{session}/commands", json=body, headers=headers)


@pytest.mark.parametrize("shown", ["Bearer of ill news", "Basic dTpw"])
def test_a_cookie_with_a_wrong_bearer_token_cannot_write(site: Site, shown: str) -> None:
    session = site.session(1)
    sign_in(site)
    response = site.http.post(
        f"/api/v1/sessions/{session}/commands",
        json={"kind": "stop"},
        headers={"idempotency-key": "k", "authorization": shown},
    )
    assert response.status_code == 403
    assert commands(site, session) == []


def test_a_command_is_stored_and_its_session_reconciled(site: Site) -> None:
    session = site.session(1)
    response = asked(site, session, kind="tell", text=" use the other parser ")
    assert response.status_code == 202
    assert response.json() == {
        "key": "api:widgets-1:k-1",
        "session": session,
        "kind": "tell",
        "text": "use the other parser",
        "new": True,
    }
    assert commands(site, session) == [("tell", "use the other parser", "api:client")]
    found = site.store.sessions.get(session)
    assert found is not None
    assert found.due is not None


def test_a_sessions_budgets_follow_its_repositorys_policy(site: Site) -> None:
    session = site.session(1)
    expected = "[policy]\nsession-usd = 1.5\n"
    site.policies.apply(Configuration(repository="acme/widgets", valid=expected))
    try:
        page = site.seen(f"/api/v1/sessions/{session}").json()["budgets"]
        assert [one["limit"] for one in page if one["name"] == "session"] == [1.5]
    finally:
        site.policies.apply(Configuration(repository="acme/widgets"))


def test_a_transcript_is_read_in_parts(site: Site) -> None:
    session = site.session(1)
    looked_up: list[object] = []

    def transcript(*given: object) -> list[Message]:
        looked_up.append(given)
        return [Message(kind=MessageKind.ANSWER, text="Done.")]

    site.transcript = transcript
    page = site.seen(f"/api/v1/sessions/{session}/transcript?run=2&cursor=200&limit=50")
    assert page.json() == {"items": [{"kind": "answer", "text": "Done."}], "cursor": 201}
    site.seen(f"/api/v1/sessions/{session}/transcript")
    assert looked_up == [(session, 2, 200, 50), (session, 0, 0, 100)]
    for part in ("limit=1001", f"cursor={10**20}", "run=-1"):
        assert site.seen(f"/api/v1/sessions/{session}/transcript?{part}").status_code == 400
    assert site.seen("/api/v1/sessions/nope/transcript").status_code == 404


def test_a_run_without_a_transcript_is_not_found(site: Site) -> None:
    def nothing(*_: object) -> list[Message]:
        raise NoTranscript("widgets-1 has no run 7")

    session = site.session(1)
    site.transcript = nothing
    page = site.seen(f"/api/v1/sessions/{session}/transcript?run=7")
    assert (page.status_code, page.json()["detail"]) == (404, "widgets-1 has no run 7.")


def test_a_repeated_request_creates_one_command(site: Site) -> None:
    session = site.session(1)
    assert asked(site, session, kind="budget", text="5").status_code == 202
    again = asked(site, session, kind="budget", text="+5")
    assert (again.status_code, again.json()["new"]) == (200, False)
    assert commands(site, session) == [("budget", "+5", "api:client")]


def test_a_reused_idempotency_key_is_refused(site: Site) -> None:
    session = site.session(1)
    asked(site, session, kind="pause")
    response = asked(site, session, kind="stop")
    assert response.status_code == 409
    assert response.json()["remedy"] == "Use a new Idempotency-Key."
    assert [kind for kind, _, _ in commands(site, session)] == ["pause"]


def test_idempotency_keys_are_per_session(site: Site) -> None:
    for number in (1, 2):
        assert asked(site, site.session(number), kind="pause").status_code == 202


@pytest.mark.parametrize("key", ["", "with a blank", "x" * 101, "a/b"])
def test_a_missing_or_invalid_idempotency_key_is_refused(site: Site, key: str) -> None:
    session = site.session(1)
    response = asked(site, session, key=key, kind="stop")
    assert response.status_code == 400
    assert "Idempotency-Key" in response.json()["detail"]
    assert "when you retry a request" in response.json()["remedy"]
    assert commands(site, session) == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            {"kind": "stopp"},
            "there is no command 'stopp'; did you mean stop? known: agent, allow, answer,",
        ),
        ({"kind": "help"}, "there is no command 'help'"),
        ({"kind": "tell"}, "tell needs a text"),
        ({"kind": "budget", "text": "lots"}, "budget needs an amount in US dollars"),
        ({"kind": "merge", "text": "squish"}, "merge takes at most one of"),
        ({"kind": "stop", "text": "now"}, "stop takes no argument"),
        ({"kind": "merge", "head": "a"}, "head: Expected `str` matching regex"),
        ({}, "missing required field `kind`"),
        ({"kind": 1}, "Expected `str`, got `int`"),
        ({"kind": "stop", "what": 1}, "unknown field `what`"),
    ],
)
def test_an_invalid_command_is_refused_with_a_remedy(
    site: Site, body: dict[str, Any], error: str
) -> None:
    session = site.session(1)
    response = asked(site, session, **body)
    assert response.status_code == 400
    assert error in response.json()["detail"]
    assert response.json()["remedy"]
    assert commands(site, session) == []


def test_an_invalid_or_too_long_body_is_refused(site: Site) -> None:
    path = f"/api/v1/sessions/{site.session(1)}/commands"
    headers = {**bearer(), b"idempotency-key": b"k", b"content-type": b"application/json"}
    assert site.http.post(path, content=b"{", headers=headers).status_code == 400
    response = site.http.post(path, content=b"x" * 200_000, headers=headers)
    assert response.status_code == 413
    assert response.json()["remedy"] == "Send at most 100000 bytes."


@pytest.mark.parametrize("body", [b'{"kind": "tell", "text": "\xff"}', b"[" * 50_000])
def test_a_body_that_breaks_the_decoder_is_refused(site: Site, body: bytes) -> None:
    path = f"/api/v1/sessions/{site.session(1)}/commands"
    headers = {**bearer(), b"idempotency-key": b"k", b"content-type": b"application/json"}
    response = site.http.post(path, content=body, headers=headers)
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json() == {
        "status": 400,
        "title": "Bad Request",
        "detail": "The body is not valid JSON.",
        "remedy": "See /api/v1/openapi.json or docs/api.md for the parameters of each route.",
        "errors": [],
    }


def test_every_command_is_accepted(site: Site) -> None:
    session = site.session(1, pulls=(Pull(number=34, head=HEAD),))
    texts = {"tell": "x", "answer": "x", "budget": "+1", "agent": "ada", "allow": HEAD}
    for kind in LOCAL_COMMANDS:
        assert asked(site, session, key=kind, kind=kind, text=texts.get(kind, "")).is_success
    assert {kind for kind, _, _ in commands(site, session)} == set(LOCAL_COMMANDS)


def test_a_merge_is_bound_to_the_current_head(site: Site) -> None:
    session = site.session(1, pulls=(Pull(number=34, head=HEAD),))
    assert asked(site, session, key="1", kind="merge").is_success
    assert asked(site, session, key="2", kind="merge", text="rebase", head=HEAD).is_success
    found = site.store.sessions.get(session)
    assert found is not None
    assert [(command.text, command.head) for command in found.commands] == [
        ("", HEAD),
        ("rebase", HEAD),
    ]


def test_a_merge_at_another_head_is_refused(site: Site) -> None:
    session = site.session(1, pulls=(Pull(number=34, head=HEAD),))
    response = asked(site, session, kind="merge", head="b" * 40)
    assert response.status_code == 409
    assert response.json()["detail"].startswith(
        "no open pull request of widgets-1 is at the commit bbbbbbb any more; look at"
    )
    assert "Review the pull request's current commit" in response.json()["remedy"]
    assert commands(site, session) == []


def test_a_merge_can_be_repeated_after_the_head_changed(site: Site) -> None:
    """A client that got no answer may repeat its request after the pull request has changed."""
    session = site.session(1, pulls=(Pull(number=34, head=HEAD),))
    assert asked(site, session, kind="merge", head=HEAD).status_code == 202
    changed = Observation(session=session, pulls=(Pull(number=34, head="b" * 40),))
    site.store.observations.record([changed], site.store.clock())
    for body in ({"head": HEAD}, {}):
        again = asked(site, session, kind="merge", **body)
        assert (again.status_code, again.json()["new"]) == (200, False)
    other = asked(site, session, kind="merge", head="b" * 40)
    assert (other.status_code, other.json()["remedy"]) == (409, "Use a new Idempotency-Key.")
    assert commands(site, session) == [("merge", "", "api:client")]


@pytest.mark.parametrize("cursor", ["", "x", "12", "12.0:", "-1.0:widgets-1", "1.0:a b", "é"])
def test_an_invalid_cursor_is_refused(site: Site, cursor: str) -> None:
    response = site.seen(f"/api/v1/sessions?cursor={cursor}")
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "cursor")


def test_pages_of_sessions_follow_each_other(site: Site) -> None:
    for number in (1, 2, 3):
        site.session(number)
    first = site.seen("/api/v1/sessions?limit=2").json()
    second = site.seen(f"/api/v1/sessions?limit=2&cursor={first['cursor']}").json()
    found = [one["id"] for page in (first, second) for one in page["items"]]
    assert (found, second["cursor"]) == (["widgets-3", "widgets-2", "widgets-1"], None)


def test_a_session_includes_facts_history_outbox_and_replies(site: Site) -> None:
    session = site.session(1)
    asked(site, session, kind="pause")
    values = {"text": "Paused: the program is stopped."}
    answer = Comment(
        key=keys.command_applied("api:widgets-1:k-1"), number=1, topic="answer", values=values
    )
    site.decide(session, Status.PAUSED, "paused", actions=(answer,))
    why = site.seen(f"/api/v1/sessions/{session}/why").json()
    assert why["facts"]["session"] == session
    assert why["decision"]["status"]
    whole = site.seen(f"/api/v1/sessions/{session}").json()
    assert whole["history"]
    (letter,) = whole["outbox"]
    assert (letter["key"], letter["state"], letter["tries"]) == (str(answer.key), "waiting", 0)
    (command,) = whole["commands"]
    assert (command["kind"], command["actor"]) == ("pause", "api:client")
    assert command["answer"] == "Paused: the program is stopped."


def test_metadata_is_merged_and_removed(site: Site) -> None:
    session = site.session(1)

    def patched(values: object) -> httpx.Response:
        path = f"/api/v1/sessions/{session}/metadata"
        return site.http.patch(path, json=values, headers=bearer())

    expected = {"ticket": "A-1", "team": "blue"}
    assert patched(expected).json() == expected
    assert patched({"ticket": None}).json() == {"team": "blue"}
    (listed,) = site.seen("/api/v1/sessions").json()["items"]
    assert listed["metadata"] == {"team": "blue"}
    response = patched({"a key": "x"})
    assert (response.status_code, response.json()["detail"]) == (400, "'a key' is not a valid key.")


@pytest.mark.parametrize(("target", "scope"), [("all", ""), ("project:widgets",) * 2])
def test_a_scope_is_frozen_and_unfrozen(site: Site, target: str, scope: str) -> None:
    site.session(1)
    path = f"/api/v1/freezes/{target}"
    for _ in range(2):
        (freeze,) = site.http.put(path, headers=bearer()).json()
        assert (freeze["scope"], freeze["by"]) == (scope, "api:client")
    assert site.seen("/api/v1/freezes").json() == [freeze]
    assert site.http.delete(path, headers=bearer()).json() == []


@pytest.mark.parametrize(
    ("scope", "status"), [("widgets", 400), ("project:gears", 404), ("session:widgets-1", 400)]
)
def test_an_unknown_scope_cannot_be_frozen(site: Site, scope: str, status: int) -> None:
    site.session(1)
    response = site.http.put(f"/api/v1/freezes/{scope}", headers=bearer())
    assert response.status_code == status
    assert response.json()["detail"] == f"There is no scope {scope!r}."
    assert "known: widgets" in response.json()["remedy"]


def test_closed_incidents_are_listed_too(site: Site) -> None:
    now = site.store.clock()
    site.store.incidents.report("many-lost", "five sessions seem dead at once", now)
    site.store.incidents.clear("many-lost", now)
    (incident,) = site.seen("/api/v1/incidents").json()
    assert (incident["key"], incident["text"]) == ("many-lost", "five sessions seem dead at once")
    assert incident["cleared_at"]


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/api/v1/sessions/nope", 404, "No session nope."),
        ("/api/v1/nowhere", 404, "Not Found"),
    ],
)
def test_not_found_errors_have_a_remedy(site: Site, path: str, status: int, error: str) -> None:
    response = site.seen(path)
    assert (response.status_code, response.json()["detail"]) == (status, error)
    assert "GET /api/v1/sessions lists the sessions" in response.json()["remedy"]


def test_a_server_error_has_the_same_format(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(site.store.freezes, "all", fails)
    response = site.seen("/api/v1/freezes")
    assert response.status_code == 500
    assert response.json() == {
        "status": 500,
        "title": "Internal Server Error",
        "detail": "The server could not answer this request.",
        "remedy": "See the server's log for details.",
        "errors": [],
    }


def begun(site: Site, key: str = "k-1", **body: Any) -> httpx.Response:
    headers = {**bearer(), b"idempotency-key": key.encode()}
    body = {"project": "widgets", "issue": 12, **body}
    return site.http.post("/api/v1/sessions", json=body, headers=headers)


def test_the_api_starts_a_session_once(site: Site) -> None:
    response = begun(site, agent="shell")
    assert (response.status_code, response.json()) == (
        202,
        {
            "key": "api:widgets-12:k-1",
            "session": "widgets-12",
            "kind": "start",
            "text": "shell",
            "new": True,
        },
    )
    again = begun(site, agent="shell")
    assert (again.status_code, again.json()["new"]) == (200, False)
    (command,) = site.store.commands.new()
    assert (command.repository, command.number, command.kind) == ("acme/widgets", 12, "start")
    assert (command.actor, command.text) == ("api:client", "shell")


def test_a_start_with_a_reused_idempotency_key_is_refused(site: Site) -> None:
    assert begun(site).status_code == 202
    assert begun(site, agent="shell").status_code == 409
    assert [command.text for command in site.store.commands.new()] == [""]


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({"project": "gears"}, 404, "No project 'gears'."),
        ({"agent": "ada"}, 404, "No agent 'ada'."),
        ({"agent": "ada permission-mode=auto"}, 404, "No agent 'ada'."),
        (
            {"agent": "shell permission-mode=yolo"},
            400,
            "start takes one of `permission-mode=auto`",
        ),
        ({"issue": 0}, 400, "issue: Expected `int` >= 1"),
        ({"issue": 2**31}, 400, "issue: Expected `int` <= 2147483647"),
        ({"key": "two words"}, 400, "Idempotency-Key: Expected `str` matching regex"),
    ],
)
def test_an_invalid_start_is_refused_at_once(
    site: Site, body: dict[str, Any], status: int, expected: str
) -> None:
    response = begun(site, **body)
    assert response.status_code == status
    assert expected in response.json()["detail"]
    assert response.json()["remedy"]
    assert site.store.commands.new() == []
