"""What `transcript` prints: messages as text for people, or a line of JSON each for programs."""

import sys
import time
from collections.abc import Iterator
from itertools import islice

import msgspec
from rich.console import Console
from rich.text import Text

from bot.show.transcripts import Transcript
from runtimes.agents.shared.messages import Kind, Message

_POLL_SECONDS = 0.5


def show(
    transcript: Transcript, first: int, most: int | None, *, follow: bool, as_json: bool
) -> None:
    """Print messages from a place on; with `follow`, every further one until interrupted."""
    numbered = enumerate(_all(transcript, follow=follow))
    stop = None if most is None else first + most
    console, last = Console(highlight=False, markup=False, emoji=False), None
    try:
        for number, message in islice(numbered, first, stop):
            if as_json:
                line = {"number": number, **msgspec.to_builtins(message)}
                sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
                sys.stdout.flush()
            else:
                head = _head(message)
                if head != last:
                    console.print(Text(f"{number}  {head}", "bold"))
                console.print(Text(message.text), soft_wrap=True)
                last = head
    except KeyboardInterrupt:
        return


def _all(transcript: Transcript, *, follow: bool) -> Iterator[Message]:
    while (found := transcript.new()) or follow:
        yield from found
        if not found:
            time.sleep(_POLL_SECONDS)


def _head(message: Message) -> str:
    """What kind of message it is, when it was said, and what it used."""
    words = [message.at.astimezone().strftime("%m-%d %H:%M:%S")] if message.at else []
    words += [str(message.kind), *filter(None, (message.tool, message.model))]
    if message.used and message.kind in (Kind.ANSWER, Kind.USAGE):
        used = message.used
        words.append(f"in {used.input + used.cache_read + used.cache_write}, out {used.output}")
    return "  ".join(words)
