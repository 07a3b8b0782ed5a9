"""Reloading of the configuration while the bot runs: what changed, and how it ended."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from config.settings import Settings


class NotReloaded(Exception):
    """The configuration cannot take effect; the message says why, and the old one stays."""


class ReloadResult(Struct, frozen=True):
    """How the last reload ended; `mergewright reload` prints it."""

    at: datetime
    changed: tuple[str, ...] = ()  #: Keys of settings, such as `policy.mode`.
    refused: str = ""  #: Why nothing changed; empty if it was not refused.

    def write(self, path: Path) -> None:
        """Replace the last result in one step."""
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(self))
        new.replace(path)

    @classmethod
    def read(cls, path: Path) -> "ReloadResult | None":
        """Return the last result; None if there is none."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            return None


def changed(before: Settings, after: Settings) -> tuple[str, ...]:
    """Return the keys of all settings that differ, as they are written in the file."""
    return tuple(_differences(msgspec.to_builtins(before), msgspec.to_builtins(after), ""))


def _differences(before: Any, after: Any, where: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            below = f"{where}.{name}" if where else name
            yield from _differences(before.get(name), after.get(name), below)
    elif before != after:
        yield where
