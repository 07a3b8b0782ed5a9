"""Answers to recorded dialogs: by number, by label, in short and in other words."""

from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.shared.dialogs import (
    AnswerStep,
    Dialog,
    choice_number,
    choices_in,
    with_choices,
)
from tests.runtimes.agents.fake_port import answering
from tests.runtimes.agents.recordings import RECORDINGS, copy_recording
from tests.world.waiting import PATIENCE

PERMISSION_ANSWERS = [
    ("1", "1"),
    ("2.", "2"),
    ("yes", "1"),
    ("Yes!", "1"),
    ("always", "2"),
    ("green", None),
]


def dialog(agent: str, case: str, files: RunFiles) -> Dialog:
    copy_recording(RECORDINGS / agent / case, files, 0)
    screen = (RECORDINGS / agent / case / "screen.txt").read_text()
    found = AGENTS[agent](AgentType(program=agent)).dialog(files, screen)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("agent", "case", "answer", "way"),
    [
        *(
            (agent, f"waiting_input/{case}", answer, AnswerStep(keys=(key,)) if key else None)
            for agent, case in (
                ("claude", "permission"),
                ("codex", "permission"),
                ("gemini", "permission_seen"),
            )
            for answer, key in PERMISSION_ANSWERS
        ),
        ("claude", "waiting_input/permission", "no", AnswerStep(keys=("4",))),
        ("claude", "waiting_input/permission", "Yes, always", AnswerStep(keys=("2",))),
        ("claude", "waiting_input/permission", "5", None),
        ("codex", "waiting_input/permission", "no", AnswerStep(keys=("3",))),
        ("codex", "waiting_input/permission", "Yes, proceed (y)", AnswerStep(keys=("1",))),
        ("codex", "waiting_input/trust", "yes", AnswerStep(keys=("1",))),
        ("codex", "waiting_input/trust", "back to agent", AnswerStep(keys=("2",))),
        ("codex", "waiting_input/trust", "back to age", None),
        ("claude", "waiting_input/trust", "yes", AnswerStep(keys=("Down", "Enter"))),
        ("claude", "waiting_input/trust", "no", AnswerStep(keys=("Enter",))),
        ("claude", "waiting_input/api_key", "1", AnswerStep(keys=("Up", "Enter"))),
        ("claude", "waiting_input/api_key", "No (recommended)", AnswerStep(keys=("Enter",))),
        ("claude", "waiting_input/api_key", "perhaps", None),
        ("gemini", "waiting_input/permission_seen", "No", AnswerStep(keys=("3",))),
        (
            "gemini",
            "waiting_input/permission_seen",
            "Allow for this session",
            AnswerStep(keys=("2",)),
        ),
        ("claude", "waiting_input/question", "blue", AnswerStep(keys=("2",))),
        ("claude", "waiting_input/question", "-x; any", AnswerStep(keys=("3",), text="-x; any")),
        ("gemini", "waiting_input/question", "Red", AnswerStep(keys=("Enter",))),
        ("gemini", "waiting_input/question", "Green", AnswerStep(keys=("3",), text="Green")),
        ("aider", "waiting_input/new_file", "yes", AnswerStep(text="yes")),
        ("aider", "waiting_input/new_file", "2", AnswerStep(text="no")),
        ("aider", "waiting_input/new_file", "perhaps", None),
        ("aider", "waiting_input/command", "don't ask again", AnswerStep(text="don't")),
        ("aider", "waiting_input/command", "Don’t ask again.", AnswerStep(text="don't")),
        ("aider", "waiting_input/command", "always", AnswerStep(text="don't")),
        ("aider", "waiting_input/gitignore", "No", AnswerStep(text="no")),
        ("gemini", "waiting_input/trust", "yes", AnswerStep(keys=("1",))),
        ("gemini", "waiting_input/trust", "Don't trust", AnswerStep(keys=("3",))),
        ("gemini", "waiting_input/sign_in", "Use Gemini API Key", AnswerStep(keys=("2",))),
        ("gemini", "waiting_input/key", "sk-of-somebody", None),
        ("gemini", "waiting_input/question_for_words", "1", AnswerStep(text="1")),
        ("gemini", "waiting_input/question_yes_no", "no", AnswerStep(keys=("2",))),
        ("gemini", "waiting_input/question_yes_no", "Later", AnswerStep(keys=("3",), text="Later")),
        ("gemini", "blocked/usage_limit", "Stop", AnswerStep(keys=("2",))),
    ],
)
def test_a_recorded_dialog_takes_its_answers(
    files: RunFiles, agent: str, case: str, answer: str, way: AnswerStep | None
) -> None:
    assert dialog(agent, case, files).step(answer) == way


@pytest.mark.parametrize(
    ("agent", "case"),
    [
        ("codex", "active/permission_granted"),
        ("aider", "ready/turn_over"),
        ("aider", "active/command_runs"),
        ("gemini", "waiting_input/key"),
    ],
)
def test_no_dialog_is_found_where_none_is_open(files: RunFiles, agent: str, case: str) -> None:
    assert dialog(agent, case, files) == Dialog()


@pytest.mark.parametrize(
    "choices",
    [("Yes", "No"), ("Trust folder (checkout)", "No, suggest changes (esc)"), ("a", "(b) c", "d")],
)
def test_the_choices_of_a_question_are_parsed_from_its_text(choices: tuple[str, ...]) -> None:
    assert tuple(choices_in(with_choices("Shall it (really / truly) be?", choices))) == choices


