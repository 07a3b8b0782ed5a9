"""Reads the output of a run in pages of whole lines."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta, Struct

from lifecycle.model.text import settled

_CHUNK_BYTES = 256 * 1024
#: A longer line is split.
_LINE_BYTES = 4 * _CHUNK_BYTES


class NoLog(Exception):
    """The run has not begun, or its output has expired; the message says which."""


class LogPage(Struct, frozen=True, kw_only=True):
    """Lines that a run printed. Terminal sequences are removed and secrets masked."""

    lines: tuple[str, ...]
    cursor: Annotated[
        int, Meta(description="For the next page, which may be empty until the run prints more.")
    ]
    more: Annotated[bool, Meta(description="Whether there are more lines now.")]
    ended: Annotated[
        bool, Meta(description="Whether this is the last page: the run is over and prints no more.")
    ] = False
    run: Annotated[int, Meta(description="The number of the run.")] = 0


def log_page(
    read: Callable[[int, int], bytes],
    size: int,
    start: int | None,
    most: int,
    redact: Callable[[str], str],
    *,
    ended: bool,
) -> LogPage:
    """Return at most `most` lines from a run's output.

    `read(start, end)` returns the bytes between two offsets; `size` is the output's length in
    bytes. The page begins at the byte offset `start`. If that is None, it has the last lines, from
    the last MiB at most. An incomplete last line is left for the next page, unless the run has
    `ended`. `redact` masks secrets.
    """
    place = max(0, size - _LINE_BYTES) if start is None else min(start, size)
    lines, rest, partial = list[bytes](), b"", start is None and place > 0
    while place < size and (start is None or len(lines) < most):
        chunk = read(place, min(place + _CHUNK_BYTES, size))
        place += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        lines += (line + b"\n" for line in whole)
        if not chunk:  # The file was truncated meanwhile.
            break
        if len(rest) >= _LINE_BYTES:
            lines, rest = [*lines, rest], b""
    if ended and place >= size and rest:
        lines, rest = [*lines, rest], b""
    if start is None:
        kept, later = lines[partial:][-most:], []
    else:
        kept, later = lines[:most], lines[most:]
    cursor = place - len(rest) - sum(map(len, later))
    texts = (line.decode(errors="replace").removesuffix("\n") for line in kept)
    more = cursor + len(rest) < size
    return LogPage(
        lines=tuple(redact(settled(text)) for text in texts),
        cursor=cursor,
        more=more,
        ended=ended and not more,
    )
