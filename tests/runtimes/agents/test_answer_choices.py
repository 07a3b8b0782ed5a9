"""Which choice an answer names, and how requests are described."""

import pytest

from runtimes.agents.shared.dialogs import choice_number, permission_request, with_choices


@pytest.mark.parametrize(
    ("answer", "labels", "number"),
    [
        ("2", ("Yes", "No"), 2),
        (" 2. ", ("Yes", "No"), 2),
        ("3", ("Yes", "No"), None),
        ("dark red", ("Red", "Dark, red!", "Dark"), 2),
        ("dark", ("Red", "Dark, red"), 2),
        ("dark", ("Dark green", "Dark red"), None),
        ("yes", ("Yes, always", "Yes, this once"), 2),
        ("y", ("Yes, and don't ask again", "Yes, and go on"), 2),
        ("ok", ("Allow for this session", "Allow once"), 2),
        ("once", ("Always trust it", "Trust it"), 2),
        ("allow", ("No", "Yes"), 2),
        ("always", ("Allow once", "Allow for this session"), 2),
        ("always", ("Yes", "Yes, and don't ask again"), 2),
        ("always", ("Allow once", "Allow it always"), 2),
        ("yes, always", ("Yes", "All"), 2),
        ("n", ("Yes", "No, and say why"), 2),
        ("no", ("Allow once", "Reject"), 2),
        ("reject", ("Allow once", "Deny it"), 2),
        ("deny", ("Yes", "No"), 2),
        ("no", ("Not now", "Yes"), None),
        ("", ("Yes", "No"), None),
        ("well", ("Yes", "No"), None),
    ],
)
def test_an_answer_names_a_choice(answer: str, labels: tuple[str, ...], number: int | None) -> None:
    assert choice_number(answer, labels) == number


@pytest.mark.parametrize(
    ("given", "ending"),
    [
        ({"command": "make", "file_path": "x"}, "? make"),
        ({"file_path": "x", "url": "y"}, "? x"),
        ({"url": "y"}, "? y"),
        ({}, "?"),
    ],
)
def test_a_permission_request_names_the_tools_argument(
    given: dict[str, object], ending: str
) -> None:
    assert permission_request("Bash", given) == f"May I use Bash{ending}"


def test_choices_are_appended_to_a_question() -> None:
    assert with_choices("Which?", ["Red", "Blue"]) == "Which? (Red / Blue)"
    assert with_choices("Which?", []) == "Which?"
