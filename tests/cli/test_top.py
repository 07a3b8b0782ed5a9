"""`mergewright top`, driven by keys in a terminal of 80 by 24 characters."""

import asyncio
import os
import re
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from bot.cli.remote import RemoteServer
from bot.cli.top import Sessions, Top
from bot.cli.top_source import BoardSource, LocalBoard, RemoteBoard
from bot.store import Store
from lifecycle.model.facts import Check, Pull
from lifecycle.model.status import CheckState, Reason, Status
from tests.cli.conftest import CommandLine, Deployment
from tests.cli.results import MERGEWRIGHT
from tests.web.conftest import TOKEN, Site
from tests.world.waiting import PATIENCE, eventually

Story = Callable[["Screen"], Awaitable[None]]
HEAD = "a" * 40


class Screen:
    """What a person sees and presses."""

    def __init__(self, pilot: Pilot[None], app: Top) -> None:
        self.pilot = pilot
        self.app = app

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def shows(self, *texts: str) -> None:
        """Wait until all these texts are on the screen."""
        await self.until(lambda: all(one in self.text() for one in texts), f"shows {texts}")

    async def chooses(self, session: str) -> None:
        """Wait until this session is highlighted."""
        await self.until(lambda: self.chosen == session, f"chooses {session}")

    async def closes(self) -> None:
        """Wait until no dialog is open."""
        await self.until(lambda: self.app.screen is self.app.screen_stack[0], "closes")

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        for _ in range(int(PATIENCE / 0.05)):
            if condition():
                return
            await self.pilot.pause(0.05)
        raise AssertionError(f"{what}:\n{self.text()}")

    def text(self) -> str:
        """The screen, line by line."""
        screen = self.app.screen
        strips = screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    @property
    def chosen(self) -> str | None:
        return self.app.query_one(Sessions).chosen


