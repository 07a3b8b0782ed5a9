"""Comment commands: what a person may say to the bot on an issue or pull request."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from bot.commands.base import Command, Parsed
from bot.commands.help import HELP
from bot.commands.merge import MERGE
from bot.commands.retry import RETRY
from bot.commands.stop import STOP
from lifecycle.names import NAME, addressed_lines

COMMANDS: Mapping[str, Command] = {
    "help": HELP,
    "merge": MERGE,
    "retry": RETRY,
    "stop": STOP,
}

#: A comment with more commands than this is no conversation; the rest is not read.
_MOST = 10
#: What may be repeated of a person's own words: no mentions, no markup.
_UNQUOTABLE = re.compile(r"[^\w.-]")


def parse(text: str) -> tuple[Parsed, ...]:
    """Find the commands in a comment, in the order they stand there.

    What cannot be carried out as it is written becomes a `help` whose text says why: a command is
    never guessed.
    """
    return tuple(_parse_line(line) for line in addressed_lines(text)[:_MOST])


def _parse_line(line: str) -> Parsed:
    word, _, rest = line.partition(" ")
    name = word.lower()
    if name in ("", HELP.name):
        return Parsed(name=HELP.name, text=help_text())
    if name not in COMMANDS:
        return Parsed(name=HELP.name, text=f"{_unknown(name)}\n\n{help_text()}")
    if rest.strip():
        problem = f"`{name}` takes nothing after it, so nothing was done."
        return Parsed(name=HELP.name, text=f"{problem}\n\n{help_text()}")
    return Parsed(name=name)


def _unknown(name: str) -> str:
    shown = _UNQUOTABLE.sub("", name)[:40]
    problem = f"There is no command `{shown}`." if shown else "That is no command."
    near = get_close_matches(name[:40], COMMANDS, n=1)
    return f"{problem} Did you mean `{near[0]}`?" if near else problem


def help_text() -> str:
    """The list of commands, as Markdown."""
    lines = (f"- `/{NAME} {command.name}`: {command.asks}" for command in COMMANDS.values())
    return "\n".join(("What can be said, at the start of a line:", "", *lines))
