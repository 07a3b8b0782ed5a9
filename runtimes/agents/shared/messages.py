"""What was said and done in a run, in one form for every agent type."""

from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from lifecycle.model.facts import Usage


class Kind(StrEnum):
    """What a message is."""

    PROMPT = "prompt"
    THOUGHT = "thought"
    ANSWER = "answer"
    CALL = "call"  #: Of a tool.
    RESULT = "result"  #: Of the call with the same `call`.
    NOTE = "note"  #: Of the program itself: an error, an interruption.
    USAGE = "usage"  #: What the answer before used, where the program tells it afterwards.


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of them."""

    kind: Kind
    text: str = ""
    at: datetime | None = None  #: None: the program does not say.
    tool: str = ""  #: Which tool is called.
    call: str = ""  #: The call's own name.
    answer: str = ""  #: The name of the model's answer that it is part of.
    model: str = ""
    used: Usage | None = None  #: By the whole answer; each of its parts may repeat it.


class Messages(Protocol):
    """The messages of a run; remembers how far it read, so that more costs what is new."""

    def new(self) -> list[Message]:
        """Those since the last call, in order, but not too many at once; empty: that was all."""
        ...
