"""A request to a model and its response, in terms that all APIs share."""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from bot.demo.model.script import Step, Turn
from bot.demo.model.tools import Call, call, written
from lifecycle.model.facts import Usage

Json = dict[str, Any]

#: The tokens of every response by kind; no kind includes another.
USED = Usage(input=400, output=35, cache_read=800, reasoning=7)
_FOLDER = re.compile(r"orking directory: (\S+)")
#: Identifies Aider, which has no tools and parses edits out of the text.
_EDITS = "SEARCH/REPLACE"


class Asked(Struct, frozen=True, kw_only=True):
    """A request to the model."""

    model: str
    turns: tuple[Turn, ...]
    tools: frozenset[str]
    stream: bool
    #: The response to a side request, such as one for a title; empty for any other request.
    aside: str = ""

    @property
    def edits(self) -> bool:
        """Whether the program finds its edits by parsing the model's text."""
        return not self.tools and any(_EDITS in turn.text for turn in self.turns)


class Reply(Struct, frozen=True, kw_only=True):
    """A response of the model."""

    say: str = ""
    think: str = ""
    calls: tuple[Call, ...] = ()


class Api(Struct, frozen=True, kw_only=True):
    """A model API: how the server parses its requests and encodes its responses."""

    read: Callable[[str, Json], Asked]  #: Parses a request, from its path and its JSON.
    whole: Callable[[Asked, Reply], Json]  #: Encodes a whole response.
    pieces: Callable[[Asked, Reply], Sequence[str]]  #: Encodes a response as a stream of events.
    refusal: Callable[[int], Json]  #: Encodes the body of an error status.


def reply(asked: Asked, step: Step) -> Reply:
    """Return the text and tool calls that carry out a step of the script."""
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
    """Split a text into the two pieces in which it is streamed."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def name(kind: str) -> str:
    """Return a new random id for a part of a response; it begins with `kind`."""
    return f"{kind}_{secrets.token_hex(8)}"


def texts(content: str | Sequence[Mapping[str, Any]] | None) -> str:
    """Return the text of a message's `content`: a string, a list of parts, or None."""
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
