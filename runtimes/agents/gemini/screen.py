"""The screen of Gemini CLI: its dialogs and its input box."""

import re
from collections.abc import Iterable, Sequence
from functools import partial

from runtimes.agents.base import RunFiles
from runtimes.agents.shared.dialogs import Dialog, numbered_dialog
from runtimes.agents.shared.hooks import last_call
from runtimes.agents.shared.question_forms import FormScreen, Question, asked_form, shown_question

_CHOICE = re.compile(r"^(● )?(\d)\. +(.+)$", re.MULTILINE)
#: The line below the text field of a dialog, and the beginning of such a field.
_TEXT_FOOTER = re.compile(r"\(?(?:Press )?Enter to submit\W+Esc to cancel")
_TEXT_FIELD = re.compile(r"│ (?:> |╭)")
#: The input box; group 1 is its text.
INPUT_BOX = re.compile(r"^ [>*!] +(.*)", re.MULTILINE)
INPUT_HINT = re.compile("Type your message or @path/to/file$")
#: The heading of the dialog about a usage limit. Even if it offers a retry, the limit still holds.
LIMIT_HEADING = "Usage limit reached"
#: The box of a question form.
_FORM = re.compile(r"╭─+╮\n│ Answer Questions +│\n(.*?)╰", re.DOTALL)
#: The line after a question's text.
_AFTER_QUESTION = re.compile(r"^(\(Select all that apply\)|▲|● 1\.|1\.|>)", re.MULTILINE)
#: The choice of a question that takes free text, and the one that confirms ticked choices.
_FREE_TEXT, _DONE = "Enter a custom value", "●  Done"
#: A question without choices: its text field, and the placeholder of an empty field.
_ONLY_TEXT = re.compile(r"^> (.*)\nEnter to submit ", re.MULTILINE | re.DOTALL)
_EMPTY_FIELD = "Enter your response"
#: The answers on the review page, one a line.
_REVIEW = re.compile(
    r"^Review your answers:\n(?:⚠ [^\n]*\n)?(.*)\nEnter ", re.MULTILINE | re.DOTALL
)


def dialog(files: RunFiles, screen: str) -> Dialog:
    """Return the open question form, permission request or other dialog with choices.

    The `Dialog` is empty if none is open.
    """
    if shown := form_text(screen):
        return asked_form(last_call(files, "BeforeTool"), partial(_form_screen, shown))
    heading, choices = permission_dialog(screen)
    # A dialog without choices asks for a secret, which nobody should post in a comment.
    return numbered_dialog(heading, choices) if choices else Dialog()


def permission_dialog(screen: str) -> tuple[str, tuple[str, ...]]:
    """Return the heading and the choices of an open dialog; both empty if none is open.

    A dialog for free text has no choices. A dialog above an input box is not open, because an open
    dialog replaces the box.
    """
    lines = screen.splitlines()
    box = max((place for place, line in enumerate(lines) if INPUT_BOX.match(line)), default=-1)
    lines = [line.strip() for line in lines[box + 1 :]]
    top = max((place for place, line in enumerate(lines) if line.startswith("╭")), default=None)
    if top is None:
        return "", ()
    inside = [line.strip("─╭╮╰╯│ ").removeprefix("? ") for line in lines[top:]]
    found = [_CHOICE.fullmatch(line) for line in inside]
    # The heading may contain numbers too: the choices are the last that begin with 1.
    first = max((place for place, one in enumerate(found) if one and one[2] == "1"), default=0)
    choices = [one for one in found[first:] if one]
    if any(one[1] for one in choices):
        return _joined(inside[:first]), tuple(one[3] for one in choices)
    if not any(map(_TEXT_FOOTER.match, inside)):
        return form_text(screen), ()
    field = next((place for place, line in enumerate(lines[top:]) if _TEXT_FIELD.match(line)), 0)
    return _joined(inside[:field]), ()


def _joined(lines: Iterable[str]) -> str:
    return " ".join(filter(None, lines))


def form_text(screen: str) -> str:
    """Return the text in the box of a question form; empty if none is open."""
    boxes = list(_FORM.finditer(screen))
    if not boxes or INPUT_BOX.search(screen, boxes[-1].end()):
        return ""
    return "\n".join(filter(None, (line.strip("│ ") for line in boxes[-1][1].splitlines())))


def _form_screen(shown: str, questions: Sequence[Question]) -> FormScreen | None:
    """Parse the text of a form. Return None if it shows none of these questions."""
    if review := _REVIEW.search(shown):
        rows = tuple(line.partition(" → ")[2] for line in review[1].splitlines())
        # A row without an arrow continues a wrapped answer: the answers are ambiguous then.
        answers = rows if all(rows) else ()
        return FormScreen(at=None, text=shown, answers=answers, proceed=("Enter",))
    text = _AFTER_QUESTION.split(shown)[0]
    at = shown_question(text.rpartition("Review →\n")[2], questions)
    if at is None:
        return None
    if field := _ONLY_TEXT.search(shown):
        empty = field[1] in (questions[at].placeholder, _EMPTY_FIELD)
        return FormScreen(at=at, text=shown, own=(), typed="" if empty else field[1])
    found = {int(one[2]): one[3] for one in _CHOICE.finditer(shown)}
    number = len(questions[at].labels) + 1
    own = found.get(number, _FREE_TEXT)
    return FormScreen(
        at=at,
        text=shown,
        marked=next((int(one[2]) for one in _CHOICE.finditer(shown) if one[1]), 0),
        ticks={place: label.startswith("[x]") for place, label in found.items()},
        own=(str(number),),
        typed="" if own == _FREE_TEXT else own,
        proceed=("Enter",) if _DONE in shown else ("Down",),
    )
