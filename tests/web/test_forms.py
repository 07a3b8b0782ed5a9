"""The page's forms: their commands, and protection against forgery."""

import html
import re
from datetime import UTC, datetime

import httpx
import pytest

from bot.store import Observation
from bot.system.clock import utc_now
from bot.web.sign_ins import COOKIE
from lifecycle.model import keys
from lifecycle.model.actions import Comment
from lifecycle.model.facts import Agent, Frozen, Issue, Pull, Work
from lifecycle.model.status import Activity, Reason, Status
from tests.web.conftest import Site, sign_in

HEAD = "a" * 40


@pytest.fixture
def visitor(site: Site) -> Site:
    """A person who is signed in."""
    sign_in(site)
    return site


def page(site: Site, path: str = "/sessions/widgets-1") -> str:
    return site.http.get(path).text


def fields(page: str, action: str) -> dict[str, str]:
    """The hidden fields of the first form with this action."""
    form = page[page.index(f'action="{action}"') :]
    form = form[: form.index("</form>")]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def pressed(site: Site, action: str, **more: str) -> httpx.Response:
    path = "/" if action == "/freeze" else "/sessions/widgets-1"
    return site.http.post(action, data={**fields(page(site, path), action), **more})


def kinds(page: str) -> list[str]:
    return re.findall(r'name="kind" value="(\w+)"', page)


def asked(site: Site) -> list[tuple[str, str, str]]:
    session = site.store.sessions.get("widgets-1")
    assert session is not None
    return [(command.kind, command.text, command.actor) for command in session.commands]


def test_a_button_submits_a_command_and_redirects(visitor: Site) -> None:
    visitor.session(1)
    response = pressed(visitor, "/sessions/widgets-1/ask", kind="pause")
    assert (response.status_code, response.headers["location"]) == (303, "/sessions/widgets-1")
    assert asked(visitor) == [("pause", "", "page:visitor")]
    assert "by somebody with the page token" in page(visitor, "/sessions/widgets-1?raw=true")


def test_a_double_click_submits_once(visitor: Site) -> None:
    visitor.session(1)
    form = fields(page(visitor), "/sessions/widgets-1/ask")
    for _ in range(2):
        visitor.http.post("/sessions/widgets-1/ask", data={**form, "kind": "pause"})
    assert len(asked(visitor)) == 1


def test_a_message_is_stored_unchanged(visitor: Site) -> None:
    visitor.session(1)
    text = 'Use <b> & "quotes".\r\n\r\nAnd ünïcode.'
    pressed(visitor, "/sessions/widgets-1/ask", kind="tell", text=text)
    assert [(kind, argument) for kind, argument, _ in asked(visitor)] == [("tell", text)]
    assert "Use &lt;b&gt; &amp;" in page(visitor)


def test_a_choice_button_answers_only_its_own_question(visitor: Site) -> None:
    def asks(question: str) -> None:
        agent = Agent(run=1, activity=Activity.WAITING_INPUT, question=question)
        visitor.store.observations.record(
            [Observation(session="widgets-1", run=1, agent=agent)], utc_now()
        )

    visitor.session(1)
    asks("May it use Bash?\nrm <x> (Yes, and don't ask / No)")
    shown = page(visitor)
    assert re.findall('name="text" value="(.+?)"', shown) == ["Yes, and don&#39;t ask", "No"]
    form = fields(html.unescape(shown.replace("\n", "\r\n")), "/sessions/widgets-1/ask")
    visitor.http.post("/sessions/widgets-1/ask", data={**form, "text": "No"})
    assert asked(visitor) == [("answer", "No", "page:visitor")]
    asks("May it use Bash? rm -r / (Yes / No)")
    refused = visitor.http.post("/sessions/widgets-1/ask", data={**form, "key": "2", "text": "No"})
    assert refused.status_code == 400
    assert "question has changed. Go back" in refused.text
    asks("What is it to be called?")
    assert 'name="asked"' not in page(visitor)
    assert len(asked(visitor)) == 1


def test_a_held_commit_can_be_allowed_with_a_button(visitor: Site) -> None:
    name = visitor.session(1, status=Status.NEEDS_INPUT, reason=Reason.PROTECTED_PATHS)
    assert "allow" not in kinds(page(visitor))
    seen = Observation(session=name, run=1, work=Work(base="b" * 40, head=HEAD))
    visitor.store.observations.record([seen], datetime.now(UTC))
    form = page(visitor).partition('value="allow"')[0].rpartition("<form")[2]
    given = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    visitor.http.post("/sessions/widgets-1/ask", data={**given, "kind": "allow"})
    assert asked(visitor) == [("allow", HEAD, "page:visitor")]


def test_a_forged_form_is_refused(visitor: Site) -> None:
    visitor.session(1)
    own = fields(page(visitor), "/sessions/widgets-1/ask")
    visitor.http.cookies.clear()
    visitor.http.cookies.set(COOKIE, "x")
    assert visitor.http.post("/sessions/widgets-1/ask", data={**own, "kind": "stop"}).is_redirect
    sign_in(visitor)
    for word in (own["csrf"], "", "guess", "é"):
        response = visitor.http.post(
            "/sessions/widgets-1/ask", data={**own, "csrf": word, "kind": "stop"}
        )
        assert response.status_code == 403
        assert "Reload the page" in response.text
    for action in ("/freeze", "/unfreeze"):
        assert visitor.http.post(action, data={"scope": ""}).status_code == 403
    assert asked(visitor) == []
    assert visitor.store.freezes.all() == []


