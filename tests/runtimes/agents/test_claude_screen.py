"""What only the screen of Claude Code shows: startup dialogs and retries."""

import pytest

from lifecycle.model.status import Activity
from runtimes.agents.base import LaunchSpec, RunFiles
from runtimes.agents.claude import Claude
from runtimes.agents.claude.screen import startup_dialog
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen
from tests.runtimes.agents.fake_claude import KIND, NOW, status


@pytest.fixture
def launch(files: RunFiles) -> LaunchSpec:
    return Claude(KIND).prepare(files, "Do it.", "")


@pytest.fixture
def reader(files: RunFiles, launch: LaunchSpec) -> Reader:
    return Claude(KIND).reader(files)


def test_a_startup_dialog_is_reported_as_a_question(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    above = f"1. earlier\n\n{'─' * 40}\n Trust\n this?\n\n"
    foot = "\n\n Enter to confirm · Esc to cancel\n"
    agent = reader.read(alive, f"{above}   No\n ❯ Yes, I do{foot}", NOW)
    assert (agent.activity, agent.since) == (Activity.WAITING_INPUT, NOW)
    assert agent.question == "Trust this? (No / Yes, I do)"
    long = reader.read(alive, f"{above * 400} ❯ {'Yes ' * 600}{foot}", NOW)
    assert len(long.question) == 2000
    for screen in ("Starting ...", f"{above}   No\n   Yes{foot}", f"{above} ❯ Yes", None):
        assert reader.read(alive, screen, NOW).activity is Activity.NONE, screen
    status(files, launch, "idle")
    assert reader.read(alive, f"{above} ❯ Yes{foot}", NOW).activity is Activity.NONE


def test_a_retry_is_reported_while_the_status_is_busy(
    files: RunFiles, launch: LaunchSpec, reader: Reader, alive: Seen
) -> None:
    screen = "● Ran.\n\n✻ 429 Slow down · and · retrying in 8s · attempt 5/10\n\n❯ \n"
    status(files, launch, "busy")
    agent = reader.read(alive, screen, NOW)
    assert agent.activity is Activity.ACTIVE
    again = "the agent's screen says that it retries after"
    assert agent.evidence == f"{again}: 429 Slow down · and"
    endless = reader.read(alive, f"✻ {'x' * 3000} · retrying… · attempt 1/1", NOW)
    assert len(endless.evidence) == 2000
    for other in (None, "● It is · retrying.\n", screen.replace("✻", "  ✻")):
        assert reader.read(alive, other, NOW).evidence == "the agent's status file says: busy"
    status(files, launch, "waiting", waitingFor="input needed")
    assert (
        reader.read(alive, screen, NOW).evidence
        == "the agent's status file says: waiting input needed"
    )


def test_rows_without_a_dialog_are_read_in_bounded_time() -> None:
    rows = "  ❯ a\n" * 50
    assert startup_dialog(rows).choices == ()
    assert startup_dialog(f"{rows}\n Enter to confirm · Esc to cancel\n").choices != ()
