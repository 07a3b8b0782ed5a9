"""Says at a terminal what a command waits for, if that takes longer than a second."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Final

from rich.console import Console

#: Shorter waits need no explanation.
_AFTER_SECONDS: Final = 1.0


@contextmanager
def progress(says: str) -> Iterator[None]:
    """Show a text with a spinner on standard error, if that is a terminal, while the block runs.

    The text appears after a second.
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield
        return
    status = console.status(says)
    timer = Timer(_AFTER_SECONDS, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # It may have begun to show the text.
        status.stop()
