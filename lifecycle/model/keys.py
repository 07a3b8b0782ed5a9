"""The keys of actions: made of their cause, so that a cause earns its action once.

Keys of actions on the program end in `:rN`, the run they concern.
"""

import hashlib
from collections.abc import Iterable


def fingerprint(parts: Iterable[str]) -> str:
    """A short name for a set of things, whatever their order."""
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:12]


def of_run(key: str, run: int) -> str:
    """A key for this run."""
    return f"{key}:r{run}"


def split(key: str) -> tuple[str, int]:
    """A key's cause and run; run 0 where it concerns none."""
    cause, _, run = key.rpartition(":r")
    return (cause, int(run)) if run.isdecimal() else (key, 0)


def visible(session: str, key: str) -> str:
    """The short mark a message carries, by which it is found again where it arrived."""
    return "mw-" + hashlib.sha256(f"{session}/{key}".encode()).hexdigest()[:10]
