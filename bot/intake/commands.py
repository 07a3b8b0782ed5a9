"""Defines the commands that people write in comments, and finds them in a text.

The parser finds what a person asks for; `bot.intake.authorize` decides whether they may do so.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches

from msgspec import Struct
from msgspec.structs import replace

from bot.text.markdown import Address, addresses
from lifecycle.model.names import MAKES_PULL, MODE, NAME, PERMISSION_MODES
from lifecycle.model.policy import MergeMethod

#: Longer words of a comment are cut before a reply quotes them or they are compared with commands.
#: A longer line is not quoted.
_MAX_WORD = 40
#: Characters that a reply never quotes from a comment, so that no quote has mentions or markup.
_UNQUOTABLE = re.compile(r"[^\w.-]")
_UNQUOTABLE_TEXT = re.compile(r"[^\w ,.?!'-]")

#: Polite words around a command, which are ignored.
_COURTESY = {"please", "pls", "plz", "thanks", "thx", "thank", "you"}
_MARKS = ".,;:!"

_AGENT = re.compile(r"[A-Za-z0-9][\w.-]{0,38}", re.ASCII)
_AMOUNT = re.compile(r"\+?\s?\$?([0-9]{1,5}(?:\.[0-9]{1,2})?)(?:\s?(?:usd|\$))?", re.IGNORECASE)
#: The IDs of sessions, as `bot.store` makes them.
_SESSION = re.compile(r"[a-z0-9][a-z0-9-]*-(?:[cp][0-9]{1,9}|[0-9]{1,10}[a-z]{0,2})")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_MODE = f"[{MODE}MODE]"  #: The optional mode, as the usage of a command shows it.
_MERGE_METHODS = [method.value for method in MergeMethod]


class InvalidArgument(ValueError):
    """A command or another request has an invalid argument.

    If `CommandSyntax.parse_argument` raises it, the message is only the end of a sentence, to be
    put after the command's name: "takes no argument".
    """


def _no_argument(text: str) -> str:
    if text:
        raise InvalidArgument("takes no argument")
    return ""


def _message(text: str) -> str:
    if not text:
        raise InvalidArgument("needs a text after it")
    return text


def _agent(text: str) -> str:
    if not text:
        raise InvalidArgument("needs the name of an agent")
    return _optional_agent(text)


def _optional_agent(text: str) -> str:
    words = text.split()
    if len(words) > 2 or not all(map(_AGENT.fullmatch, words)):
        raise InvalidArgument("takes at most the name of one agent and one of its types")
    return " ".join(words)


def _with_mode(parse_argument: Callable[[str], str]) -> Callable[[str], str]:
    """Return a parser for what `parse_argument` accepts, then an optional permission mode."""

    def parse(text: str) -> str:
        before, given, mode = text.partition(MODE)
        if given and mode.lower() not in PERMISSION_MODES:
            modes = ", ".join(f"`{MODE}{one}`" for one in PERMISSION_MODES)
            raise InvalidArgument(f"takes one of {modes} at its end")
        return f"{parse_argument(before.strip())} {given}{mode.lower()}".strip()

    return parse


def _merge_method(text: str) -> str:
    """Return the merge method in lower case. Empty stands for the configured method."""
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
    """Return an amount in dollars, such as `+5`, `+2.50` or `5 USD`, as `+N`."""
    found = _AMOUNT.fullmatch(text)
    if not found or not float(found[1]):
        raise InvalidArgument("needs an amount in US dollars, such as `+5`")
    return f"+{found[1]}"


class CommandSyntax(Struct, frozen=True):
    """The name, argument and description of one command."""

    name: str
    argument: str  #: As usage shows it, e.g. `[AGENT]`; empty for a command without one.
    description: str  #: What the command does, in the imperative, for the help and the README.
    #: Validates and normalises the argument; raises `InvalidArgument`.
    parse_argument: Callable[[str], str] = _no_argument
    paragraph: bool = False  #: Whether the argument extends to the end of the paragraph.
    #: Whether the command has no effects that somebody would have to undo. If so, a reply to a
    #: misspelled command may suggest it.
    harmless: bool = False

    @property
    def usage(self) -> str:
        """Return the command as people write it, such as `/mergewright budget +USD`."""
        return " ".join(filter(None, (f"/{NAME}", self.name, self.argument)))


COMMANDS: Mapping[str, CommandSyntax] = {
    command.name: command
    for command in (
        CommandSyntax(
            "adopt",
            f"[AGENT [TYPE]] {_MODE}",
            "on a person's pull request: have an agent continue it on its branch, with AGENT, TYPE "
            "and MODE as in `start`; the person's commits stay as they are",
            _with_mode(_optional_agent),
        ),
        CommandSyntax(
            "agent",
            f"NAME [TYPE] {_MODE}",
            "hand the work to another agent, in a new run",
            _with_mode(_agent),
        ),
        CommandSyntax(
            "allow",
            "COMMIT",
            "push this commit although it is held, e.g. for protected paths",
            _commit,
        ),
        CommandSyntax(
            "answer",
            "TEXT",
            "answer the agent's question with TEXT, up to the end of the paragraph",
            _message,
            paragraph=True,
            harmless=True,
        ),
        CommandSyntax(
            "budget",
            "+USD",
            "raise the session's budget, and resume the session if it was paused for its budget",
            _amount,
        ),
        CommandSyntax("cancel", "", "cancel a `merge` that has not happened yet"),
        CommandSyntax(
            "freeze", "", "hold everything back: no change on GitHub, no message to the agent"
        ),
        CommandSyntax("help", "", "show this list", harmless=True),
        CommandSyntax(
            "merge",
            "[METHOD]",
            "merge the pull request at its current commit as soon as nothing blocks it; "
            f"METHOD is one of {', '.join(_MERGE_METHODS)}",
            _merge_method,
        ),
        CommandSyntax("pause", "", "stop the agent's program and keep its conversation"),
        CommandSyntax(
            MAKES_PULL,
            "",
            "turn the work of a chat into a pull request: the agent commits it, and it goes "
            "through checks and review",
        ),
        CommandSyntax(
            "restart",
            _MODE,
            "stop the agent's program and start it again; MODE says what happens from then on when "
            "the session's agents need a permission: auto grants it, confirm asks a person, reject "
            "refuses it",
            _with_mode(_no_argument),
        ),
        CommandSyntax("resume", "", "resume a paused session"),
        CommandSyntax("retry", "", "retry the actions that the bot has given up on"),
        CommandSyntax(
            "review",
            "[AGENT [TYPE]]",
            "have the agent review the pull request and fix what it finds; "
            "with AGENT, that agent takes over the session first",
            _optional_agent,
        ),
        CommandSyntax(
            "start",
            f"[AGENT [TYPE]] {_MODE}",
            "have an agent work on this issue, as adding the label does, or bring its ended "
            "session back; TYPE is one of that agent's types; MODE is as in `restart`",
            _with_mode(_optional_agent),
        ),
        CommandSyntax("status", "", "show the session's status", harmless=True),
        CommandSyntax("stop", "", "end the session; its work and its pull request are kept"),
        CommandSyntax(
            "tell",
            "TEXT",
            "send TEXT, up to the end of the paragraph, to the agent when its turn ends",
            _message,
            paragraph=True,
            harmless=True,
        ),
        CommandSyntax("unfreeze", "", "undo `freeze` and carry out the actions it held back"),
        CommandSyntax("update", "", "merge the base branch into the pull request's branch"),
        CommandSyntax("why", "", "explain the status, and what blocks the merge", harmless=True),
    )
}


class ParsedCommand(Struct, frozen=True, kw_only=True):
    """One command found in a comment."""

    name: str  #: A name in COMMANDS.
    text: str = ""  #: The argument; for `help`, the reply.
    session: str = ""  #: The id of the session that it names; if empty, it names none.


def parse(text: str, slug: str = "") -> tuple[ParsedCommand, ...]:
    """Return the commands in a comment's Markdown, at most the first ten.

    A command that is unknown or has an invalid argument becomes a `help` whose text says what is
    wrong; nothing is guessed. A mention (with `@`) without text is a `start`. One with a text that
    is no command is a `tell`, unless the text is a word similar to a command. The ID of a session
    may precede a command, as in `/mergewright widgets-12b stop`. `slug` is the App's slug, by which
    people may also mention the bot; it is empty if there is no App.
    """
    return tuple(_addressed(address, slug) for address in addresses(text, slug))


def help_text(slug: str = "") -> str:
    """List all commands as Markdown."""
    alias = f" (or with `@{slug}` in place of `/{NAME}`)" if slug else ""
    lines = (f"- `{command.usage}`: {command.description}" for command in COMMANDS.values())
    return "\n".join((f"Write a command at the start of a line{alias}:", "", *lines))


def _addressed(address: Address, slug: str) -> ParsedCommand:
    """Parse a command that may be preceded by the ID of a session."""
    session, *words = address.line.split()[:2] or [""]
    if not (_SESSION.fullmatch(session) and words and _name(words[0]) in COMMANDS):
        return _parsed(address, slug)
    rest = Address(
        address.line.removeprefix(session).strip(),
        address.paragraph.removeprefix(session).strip(),
        address.message.removeprefix(session).strip(),
        address.mention,
    )
    return replace(_parsed(rest, slug), session=session)


def _parsed(address: Address, slug: str) -> ParsedCommand:
    line = _without_courtesy_before(address.line)
    word = next(iter(line.split()), "")
    name = _name(word)
    if not address.line and address.mention:
        return ParsedCommand(name="start")  # A mention without text requests an agent.
    if name == "help" or not address.line:
        return ParsedCommand(name="help", text=help_text(slug))
    command = COMMANDS.get(name)
    if command is None:
        if address.mention and not _is_misspelled(line):
            return ParsedCommand(name="tell", text=address.message)
        return _refusal(_unknown(name), slug)
    if command.paragraph:
        argument = address.paragraph[address.paragraph.index(word) + len(word) :]
    else:
        argument = _without_courtesy(line[len(word) :])
        if word.endswith("?") and not command.harmless:
            argument = f"? {argument}"  # A question is not a command.
    try:
        return ParsedCommand(name=name, text=command.parse_argument(argument.strip()))
    except InvalidArgument as problem:
        wrong = f"`{name}` {problem}. Nothing was done. Usage: `{command.usage}`."
        return _refusal(wrong + _as_message(address), slug)


def _name(word: str) -> str:
    """Return a word in lower case and without punctuation at its end, to look up a command."""
    return word.lower().rstrip(f"{_MARKS}?")


def _without_courtesy_before(line: str) -> str:
    """Return the line without a first word such as "please", if a command follows it."""
    word, _, rest = line.partition(" ")
    polite = word.lower().rstrip(_MARKS) in _COURTESY
    return rest.lstrip() if polite and _name(next(iter(rest.split()), "")) in COMMANDS else line


def _without_courtesy(argument: str) -> str:
    """Return the argument without punctuation and words such as "please" at its end."""
    words = argument.split()
    while words and words[-1].lower().strip(_MARKS) in {*_COURTESY, ""}:
        words.pop()
    return " ".join(words).rstrip(_MARKS)


def _is_misspelled(line: str) -> bool:
    """Whether a line is one word similar to a command, and therefore not a message."""
    words = _without_courtesy(line).split()
    return len(words) == 1 and bool(_similar(words[0].lower(), COMMANDS))


def _as_message(address: Address) -> str:
    """Return a hint for a person who mentioned the bot in order to write to the agent.

    The hint shows the command `tell` with the text of `address.line`. It is empty if `address` is
    not a mention, or if that text is empty, too long to quote or may contain markup.
    """
    shown = _UNQUOTABLE_TEXT.sub("", address.line)
    if not address.mention or not shown or shown != address.line or len(shown) > _MAX_WORD:
        return ""
    return f" To send this to the agent, write `/{NAME} tell {shown}`."


def _refusal(reason: str, slug: str) -> ParsedCommand:
    return ParsedCommand(name="help", text=f"{reason}\n\n{help_text(slug)}")


def _unknown(name: str) -> str:
    shown = _UNQUOTABLE.sub("", name)[:_MAX_WORD]
    problem = f"There is no command `{shown}`." if shown else "That is not a command."
    similar = COMMANDS.get(_similar(name, COMMANDS))
    harmless = similar is not None and similar.harmless
    return f"{problem} Did you mean `{similar.name}`?" if similar and harmless else problem


def _similar(word: str, known: Iterable[str]) -> str:
    return next(iter(get_close_matches(word[:_MAX_WORD], known, n=1)), "")
