"""What a model's answer says that it used, read as it passes, whichever API it is of."""

import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct, field

from lifecycle.model.facts import Usage

#: No more of an answer is held at once: of one piece of a stream, or of an answer that is none.
MOST_BYTES = 4 * 1024 * 1024
_MOST_TOKENS = 10**11  #: As of what programs count themselves: none that is meant has more.
_NAME = 200  #: No more characters of a model's name are kept.
_GZIP_OR_DEFLATE = 47  #: What `zlib` calls them, with all its memory for either.
#: What the numbers of every API are called here.
_CALLED: Mapping[str, str] = {
    "input_tokens": "asked",
    "prompt_tokens": "asked",
    "promptTokenCount": "asked",
    "toolUsePromptTokenCount": "tool",
    "cache_read_input_tokens": "read",  # Anthropic's: beside what is asked.
    "cached_tokens": "cached",  # OpenAI's: part of what is asked. Google's too:
    "cachedContentTokenCount": "cached",
    "cache_creation_input_tokens": "written",
    "output_tokens": "answered",
    "completion_tokens": "answered",
    "candidatesTokenCount": "answered",
    "reasoning_tokens": "reasoned",  # OpenAI's: part of what is answered.
    "thoughtsTokenCount": "thought",  # Google's: beside it.
}


class _Told(Struct):
    """An answer, or a piece of one, as far as it tells what was used."""

    model: str | None = None
    model_version: str | None = field(default=None, name="modelVersion")
    usage: dict[str, Any] | None = None
    usage_metadata: dict[str, Any] | None = field(default=None, name="usageMetadata")
    message: "_Told | None" = None  #: The answer itself, where a piece has it.
    response: "_Told | None" = None


_Answer = _Told | list[_Told]  # Google's are a list, where they are not asked for piece by piece.
_DECODER = msgspec.json.Decoder(_Answer)


class UsageMeter:
    """Reads along with one answer. What it cannot read it tells nothing of."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        """The answer's headers, by their names in small letters."""
        packed = headers.get("content-encoding", "identity") != "identity"
        self._unpacks = zlib.decompressobj(_GZIP_OR_DEFLATE) if packed else None
        self._streams = headers.get("content-type", "").startswith("text/event-stream")
        self._held = bytearray()
        self._model = ""
        self._numbers: dict[str, int] = {}
        self.lost = False  #: Whether there was more of it than is held, or it cannot be unpacked.

    def sees(self, data: bytes) -> None:
        """The next bytes of the answer, as they are sent."""
        if self.lost:
            return
        try:
            if self._unpacks is not None:
                data = self._unpacks.decompress(data, MOST_BYTES)
                self.lost = bool(self._unpacks.unconsumed_tail)
        except zlib.error:
            self.lost = True
        if self._streams and b"\n" in data:
            *lines, rest = (bytes(self._held) + data).split(b"\n")
            self._held = bytearray(rest)
            for line in lines:
                self._hear(line)
        else:
            self._held += data
        self.lost = self.lost or len(self._held) > MOST_BYTES
        if self.lost:
            self._held.clear()

    def told(self) -> tuple[str, Usage] | None:
        """The model's name and what was used, as far as it was told; None: it was not."""
        read = self._hear if self._streams else self._understand
        read(bytes(self._held))
        self._held.clear()
        if not any(self._numbers.values()):
            return None
        told = self._numbers.get
        asked, cached, answered = told("asked", 0), told("cached", 0), told("answered", 0)
        reasoned = told("reasoned", 0)
        return self._model, Usage(
            input=max(0, asked - cached) + told("tool", 0),
            output=max(0, answered - reasoned),
            cache_read=cached or told("read", 0),
            cache_write=told("written", 0),
            reasoning=reasoned + told("thought", 0),
        )

    def _hear(self, line: bytes) -> None:
        """A line of a stream, also the last one, which may have no end."""
        if line.startswith(b"data:") and b'"usage' in line:
            self._understand(line.removeprefix(b"data:"))

    def _understand(self, text: bytes) -> None:
        with suppress(msgspec.DecodeError, RecursionError):
            answer = _DECODER.decode(text)
            for piece in answer if isinstance(answer, list) else [answer]:
                self._count(piece)

    def _count(self, piece: _Told) -> None:
        """Its numbers grow from piece to piece, and a later one may leave some out."""
        for inner in (piece.message, piece.response):
            if inner is not None:
                self._count(inner)
        self._model = (piece.model or piece.model_version or self._model)[:_NAME]
        for name, number in _numbers({**(piece.usage or {}), **(piece.usage_metadata or {})}):
            self._numbers[name] = max(number, self._numbers.get(name, 0))


def _numbers(usage: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """What is known of these, also of their details."""
    details = [value.items() for value in usage.values() if isinstance(value, dict)]
    for name, value in chain(usage.items(), *details):
        if name in _CALLED and type(value) is int and 0 <= value <= _MOST_TOKENS:
            yield _CALLED[name], value
