"""Chats on the pages and in the API."""

import re

import pytest

from bot.store import NewSession, Observation
from lifecycle.model.candidates import Spawn
from lifecycle.model.facts import Agent, Command, Issue, Pull
from lifecycle.model.names import MAKES_PULL
from lifecycle.model.status import Activity, Origin, Reason, Status
from tests.web.conftest import Site, bearer, sign_in
from tests.web.people import People, form_token
from tests.web.test_forms import fields

PATH = "/sessions/widgets-c1"


def opens(site: Site) -> None:
    """Open a chat whose agent waits for a message."""
    opened = NewSession(
        id="widgets-c1",
        project="widgets",
        repository="acme/widgets",
        created=site.store.clock(),
        issue=Issue(number=0, title="Chat"),
        branch="c1",
        origin=Origin.CHAT,
        requester="mara",
        agent_type="shell",
    )
    assert site.store.sessions.create(opened)
    agent = Agent(run=1, activity=Activity.READY)
    site.store.observations.record(
        [Observation(session="widgets-c1", run=1, agent=agent)], site.store.clock()
    )
    why = "the agent waits for a message in this chat"
    site.decide("widgets-c1", Status.WORKING, why, reason=Reason.IN_CHAT)


@pytest.fixture
def chat(site: Site) -> Site:
    """A chat, seen by a person who is signed in."""
    opens(site)
    sign_in(site)
    return site


def kinds(page: str) -> list[str]:
    return re.findall(r'name="kind" value="([\w-]+)"', page)


def test_the_api_opens_a_chat_once(site: Site) -> None:
    headers = {**bearer(), b"idempotency-key": b"k-1"}
    wanted = {"project": "widgets", "chat": True, "prompt": "Look."}
    for status in (202, 200):
        response = site.http.post("/api/v1/sessions", json=wanted, headers=headers)
        assert (response.status_code, response.json()["session"]) == (status, "widgets-c1")
    (command,) = site.store.commands.new()
    assert command.spawn == Spawn(session="widgets-c1", prompt="Look.", chat=True)


def test_the_board_has_a_form_for_a_chat(site: Site) -> None:
    sign_in(site)
    board = site.http.get("/").text
    form = fields(board[board.index('id="new-chat"') :], "/sessions")
    assert form["chat"] == "true"
    form |= {"project": "widgets", "prompt": "", "agent": ""}
    assert site.http.post("/sessions", data=form).status_code == 303
    (command,) = site.store.commands.new()
    assert command.spawn == Spawn(session="widgets-c1", chat=True)


def test_the_board_shows_who_opened_a_chat_and_links_to_its_terminal(chat: Site) -> None:
    card = chat.http.get("/").text.split('id="session-widgets-c1"')[1].split("</article>")[0]
    assert f'href="{PATH}/terminal"' in card
    assert "<span>chat</span>" in card
    assert "for @mara" in card


def test_the_page_of_a_chat_leads_with_its_terminal(chat: Site) -> None:
    page = chat.http.get(PATH).text
    tabs = re.findall(rf'<a href="{PATH}(/?\w*)"[^>]*>[A-Z]', page)
    assert tabs[:3] == ["/terminal", "/transcript", ""]
    assert "To talk to the agent, open its terminal or send it a message." in page
    assert "tell" in kinds(page)
    assert "Merge checklist" not in page


def test_a_button_makes_a_chat_a_pull_request_once(chat: Site) -> None:
    page = chat.http.get(PATH).text
    assert MAKES_PULL in kinds(page)
    form = {**fields(page, f"{PATH}/ask"), "kind": MAKES_PULL}
    assert chat.http.post(f"{PATH}/ask", data=form).status_code == 303
    session = chat.store.sessions.get("widgets-c1")
    assert session is not None
    assert [command.kind for command in session.commands] == [MAKES_PULL]
    assert MAKES_PULL not in kinds(chat.http.get(PATH).text)


def test_an_ordinary_session_has_no_such_button(chat: Site) -> None:
    chat.session(1)
    assert MAKES_PULL not in kinds(chat.http.get("/sessions/widgets-1").text)
    pulls = (Pull(number=34, head="a" * 40),)
    chat.store.observations.record(
        [Observation(session="widgets-c1", pulls=pulls)], chat.store.clock()
    )
    page = chat.http.get(PATH).text
    assert MAKES_PULL not in kinds(page)
    assert page.index(">Timeline<") < page.index(">Terminal<")


def test_an_idle_chat_is_not_among_those_that_need_people(chat: Site) -> None:
    chat.decide("widgets-c1", Status.PAUSED, "nobody has written", reason=Reason.CHAT_PAUSED)
    board = chat.http.get("/").text
    card = board.split('id="session-widgets-c1"')[1].split("</article>")[0]
    assert 'data-group="work"' in board.split('id="session-widgets-c1"')[1][:60]
    assert "Write <code>" not in card
    assert "resume" in kinds(chat.http.get(PATH).text)


def test_the_history_names_a_chat_and_its_messages(chat: Site) -> None:
    assert "A chat was opened by @mara" in chat.http.get(PATH).text
    assert "Chat with the agent shell opened: Chat" in chat.http.get(f"{PATH}?raw=true").text
    command = Command(key="k", kind="tell", actor="mara", at=chat.store.clock(), text="Hello")
    assert chat.store.commands.add_granted("widgets-c1", command)
    assert "@mara gave the command" in chat.http.get(PATH).text


def test_who_may_start_an_agent_opens_a_chat_and_makes_it_a_pull_request(filled: People) -> None:
    opens(filled.site)
    form = {"kind": MAKES_PULL}
    for login, may in (("triage-er", False), ("write-er", True)):
        with filled.signed_in(login) as client:
            assert ('id="new-chat"' in client.get("/").text) is may
            page = client.get(PATH).text
            assert (MAKES_PULL in kinds(page)) is may
            assert "tell" in kinds(page)
            form["csrf"] = form_token(client)
            assert client.post(f"{PATH}/ask", data=form).status_code == (200 if may else 403)
