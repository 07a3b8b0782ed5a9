"""Prints logs and transcripts, and follows them while they grow."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO

import msgspec
from rich.console import Console
from rich.text import Text

from bot.show.transcripts import Transcript
from lifecycle.model.text import settled
from runtimes.agents.shared.messages import Message, MessageKind

_LOG_POLL_SECONDS = 0.2
_TRANSCRIPT_POLL_SECONDS = 0.5


def log(path: Path, lines: int, redact: Callable[[str], str], *, follow: bool, ansi: bool) -> None:
    """Print the last lines of a file; with `follow`, also new ones until interrupted.

    `redact` replaces secrets in each line; with `ansi`, escape sequences are kept.
    """
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line in deque(file, maxlen=lines):
            _print_line(line, redact, ansi)
        if follow:
            try:
                for line in _new_lines(file):
                    _print_line(line, redact, ansi)
            except KeyboardInterrupt:
                return


def _new_lines(file: IO[str]) -> Iterator[str]:
    """Whole lines only, because half an escape sequence cannot be recognized."""
    partial = ""
    while True:
        partial += file.readline()
        if partial.endswith("\n"):
            yield partial
            partial = ""
        else:
            time.sleep(_LOG_POLL_SECONDS)


def _print_line(line: str, redact: Callable[[str], str], ansi: bool) -> None:
    sys.stdout.write(redact(line if ansi else settled(line.rstrip("\n")) + "\n"))
    sys.stdout.flush()


def transcript(
    messages: Transcript, first: int, limit: int | None, *, follow: bool, as_json: bool
) -> None:
    """Print messages from number `first` on: as text, or as one line of JSON each.

    With `follow`, also new ones until interrupted.
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
    """A message's time, kind, tool, model and tokens."""
    words = [message.at.astimezone().strftime("%m-%d %H:%M:%S")] if message.at else []
    words += [str(message.kind), *filter(None, (message.tool, message.model))]
    if message.used and message.kind in (MessageKind.ANSWER, MessageKind.USAGE):
        used = message.used
        words.append(f"in {used.input + used.cache_read + used.cache_write}, out {used.output}")
    return "  ".join(words)
