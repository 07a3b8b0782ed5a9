"""Bar charts, computed on the server for the templates to draw as SVG.

A chart is stretched to the width of its page, so it contains bars alone; all words are around it.
"""

from collections.abc import Sequence
from math import floor, log10
from typing import Final

from msgspec import Struct

#: The size of a chart in its own units.
WIDTH: Final = 1000.0
HEIGHT: Final = 100.0
#: The part of a column's width that its bar takes.
_FILLED: Final = 0.8


class Column(Struct, frozen=True):
    """What is drawn at one place: values on top of each other, the first at the bottom."""

    says: str  #: What the chart shows of it, for those who point at it.
    values: tuple[tuple[str, float], ...]  #: Each with the CSS class of its colour.

    @property
    def height(self) -> float:
        """The sum of the values."""
        return sum(value for _, value in self.values)


class Bar(Struct, frozen=True, kw_only=True):
    """A rectangle, from its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    says: str


class Plot(Struct, frozen=True, kw_only=True):
    """A chart with bars from the left to the right."""

    bars: tuple[Bar, ...]
    top: float  #: What the upper edge stands for: a round number.


def plot(columns: Sequence[Column]) -> Plot:
    """Compute a chart of these columns."""
    top = _round_up(max((column.height for column in columns), default=0.0))
    step = WIDTH / max(1, len(columns))
    bars = list[Bar]()
    for place, column in enumerate(columns):
        base = HEIGHT
        for tone, value in column.values:
            height = HEIGHT * value / top
            base -= height
            if value > 0:
                bars.append(
                    Bar(
                        x=round(place * step + step * (1 - _FILLED) / 2, 2),
                        y=round(base, 2),
                        width=round(step * _FILLED, 2),
                        height=round(height, 2),
                        tone=tone,
                        says=column.says,
                    )
                )
    return Plot(bars=tuple(bars), top=top)


def _round_up(value: float) -> float:
    """Return the next number of the kind 1, 2 or 5 times a power of ten; 1 for nothing."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(power * step for step in (1, 2, 5, 10) if value <= power * step * (1 + 1e-9))
