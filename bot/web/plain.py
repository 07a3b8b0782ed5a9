"""Foreign text made fit for a page. Escaping for HTML is the templates' business."""

import re

from lifecycle.text import plain

# These part words. What begins or ends a terminal sequence is left to `plain`, and a tab, unlike
# a space, is part of none.
_GAP = re.compile("[\x00-\x06\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def block(text: str) -> str:
    """Text of several lines, e.g. a log, without control characters.

    Of a line that was overwritten in place, as progress bars do, the last state is kept.
    """
    return "\n".join(_last_state(line) for line in text.split("\n"))


def line(text: str) -> str:
    """Text as one line, e.g. a title, without control characters."""
    return " ".join(plain(_GAP.sub("\t", text)).split())


def link(url: str) -> str:
    """An address that is safe to follow; empty for any other."""
    return url if url.startswith(("https://", "http://")) else ""


def _last_state(line: str) -> str:
    states = [state for state in map(plain, line.split("\r")) if state]
    return states[-1] if states else ""
