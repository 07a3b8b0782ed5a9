"""Text for people: plurals, full stops, and text of others made safe for terminals and pages."""

import re

# In this order: control sequences (colours, the cursor), strings to the terminal (its title, the
# clipboard; one without an end extends to the end of its line), other escapes. Then every control
# character that is left, other line separators, the byte order mark, and the characters that change
# the reading direction of what follows.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which gets an `s` unless the count is 1."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def full_stop(text: str) -> str:
    """Return a phrase with a full stop, unless it is empty or ends with punctuation.

    Text of several lines, and a question followed by its choices in parentheses, get none either.
    """
    ended = not text or "\n" in text or text.endswith((".", "!", "?", ":", "…"))
    ended = ended or (text.endswith(")") and "?" in text)  # A question with its choices.
    return text if ended else f"{text}."


def plain(text: str) -> str:
    """Return the text without escape sequences and control characters, except newlines and tabs.

    Other line separators, byte order marks and characters that change the reading direction are
    removed too.
    """
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def settled(text: str) -> str:
    """Return the text without escape sequences as a terminal shows it in the end.

    If a line was overwritten in place, as by a progress bar, its last state is kept.
    """
    return "\n".join(_last_state(line) for line in text.split("\n"))


def _last_state(line: str) -> str:
    states = [state for state in map(plain, line.split("\r")) if state]
    return states[-1] if states else ""