def test_a_choice_containing_the_separator_stays_one_choice() -> None:
    choices = ("Yes / No", "Other")
    found = choices_in(with_choices("Which?", choices))
    assert len(found) == 2
    assert choice_number(found[0], choices) == 1


@pytest.mark.parametrize(
    "question",
    ["", "May it run f(a)", "What?", "Which? (a / b)\nSure? (c / d)\nAnswer both.", ") / ("],
)
def test_text_without_choices_has_none(question: str) -> None:
    assert not choices_in(question)


def test_choices_that_scrolled_by_are_no_dialog(files: RunFiles) -> None:
    adapter = AGENTS["claude"](AgentType(program="claude"))
    asked = (RECORDINGS / "claude/waiting_input/permission/screen.txt").read_text()
    over = asked.replace("Esc to cancel", "")
    assert adapter.dialog(files, over) == Dialog()
    assert adapter.dialog(files, "❯ 1. Yes\n  2. No\n") == Dialog()
    listed = AGENTS["gemini"](AgentType(program="gemini")).dialog(files, "● 1. Yes\n  2. No\n")
    assert listed == Dialog()
    assert adapter.dialog(files, asked.replace("❯", " ")) == Dialog()
    asked = (RECORDINGS / "claude/waiting_input/trust/screen.txt").read_text()
    assert adapter.dialog(files, asked.replace("❯", " ")) == Dialog()


def test_dialogs_about_different_subjects_have_different_ids(files: RunFiles) -> None:
    for agent, what in (("claude", "asked.txt"), ("codex", "/home/dev/zz"), ("gemini", "made.txt")):
        case = "permission_seen" if agent == "gemini" else "permission"
        screen = (RECORDINGS / agent / "waiting_input" / case / "screen.txt").read_text()
        adapter = AGENTS[agent](AgentType(program=agent))
        one, other = adapter.dialog(files, screen), adapter.dialog(files, screen.replace(what, "x"))
        assert one is not None
        assert other is not None
        assert one.id != other.id
        assert what in one.id


@pytest.fixture
def port() -> dict[str, Any]:
    return {"/permission": [], "/question": []}


@pytest.mark.parametrize(
    ("asked", "answer", "expected"),
    [
        ({"/permission": [{"id": "per_1"}]}, "always", {"reply": "always"}),
        ({"/permission": [{"id": "per_1"}]}, "1", {"reply": "once"}),
        ({"/permission": [{"id": "per_1"}]}, "no", {"reply": "reject"}),
        ({"/question": ["Which?"]}, "blue", {"answers": [["Blue"]]}),
        ({"/question": ["Which?"]}, "Green", {"answers": [["Green"]]}),
        ({"/question": ["Which?"]}, "Green\n\nor so", {"answers": [["Green\n\nor so"]]}),
        ({"/question": ["Which?", "How many?"]}, "Blue\n\n3", {"answers": [["Blue"], ["3"]]}),
    ],
)
def test_opencode_takes_answers_at_its_port(
    files: RunFiles, port: dict[str, Any], asked: dict[str, Any], answer: str, expected: object
) -> None:
    options = [{"label": "Red"}, {"label": "Blue"}]
    questions = [{"question": each, "options": options} for each in asked.get("/question", ())]
    port |= asked if not questions else {"/question": [{"id": "que_1", "questions": questions}]}
    with answering(port, "secret") as number:
        server = Path(files.inputs / "opencode-server.json")
        server.parent.mkdir(parents=True, exist_ok=True)
        server.write_text(f'{{"port": {number}, "password": "secret"}}')
        found = AGENTS["opencode"](AgentType(program="opencode")).dialog(files, "")
        assert found is not None
        way = found.step(answer)
        assert way is not None
        assert way.request is not None
        way.request()
        posted: SimpleQueue[tuple[str, object]] = port["posted"]
        kind = "permission/per_1" if "/permission" in asked else "question/que_1"
        assert posted.get(timeout=PATIENCE) == (f"/{kind}/reply", expected)
    server.unlink()
    with pytest.raises(OSError, match="its port does not answer"):
        AGENTS["opencode"](AgentType(program="opencode")).dialog(files, "")


def test_an_answer_refused_by_opencodes_port_raises_an_error(
    files: RunFiles, port: dict[str, Any]
) -> None:
    port |= {"/permission": [{"id": "per_1"}]}
    with answering(port, "secret") as number:
        server = files.inputs / "opencode-server.json"
        server.write_text(f'{{"port": {number}, "password": "secret"}}')
        found = AGENTS["opencode"](AgentType(program="opencode")).dialog(files, "")
        way = found.step("once") if found else None
        assert way is not None
        assert way.request is not None
        server.write_text(f'{{"port": {number}, "password": "another"}}')
        with pytest.raises(OSError, match="its port answered 401 to POST /permission/per_1/reply"):
            way.request()


def test_opencode_takes_only_complete_answers_to_pending_questions(
    files: RunFiles, port: dict[str, Any]
) -> None:
    adapter = AGENTS["opencode"](AgentType(program="opencode"))
    with answering(port, "secret") as number:
        server = files.inputs / "opencode-server.json"
        server.write_text(f'{{"port": {number}, "password": "secret"}}')
        assert adapter.dialog(files, "") == Dialog()
        both = [{"question": each} for each in ("Which?", "How many?")]
        port["/question"] = [{"id": "que_1", "questions": both}]
        found = adapter.dialog(files, "")
        assert found is not None
        assert found.id == "que_1"
        assert found.step("Blue") is None


def test_a_shell_command_takes_answers_as_messages(files: RunFiles) -> None:
    assert AGENTS["shell"](AgentType(program="shell")).dialog(files, "") is None
