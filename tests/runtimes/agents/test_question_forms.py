"""Forms with several questions or choices: each step follows from the screen."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from lifecycle.model.status import Activity
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.claude import Claude
from runtimes.agents.shared.dialogs import AnswerStep, Dialog
from runtimes.agents.shared.hooks import HookCall, HookPayload
from runtimes.agents.shared.question_forms import (
    FormScreen,
    asked_form,
    describe_questions,
    parse_answers,
    parse_questions,
)
from tests.runtimes.agents.fake_claude import KIND, hook
from tests.runtimes.agents.recordings import RECORDINGS, Recording, copy_recording, each_recording

GIVEN = [
    {"question": "Which?", "options": [{"label": "Red"}, {"label": "Dark, red"}]},
    {"question": "With?", "multiSelect": True, "options": [{"label": "Salt"}, {"label": "Oil"}]},
    {"question": "Really?", "type": "yesno"},
    {"question": "Name?", "type": "text"},
]
ASKS = parse_questions({"questions": GIVEN})


def test_the_description_explains_how_to_answer_several_questions() -> None:
    assert describe_questions({"questions": GIVEN}).splitlines() == [
        "Which? (Red / Dark, red)",
        "With? (Salt / Oil) Choose one or more, separated by commas",
        "Really? (Yes / No)",
        "Name?",
        "Answer every question, each on its own line",
    ]
    assert describe_questions({"questions": GIVEN[:1]}) == "Which? (Red / Dark, red)"
    assert describe_questions({"questions": {"question": "Which?"}}) == ""


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
    assert parse_answers(ASKS, text) == given


@pytest.mark.parametrize("word", ["multiple", "multiSelect"])
def test_both_spellings_of_multiple_choice_are_understood(word: str) -> None:
    (one,) = parse_questions({"questions": [{"question": "With?", word: True}]})
    assert one.takes_several


def test_the_answer_to_a_single_question_may_have_several_lines() -> None:
    assert parse_answers(ASKS[3:], "Ada\n\nor Bob") == [("Ada\n\nor Bob",)]


@pytest.mark.parametrize(
    ("page", "way"),
    [
        (FormScreen(at=0, text="", own=("3",), marked=1), AnswerStep(keys=("2",))),
        (FormScreen(at=0, text="", own=("3",), marked=2), AnswerStep(keys=("Enter",))),
        (FormScreen(at=1, text="", ticks={1: False, 2: False}), AnswerStep(keys=("1",))),
        (FormScreen(at=1, text="", ticks={1: True, 2: True}), AnswerStep(keys=("2",))),
        (
            FormScreen(at=1, text="", ticks={1: True, 2: False}, proceed=("Tab",)),
            AnswerStep(keys=("Tab",)),
        ),
        (FormScreen(at=3, text="", own=("3",)), AnswerStep(keys=("3",), text="Ada")),
        (FormScreen(at=3, text="", own=("3",), typed="A\n da"), AnswerStep(keys=("Enter",))),
        (FormScreen(at=3, text="", own=("3",), typed="Bob"), None),
        (FormScreen(at=3, text=""), None),
        (FormScreen(at=None, text="", proceed=("1",)), AnswerStep(keys=("1",))),
        (
            FormScreen(
                at=None, text="", answers=("Dark,\n red", "Salt", "Yes", "Ada"), proceed=("1",)
            ),
            AnswerStep(keys=("1",)),
        ),
        (
            FormScreen(
                at=None, text="", answers=("Dark, red", "Oil, Salt", "Yes", "Ada"), proceed=("1",)
            ),
            None,
        ),
        (FormScreen(at=None, text="", answers=("Dark, red", "Salt", "Yes"), proceed=("1",)), None),
    ],
)
def test_each_step_follows_from_the_screen_and_the_answer(
    page: FormScreen, way: AnswerStep | None
) -> None:
    payload = HookPayload("Asks", tool_input={"questions": msgspec.to_builtins(ASKS)})
    dialog = asked_form(HookCall(run=2, hook=payload), lambda questions: page)
    assert dialog.step("2\nSalt\nyes\nAda") == way
    assert dialog.step("2") is None


SEVERAL = "2\nSalt, Sugar\nLarge"
FOUR = "Blue\nSalt, Sugar\nbob\nyes"


@pytest.mark.parametrize(
    ("agent", "case", "screen", "answer", "way"),
    [
        ("claude", "several", "screen", SEVERAL, AnswerStep(keys=("2",))),
        ("claude", "several", "screen", "red\nSalt\nLarge", AnswerStep(keys=("Enter",))),
        (
            "claude",
            "several",
            "screen",
            "green\nSalt\nLarge",
            AnswerStep(keys=("3",), text="green"),
        ),
        ("claude", "several", "screen", "2\nSalt, Vinegar\nLarge", None),
        ("claude", "several", "screen", "2", None),
        ("claude", "several", "ticked", SEVERAL, AnswerStep(keys=("Tab",))),
        ("claude", "several", "ticked", "2\nPepper\nLarge", AnswerStep(keys=("1",))),
        ("claude", "several", "review", SEVERAL, AnswerStep(keys=("1",))),
        ("claude", "several", "review", "blue\n3, 1\n2", AnswerStep(keys=("1",))),
        ("claude", "several", "review", "blue\nSalt\n2", None),
        ("claude", "preview", "screen", "Narrow\nyes", AnswerStep(keys=("Enter",))),
        ("claude", "preview", "screen", "Wide\nyes", AnswerStep(keys=("1",))),
        ("claude", "preview", "screen", "Tall\nyes", None),
        ("gemini", "several", "screen", FOUR, AnswerStep(keys=("2",))),
        ("gemini", "several", "screen", "red\n1\n-\ny", AnswerStep(keys=("Enter",))),
        ("gemini", "several", "typed", "red\n1\n-\ny", AnswerStep(keys=("1",))),
        ("gemini", "several", "screen", "green\n1\n-\ny", AnswerStep(keys=("3",), text="green")),
        ("gemini", "several", "typed", "green\n1\n-\ny", AnswerStep(keys=("Enter",))),
        ("gemini", "several", "ticked", FOUR, AnswerStep(keys=("Down",))),
        ("gemini", "several", "ticked", "2\nPepper\nbob\nyes", AnswerStep(keys=("1",))),
        ("gemini", "several", "ticked", "2\nVinegar\nbob\nyes", None),
        ("gemini", "several", "done", "2\nPepper\nbob\nyes", AnswerStep(keys=("Enter",))),
        ("gemini", "several", "name", FOUR, AnswerStep(keys=("Enter",))),
        ("gemini", "several", "name", "2\n1\nada\ny", None),
        ("gemini", "several", "review", FOUR, AnswerStep(keys=("Enter",))),
        ("gemini", "several", "review", "Blue\nSalt, Sugar\nada\nyes", None),
        ("codex", "several", "screen", "blue\nlarge", AnswerStep(keys=("2",))),
        ("codex", "several", "screen", "red\nlarge", AnswerStep(keys=("Enter",))),
        ("codex", "several", "screen", "green\nlarge", None),
        ("codex", "several", "second", "blue\nlarge", AnswerStep(keys=("2",))),
    ],
)
def test_a_recorded_form_takes_the_next_step_of_an_answer(
    files: RunFiles, agent: str, case: str, screen: str, answer: str, way: AnswerStep | None
) -> None:
    recording = RECORDINGS / agent / "waiting_input" / case
    copy_recording(recording, files, 0)
    adapter = AGENTS[agent](AgentType(program=agent))
    asked = adapter.dialog(files, (recording / "screen.txt").read_text())
    dialog = adapter.dialog(files, (recording / f"{screen}.txt").read_text())
    assert asked is not None
    assert dialog is not None
    assert dialog.step(answer) == way
    assert dialog.id == asked.id != "", "it is the same question at every step"
    assert (dialog.state == asked.state) is (screen == "screen")


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_a_form_without_known_questions_takes_no_answer(files: RunFiles, agent: str) -> None:
    recording = RECORDINGS / agent / "waiting_input" / "several"
    adapter = AGENTS[agent](AgentType(program=agent))
    for screen in recording.glob("*.txt"):
        assert adapter.dialog(files, screen.read_text()) == Dialog()
    copy_recording(recording, files, 0)
    other = (recording / "screen.txt").read_text().replace("Which colour?", "Which one?")
    assert adapter.dialog(files, other) == Dialog()


def test_the_same_question_asked_again_is_another_dialog(files: RunFiles) -> None:
    recording = RECORDINGS / "claude" / "waiting_input"
    adapter = AGENTS["claude"](AgentType(program="claude"))
    for case in ("several", "permission"):
        copy_recording(recording / case, files, 0)
        screen = (recording / case / "screen.txt").read_text()
        first = adapter.dialog(files, screen)
        hooks = files.spool.read_text()
        files.spool.write_text(hooks + hooks.replace('"at": 1795', '"at": 1796'))
        again = adapter.dialog(files, screen)
        assert first is not None
        assert again is not None
        assert first.id != again.id


@pytest.mark.parametrize(
    ("agent", "shown", "instead", "answer", "taken"),
    [
        ("claude", "→ Blue", "→ green and\n     gold", "green and gold\n1, 3\n2", True),
        ("claude", "→ Blue", "→ green and\n     gold", "green and\n1, 3\n2", False),
        ("gemini", "answers:", "answers:\n│ ⚠ You have 1 unanswered question", FOUR, True),
        ("gemini", "→ bob", "→ (not answered)", FOUR, False),
        ("gemini", "→ bob", "→ ada\n│        eve", FOUR, True),
    ],
)
def test_the_review_page_is_compared_with_the_answer(
    files: RunFiles, agent: str, shown: str, instead: str, answer: str, taken: bool
) -> None:
    recording = RECORDINGS / agent / "waiting_input" / "several"
    copy_recording(recording, files, 0)
    screen = (recording / "review.txt").read_text()
    assert shown in screen
    dialog = AGENTS[agent](AgentType(program=agent)).dialog(files, screen.replace(shown, instead))
    assert dialog is not None
    assert (dialog.step(answer) is not None) is taken


def test_text_in_geminis_form_is_sent_and_not_pasted_again(
    files: RunFiles,
) -> None:
    recording = RECORDINGS / "gemini" / "waiting_input" / "question_for_words"
    copy_recording(recording, files, 0)
    screen = (recording / "screen.txt").read_text()
    adapter = AGENTS["gemini"](AgentType(program="gemini"))
    ways = []
    for words in ("a name", "Enter your response", "Ada", "Ada\n│   and Bob", "Eve"):
        dialog = adapter.dialog(files, screen.replace("> a name", f"> {words}"))
        ways += [dialog.step("Ada and Bob" if "Bob" in words else "Ada")] if dialog else []
    paste, enter = AnswerStep(text="Ada"), AnswerStep(keys=("Enter",))
    assert ways == [paste, paste, enter, enter, None]


def test_a_gemini_form_above_the_input_box_is_closed(files: RunFiles) -> None:
    recording = RECORDINGS / "gemini" / "waiting_input" / "several"
    copy_recording(recording, files, 0)
    screen = (recording / "screen.txt").read_text()
    adapter = AGENTS["gemini"](AgentType(program="gemini"))
    assert adapter.dialog(files, f"{screen}\n *   Type your message") == Dialog()


def test_choices_of_a_gemini_form_that_scrolled_away_can_be_taken(
    files: RunFiles,
) -> None:
    recording = RECORDINGS / "gemini" / "waiting_input" / "several"
    copy_recording(recording, files, 0)
    screen = (recording / "screen.txt").read_text()
    scrolled = screen.replace("● 1.  Red", "▲").replace("the red one ", "").replace("  2.", "● 2.")
    dialog = AGENTS["gemini"](AgentType(program="gemini")).dialog(files, scrolled)
    assert dialog.step(FOUR) == AnswerStep(keys=("Enter",)) if dialog else False


@each_recording([RECORDINGS / "gemini" / "waiting_input" / "several"])
def test_gemini_waits_while_its_form_is_open(case: Path, recording: Recording) -> None:
    later = recording.moment.now + timedelta(minutes=5)
    screens = sorted(case.glob("*.txt"))
    assert len(screens) > 1
    for screen in screens:
        agent = recording.adapter.reader(recording.files).read(
            recording.alive, screen.read_text(), later
        )
        assert agent.activity is Activity.WAITING_INPUT, screen


def test_headings_of_a_claude_form_without_choices_are_no_dialog(files: RunFiles) -> None:
    recording = RECORDINGS / "claude" / "waiting_input" / "several"
    copy_recording(recording, files, 0)
    screen = (recording / "screen.txt").read_text()
    adapter = AGENTS["claude"](AgentType(program="claude"))
    assert adapter.dialog(files, screen.replace("❯ 1. Red", "  1. Red")) == Dialog()


def test_the_review_page_of_a_claude_form_without_its_questions_is_no_dialog(
    files: RunFiles,
) -> None:
    recording = RECORDINGS / "claude" / "waiting_input" / "several"
    launch = Claude(KIND).prepare(files, "Do it.", "")
    hook(files, launch, "PermissionRequest", tool_name="Bash", tool_input={"command": "ls"})
    assert Claude(KIND).dialog(files, (recording / "review.txt").read_text()) == Dialog()


def test_a_codex_form_without_footer_or_choices_is_no_dialog(files: RunFiles) -> None:
    recording = RECORDINGS / "codex" / "waiting_input" / "several"
    copy_recording(recording, files, 0)
    adapter = AGENTS["codex"](AgentType(program="codex"))
    screen = (recording / "screen.txt").read_text()
    assert adapter.dialog(files, screen.replace("esc to interrupt", "")) == Dialog()
    assert adapter.dialog(files, screen.replace("› 1.", "  1.")) == Dialog()
    assert adapter.dialog(files, "Press enter to continue\n") == Dialog()
    second = adapter.dialog(files, screen.replace("› 1.", "  1.").replace("  2. Blue", "› 2. Blue"))
    assert second is not None
    assert second.step("blue\nlarge") == AnswerStep(keys=("Enter",))
