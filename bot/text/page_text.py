"""Foreign text made fit for a page. Escaping for HTML is the templates' business."""

import re

from lifecycle.model.text import plain, settled

# These part words. What begins or ends a terminal sequence is left to `plain`, and a tab, unlike
# a space, is part of none.
_GAP = re.compile("[\x00-\x06\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def block(text: str) -> str:
    """Text of several lines, e.g. a log, without control characters."""
    return settled(text)


def line(text: str) -> str:
    """Text as one line, e.g. a title, without control characters."""
    return " ".join(plain(_GAP.sub("\t", text)).split())


def link(url: str) -> str:
    """An address that is safe to follow; empty for any other."""
    return url if url.startswith(("https://", "http://")) else ""
