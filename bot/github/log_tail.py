"""The end of a log, fit to be shown to people and agents."""

from lifecycle.model.text import plain

LINES = 50
LINE_LENGTH = 400
LENGTH = 8_000


def tail(text: str) -> str:
    """The last 50 lines without control characters, at most 400 characters each, 8,000 in all."""
    lines = [_clean(line) for line in text.rstrip().split("\n")[-LINES:]]
    return "\n".join(lines)[-LENGTH:]


def _clean(line: str) -> str:
    # A progress bar redraws its line with carriage returns: what stood there last is what is seen.
    shown = line.rstrip("\r").rpartition("\r")[2]
    return plain(shown)[:LINE_LENGTH]
