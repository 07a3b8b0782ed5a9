"""Waits for a condition instead of a fixed time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The default timeout in seconds, far more than anything takes, also on a busy machine.
PATIENCE = 60.0


def eventually(condition: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
    """Return the first true value of `condition`. Raises `AssertionError` after `seconds`."""
    pause, deadline = 0.01, time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: still {value!r} after {seconds:g} s")
        time.sleep(pause)
        pause = min(pause * 1.1, 0.05)  # Poll less often the longer it takes.
