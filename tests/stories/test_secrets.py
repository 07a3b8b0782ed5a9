"""Secrets in the output of agents, checks and people are redacted everywhere."""

import html
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.world.waiting import eventually
from tests.world.world import SECRET, TOKEN, IssueStory, World

KEY, MADE = "the-key-the-agent-was-given", "ghs_" + "a1B2" * 9
PAGE = "the page's token"
ALL = (TOKEN, SECRET, PAGE, KEY, MADE)
LET_OUT = " ".join(ALL)


def test_no_secret_is_posted_shown_stored_or_sent(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_AGENT_KEY", KEY)
    issue = world.agent_starts()
    issue.agent.asks(f"Is it {LET_OUT}?")
    issue.becomes("needs_input")
    eventually(lambda: "Is it [secret]" in "".join(issue.comments_by()), "people are asked")
    issue.agent.commits({"widgets.txt": "one\n"}, "Add a widget").ends_its_turn(LET_OUT)
    pull = issue.pull
    pull.ci_fails("unit", log=f"it broke: {LET_OUT}")
    message = issue.agent.receives("it broke")
    assert world.app is not None
    world.app.wiring.archive.keep_all(world.store.sessions.live())

    texts = {
        "a message to the agent": message["text"],
        "the pull request": f"{pull.pull.title} {pull.pull.body} {pull.comments_by()}",
        "the issue": str(issue.comments_by()),
        **dict(shown(world, issue)),
        **dict(kept(world)),
    }
    assert [(where, one) for where, text in texts.items() for one in ALL if one in text] == []
    assert all("[secret]" in texts[where] for where in list(texts)[:3])


def shown(world: World, issue: IssueStory) -> Iterator[tuple[str, str]]:
    """The pages and the JSON API."""
    with httpx.Client(base_url=f"http://127.0.0.1:{world.port}") as browser:
        browser.post("/login", data={"token": PAGE})
        for page in ("/", f"/sessions/{issue.id}", "/agents"):
            yield page, html.unescape(browser.get(page).raise_for_status().text)
        browser.headers["authorization"] = f"Bearer {PAGE}"
        for path in ("/api/v1/sessions", f"/api/v1/sessions/{issue.id}", "/api/v1/queue"):
            yield path, browser.get(path).raise_for_status().text


def kept(world: World) -> Iterator[tuple[str, str]]:
    """Every file of the bot; of the agent's output, only the archived copy."""
    for path in (world.folder / "data").rglob("*"):
        if (path.is_file() and path.name != "output.log") or "archive" in path.parts:
            yield str(path.relative_to(world.folder)), text_of(path)


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="replace") if path.is_file() else ""
