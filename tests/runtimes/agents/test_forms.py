"""Several questions in one dialog, or several choices: each step follows from what is shown."""

import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.forms import Page, answers, asks_in, form, questions
from runtimes.agents.questions import Way
from tests.runtimes.agents.test_recordings import RECORDINGS, lay

GIVEN = [
    {"question": "Which?", "options": [{"label": "Red"}, {"label": "Dark, red"}]},
    {"question": "With?", "multiSelect": True, "options": [{"label": "Salt"}, {"label": "Oil"}]},
    {"question": "Really?", "type": "yesno"},
    {"question": "Name?", "type": "text"},
]
ASKS = asks_in(GIVEN)


def test_people_are_told_how_several_questions_are_answered() -> None:
    assert questions(GIVEN).splitlines() == [
        "Which? (Red / Dark, red)",
        "With? (Salt / Oil) Several may be taken, with commas between them.",
        "Really? (Yes / No)",
        "Name?",
        "Answer all of them, each in a line of its own.",
    ]
    assert questions(GIVEN[:1]) == "Which? (Red / Dark, red)"
    assert questions({"question": "Which?"}) == ""


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("2\n\nsalt, 2\ny\nAda", [("Dark, red",), ("Salt", "Oil"), ("Yes",), ("Ada",)]),
        (" dark, red \nOil\nno\n2", [("Dark, red",), ("Oil",), ("No",), ("2",)]),
        ("green\nOil\nwell\n-", [("green",), ("Oil",), ("well",), ("-",)]),
        ("1\n1\n1", None),
        ("1\n1\n1\n1\n1", None),
        ("1\nsalt, pepper\n1\nAda", None),
        ("", None),
    ],
)
def test_an_answer_has_a_line_for_each_question(text: str, given: object) -> None:
    assert answers(ASKS, text) == given


def test_the_answer_to_a_single_question_may_have_several_lines() -> None:
    assert answers(ASKS[3:], "Ada\n\nor Bob") == [("Ada\n\nor Bob",)]


@pytest.mark.parametrize(
    ("page", "way"),
    [
        (Page(at=0, shows="", own="3", marked=1), Way(keys=("2",))),
        (Page(at=0, shows="", own="3", marked=2), Way(keys=("Enter",))),
        (Page(at=1, shows="", ticks={1: False, 2: False}), Way(keys=("1",))),
        (Page(at=1, shows="", ticks={1: True, 2: True}), Way(keys=("2",))),
        (Page(at=1, shows="", ticks={1: True, 2: False}, on=("Tab",)), Way(keys=("Tab",))),
        (Page(at=3, shows="", own="3"), Way(keys=("3",), text="Ada")),
        (Page(at=3, shows="", own="3", typed="Ada"), Way(keys=("Enter",))),
        (Page(at=3, shows="", own="3", typed="Bob"), None),
        (Page(at=3, shows=""), None),
        (Page(at=None, shows="", on=("1",)), Way(keys=("1",))),
    ],
)
def test_each_step_brings_what_is_shown_nearer_to_the_answer(page: Page, way: Way | None) -> None:
    assert form("", ASKS, page).way("2\nSalt\nyes\nAda") == way
    assert form("", ASKS, page).way("2") is None


SEVERAL = "2\nSalt, Sugar\nLarge"


@pytest.mark.parametrize(
    ("case", "screen", "answer", "way"),
    [
        ("several", "screen.txt", SEVERAL, Way(keys=("2",))),
        ("several", "screen.txt", "red\nSalt\nLarge", Way(keys=("Enter",))),
        ("several", "screen.txt", "a green one\nSalt\nLarge", Way(keys=("3",), text="a green one")),
        ("several", "screen.txt", "2\nSalt, Vinegar\nLarge", None),
        ("several", "screen.txt", "2", None),
        ("several", "ticked.txt", SEVERAL, Way(keys=("Tab",))),
        ("several", "ticked.txt", "2\nPepper\nLarge", Way(keys=("1",))),
        ("several", "review.txt", SEVERAL, Way(keys=("1",))),
        ("preview", "screen.txt", "Narrow\nyes", Way(keys=("Enter",))),
        ("preview", "screen.txt", "Wide\nyes", Way(keys=("1",))),
        ("preview", "screen.txt", "Tall\nyes", None),
    ],
)
def test_claude_is_answered_where_it_stands(
    files: RunFiles, case: str, screen: str, answer: str, way: Way | None
) -> None:
    recording = RECORDINGS / "claude" / "waiting_input" / case
    lay(recording, files, 0)
    program = AGENTS["claude"](AgentType(program="claude"))
    asked = program.dialog(files, (recording / "screen.txt").read_text())
    dialog = program.dialog(files, (recording / screen).read_text())
    assert asked is not None
    assert dialog is not None
    assert dialog.way(answer) == way
    assert dialog.asks == asked.asks, "it is the same question at every step"
    assert (dialog.shows == asked.shows) is (screen == "screen.txt")
