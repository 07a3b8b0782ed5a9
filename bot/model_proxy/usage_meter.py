"""Reads token usage from responses of model APIs while they are forwarded.

Supports streamed and unstreamed responses of the APIs of Anthropic, OpenAI and Google.
"""

import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct, field

from lifecycle.model.facts import Usage

#: The largest line of a stream, or unstreamed response, that is buffered, in bytes.
MOST_BYTES = 4 * 1024 * 1024
_MOST_TOKENS = 10**11  #: Larger counts are implausible, and ignored.
MODEL_NAME = 200  #: The most characters kept of a model's name.
#: Used in estimates: bytes of text per token, and bytes of a stream's event without its text.
_TOKEN_BYTES, _DELTA_BYTES = 4, 300
_GZIP_OR_DEFLATE = 47  #: `wbits` of `zlib` for either format.
#: The name used here for each count of each API.
_NAMES: Mapping[str, str] = {
    "input_tokens": "asked",
    "prompt_tokens": "asked",
    "promptTokenCount": "asked",
    "toolUsePromptTokenCount": "tool",
    "cache_read_input_tokens": "read",  # Anthropic: not part of the input.
    "cached_tokens": "cached",  # OpenAI: part of the input. Google too:
    "cachedContentTokenCount": "cached",
    "cache_creation_input_tokens": "written",
    "output_tokens": "answered",
    "completion_tokens": "answered",
    "candidatesTokenCount": "answered",
    "reasoning_tokens": "reasoned",  # OpenAI: part of the output.
    "thoughtsTokenCount": "thought",  # Google: not part of the output.
}


class _Report(Struct):
    """The model and the usage in a response or in an event of its stream."""

    model: str | None = None
    model_version: str | None = field(default=None, name="modelVersion")
    usage: dict[str, Any] | None = None
    usage_metadata: dict[str, Any] | None = field(default=None, name="usageMetadata")
    message: "_Report | None" = None  #: The response in an event.
    response: "_Report | None" = None


_Answer = _Report | list[_Report]  # Google sends a list if not streamed as events.
_DECODER = msgspec.json.Decoder(_Answer)


class UsageMeter:
    """Meters the usage of one response while it is forwarded.

    If a response does not report its usage, as when it is cut off, the usage can be estimated from
    the sizes of the request and the response. Without estimates, an agent that disconnects early
    would use a model for free.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        """Begin with the response's `headers`, whose names are lowercase."""
        packed = headers.get("content-encoding", "identity") != "identity"
        self._unpacks = zlib.decompressobj(_GZIP_OR_DEFLATE) if packed else None
        self._streams = headers.get("content-type", "").startswith("text/event-stream")
        self._held = bytearray()
        self._model = ""
        self._numbers: dict[str, int] = {}
        self._size = 0  #: Bytes of the response, as they were sent.
        self._deltas = 0  #: Estimated tokens in the events of a stream.
        #: Whether reading stopped, because data was too large to buffer or not decompressible.
        self.lost = False

    def feed(self, data: bytes) -> None:
        """Read the next bytes of the response as the server sent them, compressed or not."""
        self._size += len(data)
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
                self._read_line(line)
        else:
            self._held += data
        self.lost = self.lost or len(self._held) > MOST_BYTES
        if self.lost:
            self._held.clear()

    def total(self, request_size: int | None = None) -> tuple[str, Usage] | None:
        """Return the model's name and the usage, or None if the usage is unknown or 0.

        The name is empty if the response does not contain it. Without `request_size`, only reported
        numbers count. With `request_size`, in bytes, input that is not reported is estimated from
        `request_size`, and the output is the greater of the reported number and an estimate from
        the size of the response.
        """
        read = self._read_line if self._streams else self._parse
        read(bytes(self._held))
        self._held.clear()
        if request_size is not None:
            self._estimate(request_size)
        if not any(self._numbers.values()):
            return None
        count = self._numbers.get
        asked, cached, answered = count("asked", 0), count("cached", 0), count("answered", 0)
        reasoned = count("reasoned", 0)
        return self._model, Usage(
            input=max(0, asked - cached) + count("tool", 0),
            output=max(0, answered - reasoned),
            cache_read=cached or count("read", 0),
            cache_write=count("written", 0),
            reasoning=reasoned + count("thought", 0),
        )

    def _estimate(self, request_size: int) -> None:
        if not any(self._numbers.get(name) for name in ("asked", "read", "written")):
            self._numbers["asked"] = request_size // _TOKEN_BYTES
        answered = self._deltas if self._streams else self._size // _TOKEN_BYTES
        self._numbers["answered"] = max(answered, self._numbers.get("answered", 0))

    def _read_line(self, line: bytes) -> None:
        """Read a line of an event stream. The last line may be incomplete."""
        if line.startswith(b"data:") and b'delta"' in line:
            self._deltas += 1 + max(0, len(line) - _DELTA_BYTES) // _TOKEN_BYTES
        if line.startswith(b"data:") and b'"usage' in line:
            self._parse(line.removeprefix(b"data:"))

    def _parse(self, text: bytes) -> None:
        with suppress(msgspec.DecodeError, RecursionError):
            answer = _DECODER.decode(text)
            for piece in answer if isinstance(answer, list) else [answer]:
                self._count(piece)

    def _count(self, piece: _Report) -> None:
        """Keep the highest value of each count.

        Counts in events are cumulative, and an event may omit some.
        """
        for inner in (piece.message, piece.response):
            if inner is not None:
                self._count(inner)
        self._model = (piece.model or piece.model_version or self._model)[:MODEL_NAME]
        for name, number in _numbers({**(piece.usage or {}), **(piece.usage_metadata or {})}):
            self._numbers[name] = max(number, self._numbers.get(name, 0))


def _numbers(usage: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the known counts, including those in nested details."""
    details = [value.items() for value in usage.values() if isinstance(value, dict)]
    for name, value in chain(usage.items(), *details):
        if name in _NAMES and type(value) is int and 0 <= value <= _MOST_TOKENS:
            yield _NAMES[name], value
