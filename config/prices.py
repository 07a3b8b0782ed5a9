"""Reads the prices of models from `prices.toml`, a file that is part of Mergewright."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import msgspec

from config.settings import ModelPrice


@cache
def shipped_prices() -> Mapping[str, ModelPrice]:
    """Return the prices in `prices.toml`, by model or pattern, each with its day of lookup."""
    found = tomllib.loads(files("config").joinpath("prices.toml").read_text("utf-8"))
    day = found["as-of"]
    return {
        name: msgspec.convert({**price, "as-of": day}, ModelPrice)
        for name, price in found["prices"].items()
    }