def test_an_invalid_command_shows_an_error_page(visitor: Site) -> None:
    visitor.session(1)
    response = pressed(visitor, "/sessions/widgets-1/ask", kind="tell", text="  ")
    assert response.status_code == 400
    assert "tell needs a text" in response.text


@pytest.mark.parametrize(
    ("status", "offered"),
    [
        (Status.WORKING, ["pause", "restart", "stop", "freeze", "tell"]),
        (Status.QUEUED, ["pause", "stop", "freeze", "tell"]),
        (Status.PAUSED, ["resume", "restart", "stop", "freeze", "tell"]),
        (Status.KILLED, ["start"]),
        (Status.MERGED, []),
        (Status.CLEANUP, []),
    ],
)
def test_buttons_depend_on_the_status(visitor: Site, status: Status, offered: list[str]) -> None:
    visitor.session(1, status=status)
    assert kinds(page(visitor)) == offered


def test_failed_actions_can_be_retried(visitor: Site) -> None:
    session = visitor.session(
        1, actions=(Comment(key=keys.ready_to_merge("x"), number=1, topic="ready"),)
    )
    now = visitor.store.clock()
    (due,) = visitor.store.outbox.due(now)
    visitor.store.outbox.mark_failed(due.seq, Reason.ACTION_FAILED, "GitHub said no", now)
    assert "retry" in kinds(page(visitor, f"/sessions/{session}"))


def test_the_merge_button_is_bound_to_the_shown_head(visitor: Site) -> None:
    pulls = (Pull(number=33, head="b" * 40), Pull(number=34, head=HEAD))
    visitor.session(1, pulls=pulls)
    html = page(visitor, "/sessions/widgets-1/checks")
    form = fields(html[html.index('id="pull-34"') :], "/sessions/widgets-1/ask")
    assert form["head"] == HEAD
    visitor.http.post("/sessions/widgets-1/ask", data={**form, "kind": "merge"})
    session = visitor.store.sessions.get("widgets-1")
    assert session is not None
    assert [(command.kind, command.head) for command in session.commands] == [("merge", HEAD)]


def test_everything_is_frozen_and_unfrozen_on_the_board(visitor: Site) -> None:
    visitor.session(1)
    assert pressed(visitor, "/freeze").headers["location"] == "/"
    html = page(visitor, "/")
    assert "Everything was frozen by somebody with the page token" in html
    assert 'action="/freeze"' not in html
    visitor.http.post("/unfreeze", data=fields(html, "/unfreeze"))
    assert visitor.store.freezes.all() == []


def test_a_session_is_frozen_on_its_own_page(visitor: Site) -> None:
    visitor.session(1)
    pressed(visitor, "/sessions/widgets-1/ask", kind="freeze")
    assert [kind for kind, _, _ in asked(visitor)] == ["freeze"]
    html = page(visitor)
    assert "Frozen by somebody with the page token" in html
    assert "unfreeze" in kinds(html)
    assert "freeze" not in kinds(html)
    pressed(visitor, "/sessions/widgets-1/ask", kind="unfreeze")
    assert "Frozen by" not in page(visitor)


def test_a_session_that_a_label_froze_offers_no_command_to_undo_it(visitor: Site) -> None:
    now = utc_now()
    frozen = Frozen(scope="session", by="ann", at=now)
    name = visitor.session(1)
    issue = Issue(number=1, title="A title", frozen=frozen)
    visitor.store.observations.record([Observation(session=name, issue=issue)], now)
    html = page(visitor)
    assert "Frozen by @ann" in html
    assert "Remove the label <code>mergewright:freeze</code> on GitHub to undo it." in html
    assert "unfreeze" not in kinds(html)


def test_incidents_are_shown_on_every_page(visitor: Site) -> None:
    visitor.session(1)
    visitor.store.incidents.report("many-lost", "<five> seem dead at once", visitor.store.clock())
    for path in ("/", "/sessions/widgets-1"):
        assert "&lt;five&gt; seem dead at once" in page(visitor, path)


def test_a_session_is_opened_for_a_prompt(visitor: Site) -> None:
    form = fields(page(visitor, "/"), "/sessions")
    for _ in range(2):  # A double click.
        response = visitor.http.post(
            "/sessions", data={**form, "project": "widgets", "prompt": "Add a flag"}
        )
        assert (response.status_code, response.headers["location"]) == (303, "/")
    (command,) = visitor.store.commands.new()
    assert (command.number, command.text, command.actor) == (0, "", "page:visitor")
    assert command.spawn is not None
    assert (command.spawn.session, command.spawn.prompt) == ("widgets-p1", "Add a flag")


@pytest.mark.parametrize(
    ("changes", "status", "expected"),
    [
        ({"csrf": "forged"}, 403, ""),
        ({"project": "gears"}, 404, "No project"),
        ({"agent": "ada"}, 404, "No agent"),
        ({"prompt": " "}, 400, "a session needs either an issue or a prompt"),
    ],
)
def test_an_invalid_form_opens_no_session(
    visitor: Site, changes: dict[str, str], status: int, expected: str
) -> None:
    form = fields(page(visitor, "/"), "/sessions")
    data = {**form, "project": "widgets", "prompt": "x", **changes}
    response = visitor.http.post("/sessions", data=data)
    assert (response.status_code, expected in response.text) == (status, True)
    assert visitor.store.commands.new() == []


def test_a_session_without_an_issue_shows_none(visitor: Site) -> None:
    visitor.session(0)
    for path in ("/", "/sessions/widgets-0"):
        assert "issue #" not in page(visitor, path)
