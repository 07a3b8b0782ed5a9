"""The result of reloading the configuration: which settings changed, or why it was refused."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from config.settings import Settings


class NotReloaded(Exception):
    """The new configuration was refused and the old one kept; the message says why."""


class ReloadResult(Struct, frozen=True):
    """The result of the last reload; `mergewright reload` prints it."""

    at: datetime
    #: Keys of the changed settings, such as `policy.mode`; `secrets` if only secrets changed.
    changed: tuple[str, ...] = ()
    refused: str = ""  #: Why the configuration was refused; empty if it was not.

    def write(self, path: Path) -> None:
        """Write the result to a file, replacing the last one atomically."""
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(self))
        new.replace(path)

    @classmethod
    def read(cls, path: Path) -> "ReloadResult | None":
        """Return the last result; None if the file does not exist."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            return None


def changed(before: Settings, after: Settings) -> tuple[str, ...]:
    """Return the dotted keys of all settings that differ, such as `policy.mode`."""
    return tuple(_differences(msgspec.to_builtins(before), msgspec.to_builtins(after), ""))


def _differences(before: Any, after: Any, where: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            below = f"{where}.{name}" if where else name
            yield from _differences(before.get(name), after.get(name), below)
    elif before != after:
        yield where
