"""Splits a terminal's text by colour and style, for which the pages have CSS classes.

The text comes from agents' programs, so all other terminal sequences are removed. For pages, each
colour is replaced by the nearest of sixteen that the style sheet defines, because the pages allow
no inline styles.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from lifecycle.model.text import plain

_SGR: Final = re.compile("\x1b\\[([0-9;:]*)m")
_COLOUR: Final = re.compile("(\x1b\\[[0-9;:]*m)")
_NO_COLOUR: Final = "\x1b[0m"
_CLASSES: Final = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse"}
_ENDS: Final = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",)}
#: Whether a sequence's number sets the foreground or the background, by the number's tens: 3 for
#: 30 to 39. The numbers 90 to 107 are bright colours.
_KINDS: Final = {3: "fg", 4: "bg", 9: "fg", 10: "bg"}
#: The most numbers that are read from one sequence. Further numbers are ignored.
_MOST_NUMBERS = 32
#: The red, green and blue of the sixteen colours, as xterm has them.
_PALETTE: Final = (
    *((0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0)),
    *((0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)),
    *((127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0)),
    *((92, 92, 255), (255, 0, 255), (0, 255, 255), (255, 255, 255)),
)


class Piece(Struct, frozen=True):
    """A part of the text in which colours and style do not change."""

    text: str
    classes: str  #: Names of CSS classes, separated by spaces; may be empty.


def pieces(text: str) -> list[Piece]:
    """Split a terminal's text by its appearance. Neighbours of the same appearance are joined."""
    found: list[Piece] = []
    style = _Style()
    begin = 0
    for match in (*_SGR.finditer(text), None):
        end = match.start() if match else len(text)
        if shown := plain(text[begin:end]):
            classes = style.classes
            if found and found[-1].classes == classes:
                shown = found.pop().text + shown
            found.append(Piece(shown, classes))
        if match:
            begin = match.end()
            style.apply(match[1])
    return found


def coloured(line: str) -> str:
    """Return a terminal's line with its colours, to be printed in another terminal.

    If the line was overwritten in place, its last state is kept. Sequences other than those of
    colours and style are removed. Otherwise an agent's output could, for example, change the
    clipboard of the person who reads it.
    """
    states = [state for state in line.split("\r") if plain(state)]
    pieces_and_colours = _COLOUR.split(states[-1] if states else "")
    parts = [part if number % 2 else plain(part) for number, part in enumerate(pieces_and_colours)]
    return "".join(parts) + (_NO_COLOUR if len(parts) > 1 else "")


class _Style:
    """The appearance of the next text, as set by the terminal sequences read so far."""

    def __init__(self) -> None:
        self._flags: set[str] = set()
        self._colours: dict[str, str] = {}

    @property
    def classes(self) -> str:
        return " ".join(sorted({*self._flags, *filter(None, self._colours.values())}))

    def apply(self, sequence: str) -> None:
        """Apply the parameters of a "select graphic rendition" sequence (ECMA-48, 8.3.117)."""
        parameters = iter(sequence.split(";")[:_MOST_NUMBERS])
        for parameter in parameters:
            first, *details = (_number(word) for word in parameter.split(":")[:_MOST_NUMBERS])
            if details:
                self._detailed(first, details)
            else:
                self._plain(first, (_number(word.partition(":")[0]) for word in parameters))

    def _plain(self, number: int, rest: Iterator[int]) -> None:
        if number == 0:
            self._flags.clear()
            self._colours.clear()
        elif number in _CLASSES:
            self._flags.add(_CLASSES[number])
        elif number in _ENDS:
            self._flags.difference_update(_ENDS[number])
        else:
            self._colour(number, rest)

    def _detailed(self, number: int, details: list[int]) -> None:
        """Apply a parameter with details after colons; `4:3`, a wavy underline, makes a plain one.

        https://invisible-island.net/xterm/ctlseqs/ctlseqs.html ("Character Attributes")
        """
        if number == 4:
            self._plain(4 if details[0] else 24, iter(()))
        elif number in (38, 48):
            if details[0] == 2 and len(details) > 4:
                del details[1]  # the colour space, which programs leave empty
            self._colour(number, iter(details))

    def _colour(self, number: int, rest: Iterator[int]) -> None:
        if number == 58:  # The colour of underlines, which pages do not show.
            _extended(rest)
        tens, unit = divmod(number, 10)
        if tens not in _KINDS:
            return
        index = unit + (8 if number >= 90 else 0)
        if unit == 8:
            index = _extended(rest)
        kind = _KINDS[tens]
        self._colours[kind] = f"{kind}{index}" if unit != 9 and index >= 0 else ""


def _number(word: str) -> int:
    return int(word[:4] or 0)


def _extended(rest: Iterator[int]) -> int:
    """Return the index in `_PALETTE` of the colour nearest to a 256-colour or RGB one.

    `rest` yields the numbers that specify the colour: 5 and one of 256, or 2, red, green and blue.
    Returns -1 for any other first number.
    """
    match next(rest, 0):
        case 5:
            number = min(next(rest, 0), 255)
            return number if number < 16 else _nearest(_of_256(number))
        case 2:
            red, green, blue = (min(next(rest, 0), 255) for _ in range(3))
            return _nearest((red, green, blue))
    return -1


def _of_256(number: int) -> tuple[int, int, int]:
    """Return a colour of xterm's table (16 to 255) as red, green and blue.

    The table consists of a colour cube, followed by greys.
    """
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    red, green, blue = ((number - 16) // step % 6 for step in (36, 6, 1))
    return _level(red), _level(green), _level(blue)


def _level(step: int) -> int:
    return 55 + 40 * step if step else 0


def _nearest(colour: tuple[int, int, int]) -> int:
    def distance(index: int) -> int:
        return sum((one - other) ** 2 for one, other in zip(_PALETTE[index], colour, strict=True))

    return min(range(16), key=distance)
