"""Bar charts, computed on the server for the templates to draw as SVG.

The SVG has only bars and lines: a chart is stretched to the width of its page, which would distort
text.
"""

from collections.abc import Sequence
from math import floor, log10
from typing import Final

from msgspec import Struct

#: The size of a chart in the units of its SVG `viewBox`.
WIDTH: Final = 1000.0
HEIGHT: Final = 100.0
#: The part of a column's width that its bar takes.
_FILLED: Final = 0.8


class Column(Struct, frozen=True):
    """A column of a chart: stacked values, the first at the bottom."""

    says: str  #: The tooltip.
    values: tuple[tuple[str, float], ...]  #: The CSS class of its colour, and the value.

    @property
    def height(self) -> float:
        """The sum of the values."""
        return sum(value for _, value in self.values)


class Bar(Struct, frozen=True, kw_only=True):
    """A rectangle of a chart; `x` and `y` are its upper left corner, in units of the chart."""

    x: float
    y: float
    width: float
    height: float
    tone: str  #: The CSS class of its colour.
    says: str  #: The tooltip.


class Mark(Struct, frozen=True, kw_only=True):
    """A horizontal line of a chart, such as a limit; `y` is its distance from the upper edge."""

    y: float
    says: str  #: The tooltip.


class Plot(Struct, frozen=True, kw_only=True):
    """A chart: its bars, from left to right, and horizontal lines, such as a limit."""

    bars: tuple[Bar, ...]
    top: float  #: The value at the upper edge of the chart, a round number.
    marks: tuple[Mark, ...] = ()


def plot(columns: Sequence[Column], marks: Sequence[tuple[str, float]] = ()) -> Plot:
    """Compute the bars of a chart, from left to right. Values of 0 get no bar.

    `marks` are the tooltips and values of horizontal lines. The chart is made high enough for them.
    """
    values = [*(column.height for column in columns), *(value for _, value in marks)]
    top = _round_up(max(values, default=0.0))
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
    lines = [Mark(y=round(HEIGHT * (1 - value / top), 2), says=says) for says, value in marks]
    return Plot(bars=tuple(bars), top=top, marks=tuple(lines))


def _round_up(value: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten. Returns 1 for 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(power * step for step in (1, 2, 5, 10) if value <= power * step * (1 + 1e-9))
