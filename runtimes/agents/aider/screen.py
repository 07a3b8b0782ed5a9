"""The screen of Aider: its prompt and its questions, both on the last line."""

import re

from runtimes.agents.base import RunFiles
from runtimes.agents.shared.dialogs import AnswerStep, Dialog, with_choices

#: The empty prompt in any chat mode: `>`, `ask>`, `diff multi>`.
PROMPT = re.compile(r"([a-z-]+( multi)?)?>")
#: The prompt with text, which a person types or has just sent.
FILLED_PROMPT = re.compile(rf"{PROMPT.pattern} \S")
#: A question with its choices: `Run it? (Y)es/(N)o [Yes]:`.
QUESTION = re.compile(r"(.+\?) (\(Y\)es/.+) \[\w+\]:")
_CHOICE = re.compile(r"\((\w)\)([^/]*)")
_BREAK = re.compile(r"\n\n|─\n")


def last_line(screen: str) -> str:
    """Return the last line that is not blank, stripped; empty if all lines are blank."""
    return screen.rstrip().rpartition("\n")[2].strip()


def dialog(files: RunFiles, screen: str) -> Dialog:
    """Return the question on the screen, or an empty dialog.

    A choice is taken by typing its first word.
    """
    asked = QUESTION.fullmatch(last_line(screen))
    if asked is None:
        return Dialog()
    return Dialog(
        id=f"{_subject(screen.rstrip())}\n{asked[0]}",
        choices=tuple(
            (label, AnswerStep(text=label.split()[0].lower())) for label in _labels(asked)
        ),
    )


def question(asked: re.Match[str], screen: str) -> str:
    """Describe the question on the screen for people."""
    return with_choices(" ".join(filter(None, (asked[1], _subject(screen)))), _labels(asked))


def _labels(asked: re.Match[str]) -> list[str]:
    return ["".join(choice) for choice in _CHOICE.findall(asked[2])]


def _subject(screen: str) -> str:
    """Return what the question is about: the lines above it, up to an empty line or a rule."""
    return _BREAK.split(screen)[-1].rpartition("\n")[0]


def unsent_text(screen: str) -> str:
    """Return the text at the prompt, unsent or just sent; empty if the last line has none."""
    shown = last_line(screen)
    return shown.partition("> ")[2] if FILLED_PROMPT.match(shown) else ""
