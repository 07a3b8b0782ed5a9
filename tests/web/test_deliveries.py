"""Webhook deliveries: what each caused, why it was ignored, and what it would cause now."""

import json
import re
from typing import Any

import httpx
import pytest

from bot.store import Delivery, ProcessedDelivery
from lifecycle.model.status import Status
from tests.web.conftest import Site, bearer, sign_in

REPOSITORY = {"id": 1, "full_name": "acme/widgets"}
OTHER = {"id": 2, "full_name": "acme/gears"}


def issue(repository: dict[str, Any] = REPOSITORY, number: int = 1) -> dict[str, Any]:
    return {"action": "labeled", "issue": {"number": number}, "repository": repository}


def comment(text: str, type: str = "User") -> dict[str, Any]:
    return {
        "action": "created",
        "issue": {"number": 1, "labels": []},
        "comment": {
            "id": 9,
            "created_at": "2026-11-20T10:00:00Z",
            "body": text,
            "user": {"login": "mara", "type": type},
        },
        "repository": REPOSITORY,
    }


def arrives(site: Site, id: str, event: str, body: object, *, processed: bool = True) -> None:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    one = Delivery(id=id, event=event, at=site.store.clock(), body=sent)
    site.store.deliveries.add([one]).result()
    if processed:
        site.inbox.process()


def shown(site: Site, path: str) -> str:
    """A page as text, without its tags."""
    page = re.sub(r"<(script|style).*?</\1>", "", site.seen(path).text, flags=re.DOTALL)
    return " ".join(re.sub("<[^>]+>", " ", page).split())


def listed(site: Site, query: str = "") -> list[str]:
    return re.findall('href="/deliveries/([a-z0-9-]+)"', site.seen(f"/deliveries{query}").text)


@pytest.mark.parametrize(
    ("event", "body", "why"),
    [
        ("star", {}, "The bot does not read this kind of event or action."),
        ("issues", {**issue(), "action": "pinned"}, "The bot does not read this kind of event"),
        (
            "issues",
            issue(OTHER),
            "The repository acme/gears is not a project here: add it as a table",
        ),
        (
            "pull_request",
            {"pull_request": {"number": 7, "head": {"ref": "x"}}, "repository": REPOSITORY},
            "No session works on what changed, and no label or assignee asks for one.",
        ),
    ],
    ids=("event", "action", "repository", "session"),
)
def test_the_list_says_why_a_delivery_was_ignored(
    site: Site, event: str, body: object, why: str
) -> None:
    """The board links to the list of deliveries."""
    arrives(site, "d-1", event, body)
    assert '<a href="/deliveries">Deliveries</a>' in site.seen("/").text
    assert why.casefold() in shown(site, "/deliveries").casefold()
    (one,) = site.seen("/api/v1/deliveries?state=ignored").json()["items"]
    assert (one["id"], one["state"], one["outcomes"]) == ("d-1", "ignored", [])


def test_a_delivery_names_its_session_what_it_caused_and_what_happened_next(site: Site) -> None:
    session = site.session(1)
    arrives(site, "d-1", "issue_comment", comment("@mergewright stop"))
    site.decide(session, Status.WORKING, "a new reason")
    for path in ("/deliveries", "/deliveries/d-1"):
        page = site.seen(path).text
        assert f'<a href="/sessions/{session}">{session}</a>' in page
        words = shown(site, path)
        assert "The bot reads issue #1 of acme/widgets again. widgets-1" in words
        assert "@mara gave the command stop on #1. widgets-1" in words
    assert "What happened next in its sessions" in shown(site, "/deliveries/d-1")
    detail = site.seen("/api/v1/deliveries/d-1").json()
    assert detail["delivery"]["outcomes"] == [
        {"text": "the bot reads issue #1 of acme/widgets again", "session": session},
        {"text": "@mara gave the command `stop` on #1", "session": session},
    ]
    assert [one["session"] for one in detail["next"]] == [session]


def test_a_command_that_names_a_session_leads_to_that_one(site: Site) -> None:
    session = site.session(1)
    site.session(2)
    text = "@mergewright widgets-2 stop"
    arrives(site, "d-1", "issue_comment", comment(text))
    arrives(site, "d-2", "issue_comment", comment(text), processed=False)
    assert site.seen("/api/v1/deliveries/d-1").json()["delivery"]["outcomes"] == [
        {"text": "the bot reads issue #1 of acme/widgets again", "session": session},
        {"text": "@mara gave the command `stop` on widgets-2", "session": "widgets-2"},
    ]
    found = site.seen("/api/v1/deliveries/d-2/dry-run").json()
    assert [one["session"] for one in found["effects"]] == [session, "widgets-2"]


def test_a_failed_delivery_is_processed_again_after_a_confirmation(site: Site) -> None:
    arrives(site, "d-1", "issues", b'{"action": <b>}')
    sign_in(site)
    page = site.http.get("/deliveries/d-1").text
    begins = '<form method="post" action="/deliveries/d-1/retry">'
    (form,) = re.findall(f"{begins}.*?</form>", page, re.S)
    (folded,) = re.findall("<details.*?</details>", form, re.S)
    assert "<button>Process again</button>" in folded
    (csrf,) = re.findall('name="csrf" value="(.+?)"', form)
    refused = site.http.post("/deliveries/d-1/retry", data={"csrf": "x"})
    assert refused.status_code == 403
    assert site.store.deliveries.waiting() == []
    done = site.http.post("/deliveries/d-1/retry", data={"csrf": csrf})
    assert (done.status_code, done.headers["location"]) == (303, "/deliveries/d-1")
    assert [one.id for one in site.store.deliveries.waiting()] == ["d-1"]
    page = site.http.get("/deliveries/d-1").text
    assert "/retry" not in page, "it has not failed"
    assert site.http.post("/deliveries/nope/retry", data={"csrf": csrf}).status_code == 404


