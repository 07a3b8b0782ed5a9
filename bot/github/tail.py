"""The end of a log, fit to be shown to people and agents."""

import re

LINES = 50
LINE_LENGTH = 400
LENGTH = 8_000

#: Escape sequences as ECMA-48 has them: CSI, the strings (OSC, DCS, APC, PM, SOS), the short ones.
ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def tail(text: str) -> str:
    """The last 50 lines without control characters, at most 400 characters each, 8,000 in all."""
    lines = [_clean(line) for line in text.rstrip().split("\n")[-LINES:]]
    return "\n".join(lines)[-LENGTH:]


def _clean(line: str) -> str:
    # A progress bar redraws its line with carriage returns: what stood there last is what is seen.
    shown = line.rstrip("\r").rpartition("\r")[2]
    return CONTROL.sub("", ANSI.sub("", shown))[:LINE_LENGTH]