def play(source: BoardSource, story: Story, size: tuple[int, int] = (80, 24)) -> None:
    async def run() -> None:
        app = Top(source)
        async with app.run_test(size=size, notifications=True) as pilot:
            await story(Screen(pilot, app))

    asyncio.run(run())


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("MERGEWRIGHT_PAGE_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    site = Site(tmp_path)
    failed = Check(id="unit", name="unit", state=CheckState.FAILED)
    pull = Pull(number=34, head=HEAD, url="https://example.com/pull/34", checks=(failed,))
    site.session(1, title="Which [port]?", status=Status.NEEDS_INPUT, reason=Reason.AGENT_QUESTION)
    site.session(2, title="Parse flags", status=Status.CI_FAILED, pulls=(pull,))
    site.session(3, title="Old", status=Status.MERGED)
    site.session(4, title="A title that is far too long for " + "eighty columns " * 9)
    yield site
    site.close()


@pytest.fixture
def server(site: Site) -> Iterator[RemoteBoard]:
    with closing(RemoteServer(site.url)) as remote:
        yield RemoteBoard(remote)


def given(site: Site, session: str) -> list[tuple[str, str]]:
    found = site.store.sessions.get(session)
    assert found is not None
    return [(one.kind, one.text) for one in found.commands]


def test_what_needs_a_person_comes_first_and_says_what_to_do(server: RemoteBoard) -> None:
    async def story(screen: Screen) -> None:
        await screen.shows("4 sessions, 1 needs you", "Answer the question", "Which [port]?")
        lines = screen.text().splitlines()
        assert (len(lines), {len(line) for line in lines}) == (24, {80})
        groups = [line.strip() for line in lines if line.rstrip().endswith("(1)")]
        assert groups == ["Needs attention (1)", "Repairing (1)", "Working (1)", "Finished (1)"]
        assert [line.split()[0] for line in lines if line.startswith("  widgets-")] == [
            f"widgets-{number}" for number in (1, 2, 4, 3)
        ]
        await screen.chooses("widgets-1")
        await screen.press("j")
        await screen.shows("#34 1 failed", "Nothing to do: the agent fixes the failed checks.")
        await screen.chooses("widgets-2")
        await screen.press("down", "k", "k")
        await screen.chooses("widgets-1")

    play(server, story)


def test_it_follows_what_happens(site: Site, server: RemoteBoard) -> None:
    async def story(screen: Screen) -> None:
        await screen.shows("4 sessions")
        await screen.press("j", "j")
        site.session(5, title="Just opened", status=Status.QUEUED)
        await screen.shows("5 sessions", "Queued (1)", "Just opened")
        await screen.chooses("widgets-4")
        site.decide("widgets-4", Status.STUCK, "no progress", reason=Reason.REPAIRS_EXHAUSTED)
        await screen.shows("2 need you", "No progress")
        await screen.chooses("widgets-4")

    play(server, story)


def test_a_question_is_answered(
    site: Site, server: RemoteBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.cli.submit._WAIT_SECONDS", 0.0)

    async def story(screen: Screen) -> None:
        await screen.shows("Answer the question")
        await screen.press("enter")
        await screen.shows("Answer to widgets-1")
        await screen.press(*"8080", "enter")
        await screen.shows("answer submitted, not applied yet")
        assert given(site, "widgets-1") == [("answer", "8080")]
        await screen.press("t")
        await screen.shows("Message to the agent of widgets-1")
        await screen.press(*"hi", "escape")
        await screen.closes()
        assert len(given(site, "widgets-1")) == 1

    play(server, story)


@pytest.mark.parametrize(("key", "command"), [("s", "stop"), ("r", "restart")])
def test_what_cannot_be_undone_is_confirmed(
    site: Site,
    server: RemoteBoard,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    command: str,
) -> None:
    monkeypatch.setattr("bot.cli.submit._WAIT_SECONDS", 0.0)

    async def story(screen: Screen) -> None:
        await screen.shows("4 sessions")
        await screen.press("j")
        await screen.chooses("widgets-2")
        await screen.press(key)
        await screen.shows("y yes    n no")
        await screen.press("enter")
        await screen.closes()
        assert given(site, "widgets-2") == []
        await screen.press(key)
        await screen.shows("y yes    n no")
        await screen.press("y")
        await screen.shows(f"{command} submitted")
        assert given(site, "widgets-2") == [(command, "")]

    play(server, story)


def test_a_refusal_and_an_outage_are_said(site: Site, server: RemoteBoard) -> None:
    async def story(screen: Screen) -> None:
        await screen.shows("4 sessions")
        await screen.press("A")
        await screen.shows("the terminal of widgets-1")
        site.server.stop()
        screen.app._changed.set()
        await screen.shows("Not up to date:")
        await screen.shows("widgets-1")

    play(server, story)


def test_sessions_are_filtered(server: RemoteBoard) -> None:
    async def story(screen: Screen) -> None:
        await screen.shows("4 sessions")
        await screen.press("slash", *"parse")
        await screen.shows("1 session", "filter: parse")
        await screen.press("enter")
        await screen.chooses("widgets-2")
        await screen.press("slash", *"zzz")
        await screen.shows("No sessions match.")
        await screen.press("escape")
        await screen.shows("4 sessions")
        await screen.until(lambda: not screen.app.query_one("#filter").display, "hides the field")

    play(server, story)


def test_pages_and_help_are_opened(
    site: Site, server: RemoteBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(Top, "open_url", lambda _, url: opened.append(url))

    async def story(screen: Screen) -> None:
        await screen.shows("4 sessions")
        await screen.press("question_mark")
        await screen.shows("attach to the terminal", "Esc closes this.")
        await screen.press("escape")
        await screen.closes()
        await screen.press("o")
        page = f"{site.url}/sessions/widgets-1"
        await screen.until(lambda: opened == [page], "opens the page")

    play(server, story)


def test_the_database_of_this_machine_is_shown(
    deployment: Deployment,
) -> None:
    session = deployment.has_session(12)

    async def story(screen: Screen) -> None:
        await screen.shows(str(deployment.paths.data)[:20], "It breaks", "1 session")
        await screen.press("t")
        await screen.shows("Message to the agent of widgets-12")
        await screen.press(*"hi", "enter")
        await screen.shows("no bot is running")
        deployment.has_ended(session)
        await screen.shows("Finished (1)")
        await screen.press("A")
        await screen.shows("widgets-12 has ended (stopped)")

    play(LocalBoard(None), story)
    with closing(Store.reading(deployment.paths.database)) as store:
        found = store.sessions.get(session)
    assert found is not None
    assert [(one.kind, one.text) for one in found.commands] == [("tell", "hi")]


def test_the_terminal_of_a_session_is_opened(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, runs: Callable[[str], None]
) -> None:
    deployment.has_session(12)
    runs("widgets-12_r1")
    ran: list[Any] = []
    real = subprocess.run

    def run(command: Any, **options: Any) -> Any:
        if "attach-session" not in command:
            return real(command, **options)
        ran.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("bot.cli.top.subprocess.run", run)

    async def story(screen: Screen) -> None:
        monkeypatch.setattr(screen.app, "suspend", nullcontext)
        await screen.shows("1 session")
        await screen.press("A")
        await screen.until(lambda: bool(ran), "opens the terminal")
        assert ran[0][-1] == "=widgets-12_r1"

    play(LocalBoard(None), story)


def test_without_a_terminal_there_is_an_error(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    deployment.has_session(12)
    refused = mergewright("top")
    says = "mergewright: top needs a terminal; `mergewright ls` lists the sessions without one\n"
    assert (refused.code, refused.err) == (2, says)


def test_a_real_terminal_shows_it_and_gets_its_screen_back(deployment: Deployment) -> None:
    """In tmux, without colors."""
    deployment.has_session(12)
    tmux = ["tmux", "-S", str(deployment.file.with_name("t")), "-f", "/dev/null"]
    shell = f"NO_COLOR=1 {MERGEWRIGHT} top; echo back: $?; read x"
    subprocess.run(
        [*tmux, "new-session", "-d", "-x", "80", "-y", "24", shell],
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    try:

        def shown(*options: str) -> str:
            command = [*tmux, "capture-pane", "-p", *options]
            return subprocess.run(command, capture_output=True, text=True).stdout

        eventually(lambda: "It breaks" in shown(), "the board is shown")
        assert not re.search(r"\x1b\[[0-9;]*3[1-6]m", shown("-e"))
        subprocess.run([*tmux, "send-keys", "q"], check=True)
        eventually(lambda: "back: 0" in shown(), "the shell is back")
        assert "It breaks" not in shown()
    finally:
        subprocess.run([*tmux, "kill-server"])
