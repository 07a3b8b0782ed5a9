"""A measured figure and its limit."""

from msgspec import Struct


class Figure(Struct, frozen=True, kw_only=True):
    """One measured number, and whether its limit holds."""

    value: float
    unit: str
    limit: str = ""  #: Its limit, e.g. `>= 2`; empty: it has none.
    holds: bool = True
