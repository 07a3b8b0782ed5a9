"""The bot's name as people write it, and whether they are talking to it."""

import re

NAME = "mergewright"

# What a reader does not take for speech: fenced code, hidden comments, code spans. The length of
# a span's ticks is capped so that a hostile text costs linear time.
_UNSPOKEN = re.compile(
    r"^\ {0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^\ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|<!--.*?(?:-->|\Z)"
    r"|(?<!`)(?P<ticks>`{1,8})(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)(?P=ticks)(?!`)",
    re.MULTILINE | re.DOTALL,
)
_NAMED = re.compile(NAME, re.IGNORECASE)
_ADDRESS = re.compile(rf"^ {{0,3}}[/@]{NAME}(?![\w/-])[:,]?(.*)$", re.MULTILINE | re.IGNORECASE)


def addressed_lines(text: str) -> tuple[str, ...]:
    """What is said to the bot: the rest of every line that begins with its name.

    A line begins with `/mergewright` or `@mergewright`, indented by three blanks at most. Quotes,
    code and hidden comments are not speech.
    """
    spoken = _UNSPOKEN.sub("`", text.replace("\r\n", "\n"))
    return tuple(rest.strip() for rest in _ADDRESS.findall(spoken))


def addresses_bot(text: str) -> bool:
    """Whether any line of a text is said to the bot, and so is no message to an agent."""
    # Most texts do not name it at all, and this is asked of every remark at every visit.
    return _NAMED.search(text) is not None and bool(addressed_lines(text))
