"""The screen of Codex: its dialogs, its input box and its notice of a retry."""

import re
from collections.abc import Sequence
from functools import partial

from runtimes.agents.base import RunFiles
from runtimes.agents.shared.dialogs import Dialog, numbered_dialog
from runtimes.agents.shared.hooks import last_call
from runtimes.agents.shared.question_forms import FormScreen, Question, asked_form, shown_question

#: The last line of every dialog.
_FOOTER = re.compile(r"Press enter to |enter \w+ · esc ")
_CHOICE = re.compile(r"(?:› )?(\d)\. (.+)")
#: A question form: the line above a question, its choices, and the last line.
_FORM_COUNT = re.compile(r"^ *Question \d+/\d+ \(\d+ unanswered\)$", re.MULTILINE)
_FORM_CHOICE = re.compile(r"^ *(› )?(\d)\. ", re.MULTILINE)
_FORM_FOOTER = " | esc to interrupt"
#: The input box; group 1 is its text.
INPUT_BOX = re.compile(r"^› ?(.*)", re.MULTILINE)
INPUT_HINT = re.compile("Ask Codex to do anything$")
#: `• Reconnecting... 2/5 (3s • ...)`, and below it the error after which the program retries.
RETRY = re.compile(r"^[•◦] .*reconnecting\S* \d.*\n *└ (.+)", re.MULTILINE | re.IGNORECASE)


def dialog(files: RunFiles, screen: str) -> Dialog:
    """Return the open question form, permission request or other dialog with choices.

    The `Dialog` is empty if none is open.
    """
    if counts := list(_FORM_COUNT.finditer(screen)):
        shown = screen[counts[-1].end() :]
        return asked_form(last_call(files, "PreToolUse"), partial(_form_screen, shown))
    heading, choices = permission_dialog(screen)
    return numbered_dialog(heading, choices) if choices else Dialog()


def _form_screen(shown: str, questions: Sequence[Question]) -> FormScreen | None:
    """Parse the form on the screen. Return None if it is closed or shows none of these questions.

    The result takes no free text, because Codex takes it only as a note to a choice.
    """
    found = list(_FORM_CHOICE.finditer(shown))
    marked = [int(one[2]) for one in found if one[1]]
    if not marked or _FORM_FOOTER not in shown:
        return None
    at = shown_question(shown[: found[0].start()], questions)
    return None if at is None else FormScreen(at=at, text=shown, marked=marked[0])


def permission_dialog(screen: str) -> tuple[str, tuple[str, ...]]:
    """Return heading and choices of an open dialog, such as a permission request.

    A dialog without numbered choices has its last line as heading. Heading and choices are empty if
    no dialog is open, or if the open dialog is a question form.
    """
    lines = [line.strip() for line in screen.strip().splitlines()]
    if not lines or not _FOOTER.match(lines[-1]):
        return "", ()
    found = [_CHOICE.fullmatch(line) for line in lines]
    # The heading may contain numbers too: the choices are the last that begin with 1.
    first = max((place for place, one in enumerate(found) if one and one[1] == "1"), default=None)
    if first is None:
        return lines[-1], ()
    heading = "\n".join(lines[:first]).strip().split("\n\n")[-1].replace("\n", " ")
    return heading, tuple(one[2] for one in found[first:] if one)
