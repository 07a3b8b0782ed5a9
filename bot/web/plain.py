"""Foreign text made fit for a page. Escaping for HTML is the templates' business."""

import re

# Terminal sequences (colours, titles), then whatever control characters are left, and the marks
# that turn the reading direction of all that follows.
_SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]P^_].*?(?:\x07|\x1b\\|\Z)|[ -/]*[0-~])", re.DOTALL
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def block(text: str) -> str:
    """Text of several lines, e.g. a log, without control characters.

    Of a line that was overwritten in place, as progress bars do, the last state is kept.
    """
    lines = _SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(_CONTROL.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in lines)


def line(text: str) -> str:
    """Text as one line, e.g. a title, without control characters."""
    return " ".join(_CONTROL.sub(" ", _SEQUENCE.sub("", text)).split())


def link(url: str) -> str:
    """An address that is safe to follow; empty for any other."""
    return url if url.startswith(("https://", "http://")) else ""
