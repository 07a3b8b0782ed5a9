"""Unsent text in an input box."""

from pathlib import Path

import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType

RULE = "─" * 40
CLAUDE = f"❯ earlier\n\n● Done.\n\n{RULE} s-1 ─\n❯{{}}\n{RULE}\n  ⏸ manual mode on\n"
#: Hints in an empty box: at the start, after an error, and with queued messages.
PROPOSED = (
    'Try "fix the tests"',
    "Resend your message to try again",
    "Once fixed, resend your message",
    "Run /rewind to go back",
    "Press up to edit queued messages",
    "Press Enter to edit the selected message, or up again for history",
)
CODEX = "› earlier\n\n• Done.\n\n› {}\n\n  gpt default · /work\n"
GEMINI = f" > earlier\n\n✦ Done.\n{RULE}\n > {{}}\n\n workspace (/directory)\n"
AIDER = "diff> earlier\n\nDone.\n\ndiff>{}\n"


@pytest.mark.parametrize(
    ("agent", "screen", "empty"),
    [
        ("claude", CLAUDE, ["\u00a0", "", *(f"\u00a0{each}" for each in PROPOSED)]),
        ("codex", CODEX, ["Ask Codex to do anything"]),
        ("gemini", GEMINI, ["  Type your message or @path/to/file"]),
        ("aider", AIDER, ["", " "]),
    ],
)
def test_text_in_the_input_box_is_distinguished_from_hints(
    agent: str, screen: str, empty: list[str]
) -> None:
    adapter = AGENTS[agent](AgentType(program=agent))
    assert [adapter.unsent_text(screen.format(each)) for each in empty] == [""] * len(empty)
    assert adapter.unsent_text(screen.format(" let me see")) == "let me see"
    beside = f"❯ earlier │ changed\n  to do   │ {RULE}\n❯ it now  │ one.txt\n"
    assert adapter.unsent_text(beside + screen.format(empty[0])) == ""
    assert [adapter.unsent_text(each) for each in ("starting ...", "2 > 1 it is")] == ["", ""]


@pytest.mark.parametrize("agent", ["opencode", "shell"])
def test_unsent_text_is_empty_where_the_input_box_is_unreadable(agent: str, tmp_path: Path) -> None:
    assert AGENTS[agent](AgentType(program=agent)).unsent_text("> let me see") == ""
