"""Prints logs and transcripts, and follows them while they grow."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec
from rich.console import Console
from rich.text import Text

from bot.show.ansi import coloured
from bot.show.transcripts import Transcript
from lifecycle.model.text import settled
from runtimes.agents.shared.messages import Message, MessageKind

_CHUNK_BYTES = 1024 * 1024
#: Longer lines are split, because a program may print gigabytes without an end of line.
_LINE_BYTES = 1024 * 1024
_LOG_POLL_SECONDS = 0.2
_TRANSCRIPT_POLL_SECONDS = 0.5


def log(
    read: Callable[[int, int], bytes],
    lines: int,
    redact: Callable[[str], str],
    *,
    follow: bool,
    ansi: bool,
) -> None:
    """Print the last `lines` lines of a file; with `follow`, also new ones until interrupted.

    `read(start, end)` returns the file's bytes between two offsets. `redact` masks secrets in each
    line. Escape sequences are removed, except colours if `ansi` is true.
    """
    place, partial = 0, b""

    def new_lines() -> Iterator[bytes]:
        # Only whole lines are printed, because half an escape sequence cannot be recognized.
        nonlocal place, partial
        while chunk := read(place, place + _CHUNK_BYTES):
            place += len(chunk)
            *whole, partial = (partial + chunk).split(b"\n")
            yield from (line + b"\n" for line in whole)
            if len(partial) >= _LINE_BYTES:
                yield partial
                partial = b""

    def print_line(line: bytes) -> None:
        text = line.decode(errors="replace")
        show = coloured if ansi else settled
        sys.stdout.write(redact(show(text.rstrip("\n"))) + "\n")
        sys.stdout.flush()

    last = deque(new_lines(), maxlen=lines)
    if partial:
        last.append(partial)
        partial = b""
    for line in last:
        print_line(line)
    try:
        while follow:
            for line in new_lines():
                print_line(line)
            time.sleep(_LOG_POLL_SECONDS)
    except KeyboardInterrupt:
        return


def transcript(
    messages: Transcript, first: int, limit: int | None, *, follow: bool, as_json: bool
) -> None:
    """Print messages as text, or as one JSON line each, from number `first` on (counted from 0).

    `limit` is the greatest number of messages; None prints all. With `follow`, prints new messages
    too, until interrupted.
    """
    numbered = enumerate(_messages(messages, follow=follow))
    stop = None if limit is None else first + limit
    console, last = Console(highlight=False, markup=False, emoji=False), None
    try:
        for number, message in islice(numbered, first, stop):
            if as_json:
                line = {"number": number, **msgspec.to_builtins(message)}
                sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
                sys.stdout.flush()
            else:
                heading = _heading(message)
                if heading != last:
                    console.print(Text(f"{number}  {heading}", "bold"))
                console.print(Text(message.text), soft_wrap=True)
                last = heading
    except KeyboardInterrupt:
        return


def _messages(transcript: Transcript, *, follow: bool) -> Iterator[Message]:
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
