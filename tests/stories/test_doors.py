"""What can be asked in a comment can be asked from the page, by programs and on the server."""

import re
import subprocess
import sys
from pathlib import Path

import httpx

from bot.web.access import COOKIE, Access
from tests.world.waiting import eventually
from tests.world.world import ALICE, IssueStory, World

TOKEN = "the page's token"


def mergewright(world: World, *words: str) -> str:
    """The command line as a process of its own, beside the running bot."""
    program = str(Path(sys.executable).with_name("mergewright"))
    command = [program, *words, "--config", str(world.folder / "mergewright.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_session_is_steered_from_every_door(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets")
    issue.issue.comment("/mergewright status", by=ALICE)
    eventually(lambda: "no session works on this" in "".join(issue.said()), "status is answered")
    issue.issue.comment("/mergewright start", by=ALICE)
    issue.agent.starts()
    issue.agent.asks("Which colour?")
    issue.becomes("needs_input")

    said = mergewright(world, "answer", issue.id, "Blue, please.")
    assert "The agent is told" in said
    issue.agent.hears("Blue, please.")

    api = f"http://127.0.0.1:{world.port}/api/sessions/{issue.id}/wishes"
    headers = {"authorization": f"Bearer {TOKEN}", "idempotency-key": "1"}
    for _ in range(2):
        body = {"kind": "tell", "text": "Make it dark blue."}
        assert httpx.post(api, json=body, headers=headers).is_success
    issue.agent.ends_its_turn()
    issue.agent.hears("Make it dark blue.")

    presses(world, issue, "stop")
    session = issue.becomes("killed")
    assert "page:visitor" in session.because
    assert [wish.actor.partition(":")[0] for wish in session.wishes] == ["cli", "api", "page"]


def presses(world: World, issue: IssueStory, kind: str) -> None:
    """A click on the session's page."""
    cookie = Access(TOKEN).cookie(secure=False).value
    page = f"http://127.0.0.1:{world.port}/sessions/{issue.id}"
    with httpx.Client(cookies={COOKIE: cookie or ""}) as browser:
        html = browser.get(page).text
        assert f'value="{kind}"' in html
        fields = dict(re.findall(r'type="hidden" name="(word|key)" value="([^"]*)"', html)[:2])
        assert browser.post(f"{page}/ask", data={**fields, "kind": kind}).status_code == 303