def test_a_dry_run_shows_what_a_delivery_would_cause_and_changes_nothing(site: Site) -> None:
    session = site.session(1)
    arrives(site, "d-1", "issue_comment", comment("@mergewright stop"), processed=False)
    words = shown(site, "/deliveries/d-1?dry=true")
    assert "The bot reads issue #1 of acme/widgets again. widgets-1" in words
    assert "@mara asks: stop. widgets-1" in words
    assert site.store.commands.new() == []
    assert [one.id for one in site.store.deliveries.waiting()] == ["d-1"]
    found = site.seen("/api/v1/deliveries/d-1/dry-run").json()
    assert [one["session"] for one in found["effects"]] == [session, session]


@pytest.mark.parametrize(
    ("event", "body", "words"),
    [
        ("issues", b"{", "It cannot be decoded: DecodeError: Input data was truncated."),
        ("star", b"{}", "Nothing: the bot does not read this kind of event or action."),
        (
            "issue_comment",
            comment("@mergewright stop", type="Bot"),
            "Nothing: policy.bots does not list the bot that wrote this.",
        ),
    ],
)
def test_a_dry_run_says_why_nothing_would_follow(
    site: Site, event: str, body: object, words: str
) -> None:
    arrives(site, "d-1", event, body, processed=False)
    site.inbox.use(["acme/widgets"], {"acme/widgets": ["mergewright"]})
    try:
        assert words in shown(site, "/deliveries/d-1?dry=true")
    finally:
        site.inbox.use(["acme/widgets"], {})


def test_deliveries_are_filtered_and_paged(site: Site) -> None:
    for number in range(45):
        arrives(site, f"d-{number}", "ping", {})
    arrives(site, "d-45", "issues", b"{")
    arrives(site, "d-46", "issues", issue())
    arrives(site, "d-47", "ping", {}, processed=False)
    newest = listed(site)
    assert newest[:3] == ["d-47", "d-46", "d-45"]
    assert len(newest) == 40
    (link,) = re.findall('rel="next" href="/deliveries([^"]+)"', site.seen("/deliveries").text)
    assert listed(site, link.replace("&amp;", "&")) == [f"d-{n}" for n in range(7, -1, -1)]
    assert listed(site, "?state=failed") == ["d-45"]
    assert listed(site, "?state=new") == ["d-47"]
    assert listed(site, "?event=issues") == ["d-46", "d-45"]
    assert listed(site, "?project=widgets") == ["d-46"]
    assert "No delivery matches." in shown(site, "/deliveries?event=push")
    page = site.seen("/api/v1/deliveries?limit=2&event=ping").json()
    assert [one["id"] for one in page["items"]] == ["d-47", "d-44"]
    rest = site.seen(f"/api/v1/deliveries?limit=200&event=ping&cursor={page['cursor']}").json()
    assert [len(rest["items"]), rest["cursor"]] == [44, None]
    assert site.seen("/api/v1/deliveries?project=nope").status_code == 404
    assert site.seen("/api/v1/deliveries?state=nope").status_code == 400


def test_without_deliveries_the_page_says_what_to_check(site: Site) -> None:
    assert "No webhook is stored for the projects that you see." in shown(site, "/deliveries")


def test_a_delivery_of_an_older_version_has_no_record(site: Site) -> None:
    arrives(site, "d-1", "ping", {})
    site.store.db.write(lambda connection: connection.execute("DELETE FROM delivery_outcomes"))
    says = "An older version of Mergewright processed it without recording its effects."
    assert says in shown(site, "/deliveries")


def test_a_list_reads_all_sessions_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 6):
        site.session(number)
        arrives(site, f"d-{number}", "issues", issue(number=number))
    asked = []
    real = site.store.sessions.of_subjects

    def counted(subjects: Any) -> Any:
        asked.append(1)
        return real(subjects)

    monkeypatch.setattr(site.store.sessions, "of_subjects", counted)
    monkeypatch.setattr(site.store.sessions, "of_subject", lambda *_: pytest.fail("one by one"))
    assert "widgets-5" in site.seen("/deliveries").text
    assert asked == [1]


def test_hostile_words_of_a_delivery_are_text(site: Site) -> None:
    body = issue({"id": 3, "full_name": "<script>alert(1)</script>"})
    arrives(site, "d-1", "issues", body)
    for path in ("/deliveries", "/deliveries/d-1"):
        assert "<script>alert" not in site.seen(path).text


def test_an_unknown_delivery_is_not_found(site: Site) -> None:
    for path in ("/deliveries/nope", "/api/v1/deliveries/nope", "/api/v1/deliveries/nope/dry-run"):
        assert site.seen(path).status_code == 404
    assert site.http.get("/deliveries").is_redirect
    answer: httpx.Response = site.http.put("/api/v1/deliveries/nope/retry", headers=bearer())
    assert answer.status_code == 404


def test_a_new_outcome_replaces_that_of_a_failed_attempt(site: Site) -> None:
    arrives(site, "d-1", "issues", b'{"repository": {"id": 1, "full_name": "acme/widgets"}}')
    (failed,) = site.seen("/api/v1/deliveries").json()["items"]
    assert (failed["state"], failed["repository"]) == ("failed", "acme/widgets")
    site.store.deliveries.retry(["d-1"])
    site.store.deliveries.mark_all_done([ProcessedDelivery("d-1", ignored="event")])
    (done,) = site.seen("/api/v1/deliveries").json()["items"]
    assert (done["state"], done["outcomes"]) == ("ignored", [])
