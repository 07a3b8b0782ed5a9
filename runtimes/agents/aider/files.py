"""Where Aider keeps what it says of itself, and what of it is used.

It appends what it counts to the run's spool, and all that is said to a file a conversation. What it
wants to hear after a call only its screen shows.
"""

import re
from pathlib import Path

from msgspec import Struct

from lifecycle.model.facts import Usage
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.files import TEXT, Count, Dollars, Seconds
from runtimes.agents.shared.questions import AnswerStep, Choice, Dialog, with_choices

#: The empty box for the next message, in any of its modes: `>`, `ask>`, `diff multi>`.
BOX = re.compile(r"([a-z-]+( multi)?)?>")
#: The same box with words in it, which somebody types or has just sent.
FILLED = re.compile(rf"{BOX.pattern} \S")
QUESTION = re.compile(r"(.+\?) (\(Y\)es/.+) \[\w+\]:")
_CHOICE = re.compile(r"\((\w)\)([^/]*)")
_BETWEEN = re.compile(r"\n\n|─\n")


class Properties(Struct, frozen=True):
    """What one call used, by Aider's own estimate: it does not ask the provider."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    cost: Dollars = 0.0
    exception: str = ""


class Event(Struct, frozen=True):
    """One thing it counts."""

    event: str
    time: Seconds
    properties: Properties = Properties()


def used(given: Properties) -> Usage:
    """What a call used: no cost is none where it knows no price."""
    return Usage(
        input=given.prompt_tokens,
        output=given.completion_tokens,
        cost_usd=given.cost or None,
    )


def folder(files: RunFiles) -> Path:
    """The program's own folder."""
    return files.home / ".aider"


def history(files: RunFiles, native: str) -> Path:
    """What was said in a conversation, written down as it went on."""
    return folder(files) / f"{native}.chat.md"


def dialog(screen: str) -> Dialog:
    """What its screen asks. It takes the first word of a choice."""
    asked = QUESTION.fullmatch(screen.rstrip().rpartition("\n")[2].strip())
    if asked is None:
        return Dialog()
    labels = enumerate(("".join(choice) for choice in _CHOICE.findall(asked[2])), 1)
    return Dialog(
        asks=f"{_above(screen.rstrip())}\n{asked[0]}",
        choices=tuple(
            Choice(number=number, label=label, way=AnswerStep(text=label.split()[0].lower()))
            for number, label in labels
        ),
    )


def typed(screen: str) -> str:
    """The words in the box for the next message, on its last line."""
    shown = screen.rstrip().rpartition("\n")[2].strip()
    return shown.partition("> ")[2] if FILLED.match(shown) else ""


def question(asked: re.Match[str], screen: str) -> str:
    """What its screen asks, in words for people."""
    listed = ("".join(choice) for choice in _CHOICE.findall(asked[2]))
    return with_choices(" ".join(filter(None, (asked[1], _above(screen)))), listed)[:TEXT]


def _above(screen: str) -> str:
    """What the last line of the screen is about: the lines above, from an empty one or a rule."""
    return _BETWEEN.split(screen)[-1].rpartition("\n")[0]
