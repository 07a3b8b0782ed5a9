"""Prints logs and transcripts, and follows them while they grow."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol

import msgspec
from rich.console import Console
from rich.text import Text

from bot.cli.screens import print_json
from bot.show.ansi import coloured
from lifecycle.model.text import settled
from runtimes.agents.shared.messages import Message, MessageKind

_CHUNK_BYTES = 1024 * 1024
#: Longer lines are split, because a program may print gigabytes without an end of line.
_LINE_BYTES = 1024 * 1024
_LOG_POLL_SECONDS = 0.2
_TRANSCRIPT_POLL_SECONDS = 0.5


class Messages(Protocol):
    """The messages of a run."""

    def new(self) -> list[Message]:
        """Return the next messages since the last call; empty if there are none yet."""


#: A line, or a function that returns it with secrets masked. The function is called only for lines
#: that are printed, so the others are not searched for secrets.
Line = str | Callable[[], str]
#: Returns the lines added since its last call.
NewLines = Callable[[], Iterator[Line]]


def log(new_lines: NewLines, lines: int, *, follow: bool, as_json: bool) -> None:
    """Print the last `lines` lines of an output, as text or as one JSON object each.

    `new_lines` returns the lines added since its last call. With `follow`, prints new lines until
    interrupted.
    """

    def print_line(line: Line) -> None:
        text = line if isinstance(line, str) else line()
        if as_json:
            print_json({"line": text})
        else:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    for line in deque(new_lines(), maxlen=lines):
        print_line(line)
    try:
        while follow:
            for line in new_lines():
                print_line(line)
            time.sleep(_LOG_POLL_SECONDS)
    except KeyboardInterrupt:
        return


def lines_of(
    read: Callable[[int, int], bytes], redact: Callable[[str], str], *, ansi: bool
) -> NewLines:
    """Return a function that yields the lines added to a file since its last call.

    For each line, it yields a function, which returns the line's text with secrets masked by
    `redact`; only lines that are printed need to be masked. The first call yields all lines, even
    if the last one is not complete. Later calls yield a line only once its line end is written;
    lines of more than 1 MiB come in parts. `read(start, end)` returns the file's bytes between two
    offsets. Escape sequences are removed, except colours and styles if `ansi` is true.
    """
    place, rest, first = 0, b"", True

    def shown(line: bytes) -> str:
        text = line.decode(errors="replace")
        return redact(coloured(text) if ansi else settled(text))

    def new_lines() -> Iterator[Callable[[], str]]:
        # Only whole lines are printed, because half an escape sequence cannot be recognized.
        nonlocal place, rest, first
        while chunk := read(place, place + _CHUNK_BYTES):
            place += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            yield from (partial(shown, line) for line in whole)
            if len(rest) >= _LINE_BYTES:
                yield partial(shown, rest)
                rest = b""
        if first and rest:
            yield partial(shown, rest)
            rest = b""
        first = False

    return new_lines


def transcript(
    messages: Messages, first: int, limit: int | None, *, follow: bool, as_json: bool
) -> None:
    """Print messages as text, or as one JSON line each, from number `first` on (counted from 0).

    `limit` is the greatest number of messages; None prints all. With `follow`, prints new messages
    too, until the limit is reached or the person interrupts.
    """
    numbered = enumerate(_messages(messages, follow=follow))
    stop = None if limit is None else first + limit
    console, last = Console(highlight=False, markup=False, emoji=False), None
    try:
        for number, message in islice(numbered, first, stop):
            if as_json:
                print_json({"number": number, **msgspec.to_builtins(message)})
            else:
                heading = _heading(message)
                if heading != last:
                    console.print(Text(f"{number}  {heading}", "bold"))
                console.print(Text(message.text), soft_wrap=True)
                last = heading
    except KeyboardInterrupt:
        return


def _messages(transcript: Messages, *, follow: bool) -> Iterator[Message]:
    while (found := transcript.new()) or follow:
        yield from found
        if not found:
            time.sleep(_TRANSCRIPT_POLL_SECONDS)


def _heading(message: Message) -> str:
    """Return the line above a message, with its time, kind, tool, model and tokens."""
    words = [message.at.astimezone().strftime("%m-%d %H:%M:%S")] if message.at else []
    words += [str(message.kind), *filter(None, (message.tool, message.model))]
    if message.used and message.kind in (MessageKind.ANSWER, MessageKind.USAGE):
        used = message.used
        read = used.input + used.cache_read + used.cache_write
        words.append(f"{read} input tokens, {used.output} output tokens")
    return "  ".join(words)
