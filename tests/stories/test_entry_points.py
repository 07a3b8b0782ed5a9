"""Commands from comments, the page, the API and the command line have the same effect."""

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.runtimes.stages import processes
from tests.world.waiting import eventually
from tests.world.world import ALICE, MALLORY, ROB, IssueStory, World

NATIVE = "4bb28834-d7d9-428f-9c9f-9179ca24a4f5"
TOKEN = "the page's token"


def mergewright(world: World, *words: str) -> str:
    """The command line as a process of its own, beside the running bot."""
    program = str(Path(sys.executable).with_name("mergewright"))
    command = [program, *words, "--config", str(world.folder / "mergewright.toml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_session_is_steered_by_comment_page_api_and_command_line(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets")
    issue.issue.comment("/mergewright status", by=ALICE)
    eventually(
        lambda: "there is no session for" in "".join(issue.comments_by()), "status is answered"
    )
    issue.issue.comment("/mergewright start", by=ALICE)
    issue.agent.starts()
    issue.agent.asks("Which colour?")
    issue.becomes("needs_input")

    output = mergewright(world, "answer", issue.id, "Blue, please.")
    assert "The agent gets your message now" in output
    issue.agent.receives("Blue, please.")

    api = f"http://127.0.0.1:{world.port}/api/v1/sessions/{issue.id}/commands"
    headers = {"authorization": f"Bearer {TOKEN}", "idempotency-key": "1"}
    for _ in range(2):
        body = {"kind": "tell", "text": "Make it dark blue."}
        assert httpx.post(api, json=body, headers=headers).is_success
    issue.agent.ends_its_turn()
    issue.agent.receives("Make it dark blue.")

    presses(world, issue, "stop")
    session = issue.becomes("killed")
    assert "somebody with the page token" in session.because
    assert [command.actor.partition(":")[0] for command in session.commands] == [
        "cli",
        "api",
        "page",
    ]
    # On GitHub, nobody asked: each reply is given where the command was.
    assert not [text for text in issue.comments_by() if "gets your message" in text]


def browser(world: World) -> httpx.Client:
    """A person who is signed in at the page."""
    address = f"http://127.0.0.1:{world.port}"
    signed_in = httpx.post(f"{address}/login", data={"token": TOKEN})
    return httpx.Client(base_url=address, cookies=signed_in.cookies)


def presses(world: World, issue: IssueStory, kind: str) -> None:
    """A click on the session's page."""
    page = f"/sessions/{issue.id}"
    with browser(world) as client:
        html = client.get(page).text
        assert f'value="{kind}"' in html
        fields = dict(re.findall(r'type="hidden" name="(csrf|key)" value="([^"]*)"', html)[:2])
        assert client.post(f"{page}/ask", data={**fields, "kind": kind}).status_code == 303


def test_a_session_runs_in_the_permission_mode_of_its_start_command(world: World) -> None:
    world.bot_starts()
    issue = world.issue("Add widgets")
    issue.issue.comment("/mergewright start scripted permission-mode=confirm", by=ALICE)
    eventually(
        lambda: "`scripted` has no permission modes" in "".join(issue.comments_by()),
        "a program without permission modes is not started",
    )
    issue.issue.comment("/mergewright start scripted-claude permission-mode=confirm", by=ALICE)
    issue.becomes("needs_input")
    assert processes("cmdline", bytes(world.folder), b"\0--permission-mode\0default\0")
    assert "Start the agent with permission mode confirm" in mergewright(world, "show", issue.id)


def test_a_session_resumes_a_persons_own_conversation_and_its_question_is_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = world.folder / "alice"
    conversation = theirs / "projects" / "-home-alice-widgets" / f"{NATIVE}.jsonl"
    conversation.parent.mkdir(parents=True)
    conversation.write_text(f'{{"sessionId":"{NATIVE}"}}\n')
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(theirs))
    world.bot_starts()
    issue = world.issue("Add widgets")
    mergewright(world, "start", issue.id, "scripted-claude", "--resume", NATIVE)
    issue.becomes("needs_input")
    asked = "Which toppings? (Salt / Pepper / Sugar)"
    eventually(lambda: f"\n> {asked}" in "".join(issue.comments_by()), "people are asked")
    assert asked in " ".join(mergewright(world, "show", issue.id).split())
    with browser(world) as page:
        assert asked in page.get(f"/sessions/{issue.id}").text

    issue.issue.comment("/mergewright answer 1\n1\n1", by=MALLORY)
    eventually(
        lambda: "was not acted on: only people with write access" in "".join(issue.comments_by()),
        "an outsider gets a reply",
    )
    issue.issue.comment("/mergewright answer Blue", by=ROB)
    eventually(
        lambda: "with one line each" in "".join(issue.comments_by()), "half an answer is refused"
    )
    issue.issue.comment("/mergewright answer Blue\nSalt, sugar\n2", by=ALICE)
    issue.pull.ci_passes().reviewer_approves()
    issue.becomes("merged")
    assert world.repo.git.run("show", "main:widgets.txt") == conversation.read_text()
