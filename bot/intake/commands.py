"""Commands in comments: the table of all commands, and the parser that finds them in a text.

Parsing decides what a person asks for. `bot.intake.authorize` decides whether they may.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches

from msgspec import Struct

from bot.text.markdown import Address, addresses
from lifecycle.model.names import NAME
from lifecycle.model.policy import MergeMethod

#: The longest word of a comment that a reply repeats or looks for a similar command.
_MAX_WORD = 40
#: What a reply never repeats from a comment, so that it holds no mention and no markup.
_UNQUOTABLE = re.compile(r"[^\w.-]")

_AGENT = re.compile(r"[A-Za-z0-9][\w.-]{0,38}")
_AMOUNT = re.compile(r"\+?\s?\$?([0-9]{1,5}(?:\.[0-9]{1,2})?)(?:\s?(?:usd|\$))?", re.IGNORECASE)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MERGE_METHODS = [method.value for method in MergeMethod]


class InvalidArgument(ValueError):
    """The argument of a command is not one it takes; the message completes "`NAME` ..."."""


def _no_argument(text: str) -> str:
    if text:
        raise InvalidArgument("takes no argument")
    return ""


def _message(text: str) -> str:
    if not text:
        raise InvalidArgument("needs a text: the rest of its paragraph")
    return text


def _agent(text: str) -> str:
    if not text:
        raise InvalidArgument("needs the name of an agent")
    return _optional_agent(text)


def _optional_agent(text: str) -> str:
    if text and not _AGENT.fullmatch(text):
        raise InvalidArgument("takes at most the name of one agent")
    return text


def _merge_method(text: str) -> str:
    """The method in lower case; empty for the configured one."""
    if not text or text.lower() in _MERGE_METHODS:
        return text.lower()
    similar = _similar(text.lower(), _MERGE_METHODS)
    hint = f" (did you mean `{similar}`?)" if similar else ""
    raise InvalidArgument(f"takes at most one of {', '.join(_MERGE_METHODS)}{hint}")


def _commit(text: str) -> str:
    if not _COMMIT.fullmatch(text.lower()):
        raise InvalidArgument("needs a commit, by at least seven characters of its hash")
    return text.lower()


def _amount(text: str) -> str:
    """`+5`, `+2.50` or `5 USD` as `+N`."""
    found = _AMOUNT.fullmatch(text)
    if not found or not float(found[1]):
        raise InvalidArgument("needs an amount in US dollars, such as `+5`")
    return f"+{found[1]}"


class CommandSyntax(Struct, frozen=True):
    """One command: how it is written and what it does."""

    name: str
    argument: str  #: As usage shows it, e.g. `[AGENT]`; empty for a command without one.
    description: str  #: What the command does, in the imperative, for the help and the README.
    #: Validates and normalises the argument; raises `InvalidArgument`.
    parse_argument: Callable[[str], str] = _no_argument
    paragraph: bool = False  #: Whether the argument extends to the end of the paragraph.

    @property
    def usage(self) -> str:
        """The command as a person writes it, e.g. `/mergewright budget +USD`."""
        return " ".join(filter(None, (f"/{NAME}", self.name, self.argument)))


COMMANDS: Mapping[str, CommandSyntax] = {
    command.name: command
    for command in (
        CommandSyntax("agent", "NAME", "hand the work to another agent, in a new run", _agent),
        CommandSyntax(
            "allow", "COMMIT", "push this commit although it changes protected paths", _commit
        ),
        CommandSyntax(
            "answer",
            "TEXT",
            "answer the agent's question with TEXT, up to the end of the paragraph",
            _message,
            paragraph=True,
        ),
        CommandSyntax(
            "budget",
            "+USD",
            "raise the session's budget, and resume the session if it was paused for its budget",
            _amount,
        ),
        CommandSyntax("cancel", "", "cancel a `merge` that has not happened yet"),
        CommandSyntax(
            "freeze", "", "stop everything: no change on GitHub, no message to the agent"
        ),
        CommandSyntax("help", "", "show this list"),
        CommandSyntax(
            "merge",
            "[METHOD]",
            "merge the pull request at its current commit as soon as nothing blocks it; "
            f"METHOD is one of {', '.join(_MERGE_METHODS)}",
            _merge_method,
        ),
        CommandSyntax("pause", "", "stop the agent's program and keep its conversation"),
        CommandSyntax("restart", "", "stop the agent's program and start it again"),
        CommandSyntax("resume", "", "resume a paused session"),
        CommandSyntax("retry", "", "retry the actions that the bot has given up"),
        CommandSyntax(
            "review",
            "[AGENT]",
            "have the agent review the pull request and fix what it finds; "
            "with AGENT, that agent takes over the session first",
            _optional_agent,
        ),
        CommandSyntax(
            "start",
            "[AGENT]",
            "have an agent work on this issue, as adding the label does; it also brings an ended "
            "session back",
            _optional_agent,
        ),
        CommandSyntax("status", "", "show the session's status"),
        CommandSyntax("stop", "", "end the session; its work and its pull request are kept"),
        CommandSyntax(
            "tell",
            "TEXT",
            "send TEXT, up to the end of the paragraph, when the agent's turn ends",
            _message,
            paragraph=True,
        ),
        CommandSyntax("unfreeze", "", "undo `freeze` and carry out the actions it held back"),
        CommandSyntax("update", "", "merge the base branch into the pull request's branch"),
        CommandSyntax("why", "", "explain the status, and what blocks the merge"),
    )
}


class ParsedCommand(Struct, frozen=True, kw_only=True):
    """One command found in a comment."""

    name: str  #: A name in COMMANDS.
    text: str = ""  #: The argument; for `help`, the reply.


def parse(text: str, slug: str = "") -> tuple[ParsedCommand, ...]:
    """Find the first ten commands in a comment's Markdown, in their order.

    A command that is unknown or has an invalid argument becomes a `help` whose text says what is
    wrong; nothing is guessed. `slug` is the App's name in its address, an alias of the bot's name.
    """
    return tuple(_parsed(address, slug) for address in addresses(text, slug))


def help_text(slug: str = "") -> str:
    """List all commands as Markdown."""
    alias = f" (or with `@{slug}` in place of `/{NAME}`)" if slug else ""
    lines = (f"- `{command.usage}`: {command.description}" for command in COMMANDS.values())
    return "\n".join((f"Write a command at the start of a line{alias}:", "", *lines))


def _parsed(address: Address, slug: str) -> ParsedCommand:
    word = next(iter(address.line.split()), "")
    name = word.lower()
    if not name and address.mention:
        return ParsedCommand(name="start")  # A bare mention asks for an agent.
    if name in ("", "help"):
        return ParsedCommand(name="help", text=help_text(slug))
    command = COMMANDS.get(name)
    if command is None:
        return _refusal(_unknown(name), slug)
    rest = address.paragraph if command.paragraph else address.line
    try:
        return ParsedCommand(name=name, text=command.parse_argument(rest[len(word) :].strip()))
    except InvalidArgument as problem:
        wrong = f"`{name}` {problem}. Nothing was done. Usage: `{command.usage}`."
        return _refusal(wrong, slug)


def _refusal(reason: str, slug: str) -> ParsedCommand:
    return ParsedCommand(name="help", text=f"{reason}\n\n{help_text(slug)}")


def _unknown(name: str) -> str:
    shown = _UNQUOTABLE.sub("", name)[:_MAX_WORD]
    problem = f"There is no command `{shown}`." if shown else "That is not a command."
    similar = _similar(name, COMMANDS)
    return f"{problem} Did you mean `{similar}`?" if similar else problem


def _similar(word: str, known: Iterable[str]) -> str:
    return next(iter(get_close_matches(word[:_MAX_WORD], known, n=1)), "")
