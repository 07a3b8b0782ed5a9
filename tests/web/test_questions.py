"""What a person asks of the pages, each answered within two clicks of the board."""

import html
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from bot.show.changes import branch_diff
from bot.store import Delivery, Observation
from lifecycle.model.facts import Agent, Ended, Pull, Usage, Work
from lifecycle.model.status import Activity, Blocker, PullState, Reason, Status
from runtimes.workspaces.changes import Patch
from tests.web.conftest import Site, sign_in
from tests.web.test_forms import fields

PATCH = """diff --git a/greeting.py b/greeting.py
--- a/greeting.py
+++ b/greeting.py
@@ -1 +1 @@
-print("Hello")
+print("Bonjour")
"""
COMMIT = "3f2a91c" + "0" * 33


@pytest.fixture
def asked(site: Site) -> Site:
    """A site with sessions in the states that the questions are about, and a signed-in person."""
    sign_in(site)
    site.session(
        12,
        title="The greeting is in English",
        status=Status.REVIEW_PENDING,
        because="waits for a review of 3f2a91c",
        blockers=(Blocker("review_required", "a review is required"),),
        pulls=(Pull(number=34, url="https://github.com/acme/widgets/pull/34"),),
    )
    work = Observation(session="widgets-12", run=1, work=Work(path="/w", head=COMMIT))
    agent = Agent(run=1, activity=Activity.WAITING_INPUT, question="Which port?")
    site.session(13, title="Choose a port")
    question = Observation(session="widgets-13", run=1, agent=agent)
    usage = Usage(input=700, cost_usd=5.5)
    used = replace(question, session="widgets-12", agent=Agent(run=1, usage=usage))
    site.store.observations.record([work, question, used], datetime.now(UTC))
    site.decide("widgets-13", Status.NEEDS_INPUT, "the agent asks", reason=Reason.AGENT_QUESTION)
    yesterday = str(datetime.now(UTC).date() - timedelta(days=1))
    site.store.db.write(
        lambda connection: connection.execute(
            "UPDATE usage SET requester = 'mara', day = ?", (yesterday,)
        )
    )
    site.session(8, title="Spell it right", pulls=(Pull(number=9, state=PullState.MERGED),))
    why = "pull request #9 was merged, as @rob commanded"
    ended = Ended(status=Status.MERGED, reason=Reason.PR_MERGED, because=why, at=datetime.now(UTC))
    site.decide("widgets-8", Status.MERGED, why, ended=ended)
    ping = {"action": "labeled", "issue": {"number": 1}, "repository": {"full_name": "acme/gears"}}
    ping["repository"]["id"] = 2  # type: ignore[index]
    delivery = Delivery(
        id="d-1", event="issues", at=site.store.clock(), body=json.dumps(ping).encode()
    )
    site.store.deliveries.add([delivery]).result()
    site.inbox.process()
    site.changes = branch_diff("b" * 40, "a" * 40, Patch(PATCH, complete=True))
    return site


def text(page: str) -> str:
    """What a page shows, without its markup and without the texts of closed confirmations."""
    shown = re.sub(r'<details class="confirm.*?</details>', "", page, flags=re.DOTALL)
    return html.unescape(" ".join(re.sub("<[^>]+>", " ", shown).split()))


def clicked(site: Site, page: str, link: str) -> str:
    """The page behind the first link with this text."""
    found = re.search(rf'<a [^>]*href="([^"]+)"[^>]*>{re.escape(link)}</a>', page)
    assert found, f"no link {link!r}"
    answer = site.http.get(html.unescape(found[1]))
    assert answer.status_code == 200
    return answer.text


@pytest.mark.parametrize(
    ("links", "answer"),
    [
        ((), "Needs attention 1 needs input"),
        (("The greeting is in English",), "A review is required. A reviewer"),
        (("Costs", "Yesterday"), "$5.50 for 1 session"),
        (("Costs", "Yesterday"), "By person Person Cost Sessions Input Output Cache read"),
        (("Costs", "Yesterday"), "Hours mara $5.50"),
        (("The greeting is in English",), "The agent committed 3f2a91c"),
        (("The greeting is in English", "Changes"), "greeting.py +1 −1"),
        (("Deliveries",), "The repository acme/gears is not a project here"),
        (("Health",), "Health healthy This instance is active"),
        ((), "Pull request #9 was merged, as @rob commanded."),
    ],
    ids=[
        "which sessions need me",
        "why is #12 not merging",
        "what did yesterday cost",
        "by whom",
        "who caused it",
        "what did the agent just do",
        "what changed in this file",
        "why was this delivery ignored",
        "is it healthy",
        "who merged #9",
    ],
)
def test_a_question_is_answered_within_two_clicks(
    asked: Site, links: tuple[str, ...], answer: str
) -> None:
    assert len(links) <= 2
    page = asked.http.get("/").text
    for link in links:
        page = clicked(asked, page, link)
    assert answer in text(page)


@pytest.mark.parametrize(("number", "session"), [("%2312", "12"), ("%239", "8"), ("%2334", "12")])
def test_an_issue_or_pull_request_is_found_by_its_number(
    asked: Site, number: str, session: str
) -> None:
    page = asked.http.get(f"/?search={number}").text
    assert re.findall('id="session-widgets-([0-9]+)"', page) == [session]


def test_a_session_is_stopped_by_two_clicks_on_the_board(asked: Site) -> None:
    page = asked.http.get("/").text
    (fold,) = re.findall(
        '<details class="confirm stop" id="confirm-stop-widgets-12">.*?</details>', page, re.DOTALL
    )
    assert "the agent is doing now is lost" in fold
    (path,) = re.findall('<button form="commands" formaction="([^"]+)"', fold)
    (form,) = re.findall('<form id="commands".*?</form>', page, re.DOTALL)
    hidden = dict(re.findall('name="(\\w+)" value="([^"]*)"', form))
    assert asked.http.post(path, data={**hidden, "kind": "stop"}).is_redirect
    session = asked.store.sessions.get("widgets-12")
    assert session is not None
    assert [command.kind for command in session.commands] == ["stop"]
    ended = re.findall('id="session-widgets-8".*?</article>', page, re.DOTALL)
    assert "Stop" not in ended[0]


def test_a_question_of_an_agent_is_answered_one_click_from_the_board(asked: Site) -> None:
    page = clicked(asked, asked.http.get("/").text, "Answer the question")
    assert "Which port?" in text(page)
    path = "/sessions/widgets-13/ask"
    words = {"kind": "answer", "text": "8080"}
    assert asked.http.post(path, data={**fields(page, path), **words}).is_redirect
    session = asked.store.sessions.get("widgets-13")
    assert session is not None
    assert [(one.kind, one.text) for one in session.commands] == [("answer", "8080")]
