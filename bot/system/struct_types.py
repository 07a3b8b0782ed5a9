"""Prepares the types of all Structs before threads decode them.

msgspec 0.22 reads the types of a Struct's fields when it is first used. If another thread uses the
Struct at that moment, the process ends with a segmentation fault; this was measured in about one of
a thousand starts.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def prepare_struct_types() -> None:
    """Make msgspec read the fields of every Struct imported so far; 450 take 10 ms."""
    for known in set(_below(msgspec.Struct)):
        with suppress(TypeError):  # msgspec cannot decode this type, so no thread does.
            msgspec.json.Decoder(known)


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
