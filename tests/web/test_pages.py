"""The pages, in particular with text of outsiders."""

import html
import re
from datetime import UTC, datetime

import pytest

from bot.store import AgentRecord, Observation, Session
from bot.web.health import Health
from bot.web.rendering import TONES
from bot.web.session_pages import TABS
from lifecycle.judge.reasons import advice_on
from lifecycle.model.actions import Comment, React
from lifecycle.model.facts import Agent, Command, Pull, Usage
from lifecycle.model.key import parse
from lifecycle.model.status import Blocker, Reason, Status
from tests.web.conftest import Site, bearer

HOSTILE = "<script>alert(1)</script> \"'& \x1b[31mred\x1b[0m \u202eback 🚀\nsecond line"
SHOWN = "&lt;script&gt;alert(1)&lt;/script&gt; &#34;&#39;&amp; red back 🚀 second line"
TELL = Command(
    key="comment:7", kind="tell", actor="mara", at=datetime(2030, 1, 1, tzinfo=UTC), text="use tabs"
)


def test_every_status_has_a_colour() -> None:
    assert sorted(TONES) == sorted(Status)


def tabs(session: str) -> list[str]:
    """The addresses of a session's tabs but the timeline."""
    return [f"/sessions/{session}/{end}" for end, _ in TABS if end]


def test_an_empty_board_says_what_to_do(site: Site) -> None:
    page = site.seen("/").text
    assert "Add the label <code>mergewright</code> to an issue of <strong>acme/widgets<" in page
    assert "Projects: widgets (acme/widgets)" in page


def test_the_board_shows_sessions_in_their_groups(site: Site) -> None:
    site.session(1, title="Needs an answer", status=Status.NEEDS_INPUT, because="it asks: why?")
    site.session(2, title="Busy", pulls=(Pull(number=34, url="https://github.com/x/34"),))
    page = site.seen("/").text
    people = page[page.index('id="group-people"') : page.index('id="group-review"')]
    work = page[page.index('id="group-work"') : page.index('id="group-over"')]
    assert "Needs an answer" in people
    assert "It asks: why?" in people
    assert "Busy" in work
    assert '<a href="https://github.com/x/34" rel="noopener">pull request #34</a>' in work
    assert re.search(r'<span class="activity active">at work</span>', work)
    assert re.search(r'<time datetime="[\d:+T-]+">[\d-]{10} [\d:]{5} UTC</time>', work)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.MERGEABLE, Reason.AWAITS_MERGE),
        (Status.ERRORED, Reason.SPAWN_FAILED),
        (Status.WORKING, Reason.AGENT_BLOCKED),
    ],
)
def test_a_session_that_waits_for_a_person_is_listed_first_with_its_remedy(
    site: Site, status: Status, reason: Reason
) -> None:
    site.session(1, status=status, reason=reason)
    page = site.seen("/").text
    people = page[page.index('id="group-people"') : page.index('id="group-review"')]
    assert 'id="session-widgets-1"' in people
    assert 'class="remedy"' in people
    (row,) = site.seen("/api/v1/sessions").json()["items"]
    assert (row["needs_person"], row["remedy"]) == (True, advice_on(reason))


def test_a_hostile_title_is_shown_as_text(site: Site) -> None:
    session = site.session(1, title=HOSTILE, because=HOSTILE)
    for path in ("/", f"/sessions/{session}", *tabs(session)):
        page = site.seen(path).text
        assert "<script>alert" not in page
        assert SHOWN in page
        assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", page)


def test_a_javascript_url_does_not_become_a_link(site: Site) -> None:
    session = site.session(1, url="javascript:alert(1)")
    for path in ("/", f"/sessions/{session}", *tabs(session)[:-1]):  # Facts are only text.
        assert "javascript:" not in site.seen(path).text


def test_a_session_shows_its_remedy(site: Site) -> None:
    well = site.session(1)
    asks = site.session(2, status=Status.NEEDS_INPUT, reason=Reason.AGENT_QUESTION)
    remedy = advice_on(Reason.AGENT_QUESTION).replace("`", "")
    shown = html.unescape(re.sub(r"</?code>", "", site.seen(f"/sessions/{asks}").text))
    assert f'<p class="remedy">{remedy}</p>' in shown
    nothing = site.seen(f"/sessions/{well}").text
    assert re.findall('class="remedy">(.+?)<', nothing) == [
        "Nothing to do: the session continues by itself."
    ]


