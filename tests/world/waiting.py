"""Waiting for a condition, never for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Far more than anything here takes; who waits so long fails.
PATIENCE = 20.0


def eventually(condition: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """The first true value of `condition`. Fails with `what` and the last value otherwise."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: still {value!r} after {seconds:g} s")
        time.sleep(0.01)
