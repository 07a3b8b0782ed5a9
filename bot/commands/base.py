"""What a comment command is: a word, and what it asks for. Carrying it out is not its business."""

from msgspec import Struct


class Command(Struct, frozen=True, kw_only=True):
    """One word people can say to the bot."""

    name: str
    asks: str  #: What saying it does, for the list in the help.


class Parsed(Struct, frozen=True, kw_only=True):
    """One command found in a comment."""

    name: str  #: A name in COMMANDS.
    text: str = ""  #: For `help`: the answer.
