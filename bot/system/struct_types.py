"""Prepares the types of all Structs before threads decode them.

msgspec 0.22 reads the types of a Struct's fields at its first use. Another thread that uses it then
ends the process with a segmentation fault: measured in one of about a thousand starts.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec


def prepare_struct_types() -> None:
    """Have msgspec read the fields of every Struct that is imported by now; 450 take 10 ms."""
    for known in set(_below(msgspec.Struct)):
        with suppress(TypeError):  # msgspec cannot decode this type, so no thread does.
            msgspec.json.Decoder(known)


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)
