"""The screen of Claude Code: its dialogs, its input box and its notice of a retry."""

import re
from collections.abc import Sequence
from functools import partial

from runtimes.agents.base import RunFiles
from runtimes.agents.shared.dialogs import Dialog, arrow_key_dialog, numbered_dialog
from runtimes.agents.shared.hooks import last_call
from runtimes.agents.shared.question_forms import FormScreen, Question, asked_form, shown_question

_CHOICE = re.compile(r"^ *(❯ )?(\d)\. (.+?) *$", re.MULTILINE)
_RULE = re.compile(r"─{20,}")
#: The input box, between two rules.
INPUT_BOX = re.compile(r"^─{20,}[^\n]*\n❯[ \u00a0]?((?:(?!─{20,})[^\n]*\n)*?)─{20,}", re.MULTILINE)
#: The headings of a question form, below a rule.
_FORM_HEADINGS = re.compile(r"─{20,}\n(?:←  | )[☐☒] ")
#: How the hints in an empty input box begin.
INPUT_HINT = re.compile(r'Try "|Resend |Once fixed, resend|Run /rewind|Press (up|Enter) to ')
#: The unnumbered choices and the footer of the dialogs before the first turn.
_STARTUP_CHOICES = re.compile(
    r"((?:^ *+\S.*+\n)+)\n* *Enter to confirm · Esc to cancel", re.MULTILINE
)
_MARK = "❯ "
#: The error after which the program retries: `✻ 429 ... · retrying in 8s · attempt 4/10`.
RETRY = re.compile(r"^\S (.+?) · retrying\b.* · attempt ", re.MULTILINE)
#: An answer below its question on the review page, wrapped.
_REVIEWED_ANSWER = re.compile(r"^ +→ (.*(?:\n(?! +● ).+)*)", re.MULTILINE)
_REVIEW_HEADING = "\nReview your answers\n"
#: The choice of a question that takes free text.
_FREE_TEXT = "Type something."


def dialog(files: RunFiles, screen: str) -> Dialog:
    """Return the open question form, permission request or startup dialog, or an empty dialog."""
    asked = last_call(files, "PermissionRequest")
    if headings := list(_FORM_HEADINGS.finditer(screen)):
        shown = screen[headings[-1].start() :]
        return asked_form(asked, partial(_form_screen, shown))
    found = _choices(screen)
    if not found or "Esc to cancel" not in screen[found[-1].end() :]:
        return startup_dialog(screen)
    heading = _RULE.split(screen[: found[0].start()])[-1].strip()
    name = f"{asked.at} {heading}" if asked else heading
    return numbered_dialog(name, [one[3] for one in found])


def _choices(screen: str) -> Sequence[re.Match[str]]:
    """Return the last list of choices numbered from 1; empty if no choice is marked."""
    found = list(_CHOICE.finditer(screen))
    first = max((place for place, one in enumerate(found) if one[2] == "1"), default=0)
    return found[first:] if any(one[1] for one in found[first:]) else ()


def _form_screen(shown: str, questions: Sequence[Question]) -> FormScreen | None:
    """Parse the form on the screen. Return None if it shows none of these questions."""
    found = _choices(shown)
    if not found or not questions:
        return None
    heading = shown[: found[0].start()]
    if _REVIEW_HEADING in heading:
        answers = tuple(_REVIEWED_ANSWER.findall(heading))
        return FormScreen(at=None, text=shown, answers=answers, proceed=("1",))
    at = shown_question(heading.partition("\n\n")[2], questions)
    if at is None:
        return None
    own = found[len(questions[at].labels) :][:1]  # A question with previews has no such choice.
    return FormScreen(
        at=at,
        text=shown,
        marked=next(int(one[2]) for one in found if one[1]),
        ticks={int(one[2]): one[3].startswith("[✔]") for one in found},
        own=(own[0][2],) if own else None,
        typed="".join(one[3] for one in own if one[3] != _FREE_TEXT),
        proceed=("Tab",),
    )


def startup_dialog(screen: str) -> Dialog:
    """Return the open startup dialog, such as one about trusting the folder, or an empty dialog."""
    found = _STARTUP_CHOICES.search(screen)
    if found is None:
        return Dialog()
    lines = [line.strip() for line in found[1].splitlines()]
    marked = next((place for place, line in enumerate(lines) if line.startswith(_MARK)), None)
    if marked is None:
        return Dialog()
    heading = _RULE.split(screen[: found.start()])[-1].strip()
    return arrow_key_dialog(heading, [line.removeprefix(_MARK) for line in lines], marked)