def test_a_session_shows_its_reason_blockers_and_actions(site: Site) -> None:
    session = site.session(
        7,
        status=Status.CI_FAILED,
        because="unit failed on 3f2a91c",
        blockers=(
            Blocker("ci_failing", "failing checks: unit"),
            Blocker("review_required", "a review is required"),
            Blocker("protected", "b0a6178 waits for a person"),
        ),
        actions=(
            Comment(key=parse("ready_to_merge"), number=7, topic="ready"),
            React(key=parse("reaction:1"), comment=1, content="eyes"),
        ),
    )
    now = datetime.now(UTC)
    (comment,) = site.store.outbox.due(now)
    site.store.outbox.mark_failed(comment.seq, Reason.ACTION_FAILED, "GitHub said <403>", now)
    site.log = "line 1\r\n10%\r20%\r\x1b[1mdone\x1b[0m <b>\n"
    raw = site.seen(f"/sessions/{session}?raw=true").text
    page = raw + "".join(site.seen(path).text for path in tabs(session))
    for words in (
        "Unit failed on 3f2a91c",
        "Failing checks: unit",
        "A review is required",
        ">b0a6178 waits for a person",
        ">checks failed</span>",
        "tmux attach -t =widgets-7_r1",
        "mergewright/7-x",
        "line 1\ndone &lt;b&gt;",
        "GitHub said &lt;403&gt;",
        "<strong>Post a comment</strong>",
        "<strong>React to a comment</strong>",
        "failed",
        "waiting",
    ):
        assert words in page, words


def test_the_api_returns_the_same_data(site: Site) -> None:
    session = site.session(
        7, title=HOSTILE, blockers=(Blocker("draft", "the pull request is a draft"),)
    )
    (row,) = site.seen("/api/v1/sessions").json()["items"]
    assert row["id"] == session
    assert row["title"] == "<script>alert(1)</script> \"'& red back 🚀 second line"
    assert (row["status"], row["activity"], row["blockers"]) == (
        "working",
        "active",
        ["the pull request is a draft"],
    )
    detail = site.seen(f"/api/v1/sessions/{session}").json()
    assert detail["session"] == row
    assert detail["history"][0]["status"] == "working"
    assert detail["attach"] == "tmux attach -t =widgets-7_r1"


def test_usage_is_shown_by_run_with_unpriced_tokens(site: Site) -> None:
    session = site.session(7)
    usage = Usage(input=1200, output=34, cache_read=800, cost_usd=1.5, unpriced=9)
    seen = Observation(session=session, run=1, agent=Agent(run=1, usage=usage))
    site.store.observations.record([seen], datetime.now(UTC))
    page = site.seen(f"/sessions/{session}/cost").text
    for words in (
        *("<strong>widgets-7_r1</strong>", "$1.50<", "9 unpriced tokens", "<td>1,200</td>"),
        *("<td>34</td>", "<td>800</td>"),
    ):
        assert words in page, words
    assert "9 unpriced tokens" in site.seen("/").text
    (run,) = site.seen(f"/api/v1/sessions/{session}").json()["used"]
    assert site.seen(f"/api/v1/usage?by=run&session={session}").json() == [run]
    (repository,) = site.seen("/api/v1/usage?by=repository").json()
    assert {**repository, "name": run["name"]} == run
    refused = site.seen("/api/v1/usage?by=moon")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "by")


def test_an_unknown_session_is_not_found(site: Site) -> None:
    page = site.seen("/sessions/<b>")
    assert page.status_code == 404
    assert "No session &lt;b&gt;." in page.text
    assert site.seen("/api/v1/sessions/nope").status_code == 404


def test_not_found_is_a_page_for_browsers_and_json_otherwise(site: Site) -> None:
    browser = bearer() | {b"accept": b"text/html,*/*;q=0.8"}
    page = site.http.get("/nothing", headers=browser)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Page not found" in page.text
    assert "There is no page at this address. The sessions page" in page.text
    assert site.http.get("/api/v1/nothing", headers=browser).json()["detail"] == "Not Found"
    assert site.seen("/nothing").json()["detail"] == "Not Found"


def test_a_server_error_page_refers_to_the_log(site: Site) -> None:
    bad = site.session(1)
    site.store.db.write(
        lambda connection: connection.execute(
            "UPDATE sessions SET issue = '{}' WHERE id = ?", (bad,)
        )
    )
    page = site.seen(f"/sessions/{bad}")
    assert page.status_code == 500
    assert "See the server&#39;s log for details." in page.text


def test_a_command_is_shown_with_its_actor(site: Site) -> None:
    session = site.session(1)
    site.store.commands.add_granted(session, TELL)
    page = site.seen(f"/sessions/{session}?raw=true").text
    assert "by @mara" in page
    assert "tell use tabs" in page.lower()
    page = site.seen(f"/sessions/{session}").text
    assert "@mara gave the command <code>tell</code>." in page
    assert '<blockquote class="words">use tabs</blockquote>' in page


