"""The board: groups, filters, pages, actions, and its size with many sessions."""

import re
from datetime import UTC, datetime

import pytest

from bot.store import NewSession
from bot.web.session_pages import TABS
from lifecycle.model.facts import Check, Issue, Pull
from lifecycle.model.status import CheckState, Reason, Review, Status
from tests.web.conftest import Site, sign_in
from tests.web.test_forms import fields

URL = "https://github.com/acme/widgets/pull/34"


def shown(page: str) -> list[str]:
    return re.findall(r'<article class="row" id="session-widgets-(\d+)"', page)


def counts(page: str) -> dict[str, str]:
    listed = re.search(r'<nav class="counts".*?</nav>', page, re.DOTALL)
    assert listed
    return dict(re.findall(r">([^<>]+) <span class=\"count\">([\d,]+)<", listed[0]))


def many(site: Site, *numbers: int) -> None:
    for number in numbers:
        new = NewSession(
            id=f"widgets-{number}",
            project="widgets",
            repository="acme/widgets",
            created=datetime.now(UTC),
            issue=Issue(number=number, title=f"Part {number} breaks"),
            branch=f"mergewright/{number}-x",
            requester=f"person-{number % 2}",
        )
        site.store.sessions.create(new)


def test_groups_are_ordered_by_what_needs_attention(site: Site) -> None:
    site.session(1, status=Status.MERGED)
    site.session(2, status=Status.QUEUED)
    site.session(3, status=Status.WORKING)
    site.session(4, status=Status.CI_FAILED)
    site.session(5, status=Status.REVIEW_PENDING)
    site.session(6, status=Status.NEEDS_INPUT)
    page = site.seen("/").text
    assert shown(page) == ["6", "5", "4", "3", "2", "1"]
    assert counts(page) == {
        "All": "6",
        "Needs attention": "1",
        "In review": "1",
        "Repairing": "1",
        "Working": "1",
        "Queued": "1",
        "Finished": "1",
    }


def test_a_card_shows_the_pull_request_and_what_blocks_it(site: Site) -> None:
    checks = (
        Check(id="a", name="unit", state=CheckState.FAILED),
        Check(id="b", name="lint", state=CheckState.PASSED),
    )
    pull = Pull(number=34, url=URL, checks=checks, review=Review.PENDING)
    site.session(1, status=Status.CI_FAILED, pulls=(pull,))
    page = site.seen("/").text
    for words in ("pull request #34", "1 failed", "(unit)", "1 passed", "review pending"):
        assert words in page, words


def test_the_next_action_is_a_button_on_the_card(site: Site) -> None:
    sign_in(site)
    site.session(1, status=Status.PAUSED, reason=Reason.PAUSED_BY_PERSON)
    site.session(2, status=Status.WORKING)
    page = site.http.get("/").text
    assert re.findall(r'name="kind" value="(\w+)"', page) == ["resume", "stop", "stop"]
    form = fields(page, "/sessions/widgets-1/ask")
    assert site.http.post("/sessions/widgets-1/ask", data={**form, "kind": "resume"}).is_redirect
    session = site.store.sessions.get("widgets-1")
    assert session is not None
    assert [command.kind for command in session.commands] == ["resume"]


def test_a_merge_from_a_card_is_confirmed_and_bound_to_its_head(site: Site) -> None:
    pull = Pull(number=34, url=URL, head="a" * 40)
    site.session(1, status=Status.MERGEABLE, reason=Reason.AWAITS_MERGE, pulls=(pull,))
    page = site.seen("/").text
    inside = re.search(r'<details class="confirm".*?</details>', page, re.DOTALL)
    assert inside
    assert 'value="merge"' in inside[0]
    assert "cannot be undone" in inside[0]
    assert fields(page, "/sessions/widgets-1/ask")["head"] == "a" * 40


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("search=Part+3", ["3"]),
        ("search=%23nothing", []),
        ("person=PERSON-1&sort=created", ["1", "3", "5"]),
        ("status=queued&group=queued&sort=-created", ["5", "4", "3", "2", "1"]),
        ("status=working", []),
        ("project=gears", []),
    ],
)
def test_filters_are_in_the_address(site: Site, query: str, expected: list[str]) -> None:
    many(site, 1, 2, 3, 4, 5)
    page = site.seen(f"/?{query}").text
    assert shown(page) == expected
    assert counts(page)["All"] == str(len(expected))
    if not expected:
        assert "No session matches these filters" in page


def test_the_form_keeps_what_was_chosen(site: Site) -> None:
    many(site, 1)
    page = site.seen("/?person=person-1&search=%22%3Cb%3E&agent=%3Ci%3E&sort=created").text
    assert '<option value="person-1" selected>' in page
    assert 'value="&#34;&lt;b&gt;"' in page
    assert "<option selected>&lt;i&gt;</option>" in page
    assert '<option value="created" selected>' in page
    assert "<i>" not in page


def test_a_group_is_read_in_pages(site: Site) -> None:
    many(site, *range(1, 101))
    overview = site.seen("/").text
    assert len(shown(overview)) == 5
    assert "Show all 100" in overview
    found, path, pages = list[str](), "/?group=queued&sort=created", 0
    while path:
        page = site.seen(path.replace("&amp;", "&")).text
        found += shown(page)
        pages += 1
        assert pages <= 3
        later = re.search(r'<a rel="next" href="([^"]+)"', page)
        path = later[1] if later else ""
    assert found == [str(number) for number in range(1, 101)]
    assert "First page" in page


def test_an_invalid_page_or_order_is_an_error_page(site: Site) -> None:
    many(site, 1)
    for query in ("group=queued&after=x", "sort=moon"):
        response = site.seen(f"/?{query}")
        assert response.status_code == 400
        assert response.headers["content-type"].startswith("text/html")


def test_an_unknown_group_shows_where_the_sessions_are(site: Site) -> None:
    many(site, 1)
    page = site.seen("/?group=moon").text
    assert "No session is in this group now" in page
    assert counts(page)["Queued"] == "1"


def test_a_board_with_many_sessions_is_small(site: Site) -> None:
    many(site, *range(1, 301))
    for path in ("/", "/?group=queued"):
        page = site.seen(path)
        assert len(page.content) < 150_000
        assert len(shown(page.text)) <= 60


def test_every_tab_is_linked_from_every_other(site: Site) -> None:
    session = site.session(1)
    links = [f"/sessions/{session}" + (f"/{end}" if end else "") for end, _ in TABS]
    for link in links:
        page = site.seen(link)
        assert page.status_code == 200
        assert page.text.count('aria-current="page"') == 1
        assert f'<a href="{link}" aria-current="page">' in page.text
        for other in links:
            assert f'<a href="{other}"' in page.text


def test_programs_read_the_board_too(site: Site) -> None:
    site.session(1, status=Status.NEEDS_INPUT, reason=Reason.AGENT_QUESTION)
    site.session(2, title="Parse flags", status=Status.CI_FAILED)
    board = site.seen("/api/v1/board").json()
    groups = {one["key"]: [card["row"]["id"] for card in one["cards"]] for one in board["groups"]}
    assert (groups["people"], groups["repair"]) == (["widgets-1"], ["widgets-2"])
    assert board["groups"][0]["cards"][0]["next"]["label"] == "Answer the question"
    board = site.seen("/api/v1/board?search=flags").json()
    assert [one["count"] for one in board["groups"]] == [0, 0, 1, 0, 0, 0]
