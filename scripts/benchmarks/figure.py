"""A measured figure and its limit."""

from msgspec import Struct


class Figure(Struct, frozen=True, kw_only=True):
    """One measured number."""

    value: float
    unit: str
    limit: str = ""  #: What it is held to, e.g. `>= 2`; empty: it only informs.
    holds: bool = True
