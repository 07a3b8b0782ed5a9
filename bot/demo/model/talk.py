"""A request to a model and its answer, in the words that all APIs have in common."""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bot.demo.model.script import Step, Turn
from bot.demo.model.tools import Call, call, written
from lifecycle.model.facts import Usage

Json = dict[str, Any]

#: What every answer uses. None of it is part of another.
USED = Usage(input=400, output=35, cache_read=800, reasoning=7)
_FOLDER = re.compile(r"orking directory: (\S+)")
#: By this Aider is known, which has no tools: it reads what is to change out of the words.
_EDITS = "SEARCH/REPLACE"


class Asked(Struct, frozen=True, kw_only=True):
    """What a program asks of its model."""

    model: str
    turns: tuple[Turn, ...]
    tools: frozenset[str]
    stream: bool
    aside: str = ""  #: The answer to a question beside the conversation: a title, a summary.

    @property
    def edits(self) -> bool:
        """Whether the program takes what is to change from the words of the answer."""
        return not self.tools and any(_EDITS in turn.text for turn in self.turns)


class Reply(Struct, frozen=True, kw_only=True):
    """What the model answers."""

    say: str = ""
    think: str = ""
    calls: tuple[Call, ...] = ()


class Api(Struct, frozen=True, kw_only=True):
    """One way of speaking to a model."""

    read: Callable[[str, Json], Asked]  #: Of a path and the JSON that came.
    whole: Callable[[Asked, Reply], Json]  #: The answer in one piece.
    pieces: Callable[[Asked, Reply], Sequence[str]]  #: The same as a stream of events.
    refusal: Callable[[int], Json]  #: What goes out with an HTTP status that is an error.


def reply(asked: Asked, step: Step) -> Reply:
    """What the model says and calls to do a step of the script."""
    if asked.edits:
        edits = [_edit(verb, rest) for verb, rest in step.uses]
        return Reply(say="\n".join((*edits, step.say)), think=step.think)
    folders = (found[1] for turn in asked.turns if (found := _FOLDER.search(turn.text)))
    folder = next(folders, "")
    try:
        calls = tuple(call(verb, rest, asked.tools, folder) for verb, rest in step.uses)
    except ValueError as error:
        return Reply(say=f"I cannot: {error}.")
    return Reply(say=step.say or "I use a tool.", think=step.think, calls=calls)


def halves(text: str) -> tuple[str, str]:
    """A text as it is streamed: in two pieces."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def name(kind: str) -> str:
    """A new name for something in an answer."""
    return f"{kind}_{secrets.token_hex(8)}"


def texts(content: str | Sequence[Mapping[str, Any]] | None) -> str:
    """The words in a content that is a text, or parts of which some are."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if "text" in part)


def _edit(verb: str, rest: str) -> str:
    if verb == "bash":
        return f"```bash\n{rest}\n```\n"
    if verb != "write":
        return f"I cannot: no tool for {verb!r}.\n"
    path, text = written(rest)
    return f"{path}\n```\n<<<<<<< SEARCH\n=======\n{text}>>>>>>> REPLACE\n```\n"