@pytest.mark.parametrize("path", ["/", "/login", "/healthz", "/static/page.js", "/nowhere"])
def test_security_headers_forbid_external_resources(site: Site, path: str) -> None:
    response = site.seen(path)
    assert "default-src 'self'" in response.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "no-store"
    assert "server" not in response.headers


def test_pages_have_no_external_resources_or_inline_scripts(site: Site) -> None:
    session = site.session(1)
    for path in ("/", "/login", f"/sessions/{session}", *tabs(session)):
        page = site.seen(path).text
        addresses = re.findall(r'(?:src|<link[^>]*href)="([^"]*)"', page)
        assert "/static/page.css" in addresses
        for address in addresses:
            assert address.startswith("/static/")
            assert site.http.get(address).status_code == 200
        assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son\w+=", page)


def test_health_needs_no_token(site: Site) -> None:
    assert site.http.get("/healthz").json() == {"alive": True}
    response = site.http.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {
        "ready": True,
        "store_writable": True,
        "scheduler_running": True,
        "standby_reason": "",
        "sweep_age_seconds": None,
        "incidents": [],
    }


def test_incidents_are_listed_but_do_not_affect_readiness(site: Site) -> None:
    site.store.incidents.report(
        "many-lost", "5 of 9 programs vanished in one look", datetime.now(UTC)
    )
    response = site.http.get("/readyz")
    assert (response.status_code, response.json()["incidents"]) == (200, ["many-lost"])
    assert "5 of 9 programs vanished" in site.seen("/").text


def test_agents_without_isolation_are_warned_of_on_every_page(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.views.unisolated", lambda _: "Agents run with all rights.")
    monkeypatch.setattr("bot.web.views.problems", lambda _: ["agents cannot be isolated here"])
    page = site.seen("/").text
    assert "Agents run with all rights." in page
    assert "gents cannot be isolated here" in page


@pytest.mark.parametrize(
    "health", [Health(scheduler=False), Health(scheduler=True, standby_reason="another one leads")]
)
def test_an_instance_on_standby_is_not_ready(site: Site, health: Health) -> None:
    site.health = health
    response = site.http.get("/readyz")
    assert response.status_code == 503
    assert not response.json()["ready"]
    assert response.json()["standby_reason"] == health.standby_reason
    assert 'class="notice"' in site.seen("/").text


def test_a_store_that_cannot_write_is_not_ready(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site.store, "writable", lambda: False)
    response = site.http.get("/readyz")
    assert (response.status_code, response.json()["store_writable"]) == (503, False)


def test_unexpected_exceptions_are_logged_but_not_shown(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> list[Session]:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr(site.store.session_list, "places", broken)
    response = site.seen("/")
    assert response.status_code == 500
    assert "a secret detail" not in response.text
    assert "/ failed" in caplog.text


def test_actor_and_event_are_separate_words(site: Site) -> None:
    session = site.session(1)
    site.store.commands.add_granted(session, TELL)
    page = site.seen(f"/sessions/{session}?raw=true").text
    assert '<strong>command</strong> <span class="note">by @mara</span>' in page


def test_the_agents_page_lists_agents_and_is_linked(site: Site) -> None:
    site.session(1)
    page = site.seen("/agents").text
    for words in (
        "1 session<",
        "0 repairs<",
        "1 open session",
        "Sign out",
        '<a href="/">Sessions</a>',
    ):
        assert words in page, words


def test_the_agents_page_shows_their_results(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = AgentRecord(
        agent="ada",
        sessions=5,
        live=1,
        outcomes={"merged": 4},
        first_pass=1,
        repairs=3,
        review_rounds=2,
        cost_usd=7.5,
        unpriced=9,
        seconds_to_merge=7200.0,
    )
    monkeypatch.setattr(site.store.agents, "records", lambda *_: [ada])
    page = site.seen("/agents").text
    for words in (
        *("<strong>ada</strong>", "5 sessions<", "1 open session", "4 merged<", "3 repairs<"),
        *(
            "25% of the merged on the first pass",
            "2 review rounds<",
            "$7.50<",
            "9 unpriced tokens<",
            "2.0 hours to merge",
        ),
    ):
        assert words in page, words


def test_an_error_page_links_back(site: Site) -> None:
    assert '<nav><a href="/">Sessions</a></nav>' in site.seen("/sessions/nope").text


def test_text_in_backticks_is_shown_as_code(site: Site) -> None:
    because = "held; `/mergewright allow <b>` has it pushed"
    site.session(1, status=Status.NEEDS_INPUT, because=because, reason=Reason.AGENT_QUESTION)
    shown = site.seen("/sessions/widgets-1").text
    assert "Held; <code>/mergewright allow &lt;b&gt;</code> has it pushed" in shown
    assert "Write <code>/mergewright answer TEXT</code>" in shown
