"""Comment commands: what a person may say to the bot on an issue or pull request."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from bot.intake.commands.agent import AGENT
from bot.intake.commands.allow import ALLOW
from bot.intake.commands.answer import ANSWER
from bot.intake.commands.base import CommandSyntax, Parsed, Unfit
from bot.intake.commands.budget import BUDGET
from bot.intake.commands.cancel import CANCEL
from bot.intake.commands.freeze import FREEZE
from bot.intake.commands.help import HELP
from bot.intake.commands.merge import MERGE
from bot.intake.commands.pause import PAUSE
from bot.intake.commands.restart import RESTART
from bot.intake.commands.resume import RESUME
from bot.intake.commands.retry import RETRY
from bot.intake.commands.review import REVIEW
from bot.intake.commands.start import START
from bot.intake.commands.status import STATUS
from bot.intake.commands.stop import STOP
from bot.intake.commands.tell import TELL
from bot.intake.commands.unfreeze import UNFREEZE
from bot.intake.commands.update import UPDATE
from bot.intake.commands.why import WHY
from lifecycle.model.names import NAME, Said, said_to_the_bot

COMMANDS: Mapping[str, CommandSyntax] = {
    "agent": AGENT,
    "allow": ALLOW,
    "answer": ANSWER,
    "budget": BUDGET,
    "cancel": CANCEL,
    "freeze": FREEZE,
    "help": HELP,
    "merge": MERGE,
    "pause": PAUSE,
    "restart": RESTART,
    "resume": RESUME,
    "retry": RETRY,
    "review": REVIEW,
    "start": START,
    "status": STATUS,
    "stop": STOP,
    "tell": TELL,
    "unfreeze": UNFREEZE,
    "update": UPDATE,
    "why": WHY,
}

__all__ = ["COMMANDS", "Command", "Parsed", "Unfit", "help_text", "parse", "usage"]

#: A comment with more commands than this is no conversation; the rest is not read.
_MOST = 10
#: What may be repeated of a person's own words: no mentions, no markup.
_UNQUOTABLE = re.compile(r"[^\w.-]")


def parse(text: str, slug: str = "") -> tuple[Parsed, ...]:
    """Find the commands in a comment, in the order they stand there.

    What cannot be carried out as it is written becomes a `help` whose text says why: a command is
    never guessed. `slug`: the App's name, which is heard besides the bot's own.
    """
    return tuple(_parsed(said, slug) for said in said_to_the_bot(text, slug)[:_MOST])


def usage(command: CommandSyntax) -> str:
    """How a command is written."""
    return " ".join(filter(None, (f"/{NAME}", command.name, command.takes)))


def help_text(slug: str = "") -> str:
    """The list of commands, as Markdown, with what else the bot is called."""
    called = f", where `@{slug}` is heard like `/{NAME}`" if slug else ""
    lines = (f"- `{usage(command)}`: {command.asks}" for command in COMMANDS.values())
    return "\n".join((f"What can be said, at the start of a line{called}:", "", *lines))


def _parsed(said: Said, slug: str) -> Parsed:
    word = next(iter(said.line.split()), "")
    name = word.lower()
    if not name and said.mention:
        return Parsed(name=START.name)  # Who is called and asked for nothing is to come.
    if name in ("", HELP.name):
        return Parsed(name=HELP.name, text=help_text(slug))
    command = COMMANDS.get(name)
    if command is None:
        return Parsed(name=HELP.name, text=f"{_unknown(name)}\n\n{help_text(slug)}")
    given = said.paragraph if command.whole else said.line
    try:
        return Parsed(name=name, text=command.read(given[len(word) :].strip()))
    except Unfit as problem:
        wrong = f"`{name}` {problem}, so nothing was done. It is written `{usage(command)}`."
        return Parsed(name=HELP.name, text=f"{wrong}\n\n{help_text(slug)}")


def _unknown(name: str) -> str:
    shown = _UNQUOTABLE.sub("", name)[:40]
    problem = f"There is no command `{shown}`." if shown else "That is no command."
    near = get_close_matches(name[:40], COMMANDS, n=1)
    return f"{problem} Did you mean `{near[0]}`?" if near else problem
