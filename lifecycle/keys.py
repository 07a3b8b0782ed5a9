"""The keys of actions: made of their cause, so that a cause earns its action once.

Keys of actions on the program end in `:rN`, the run they concern.
"""

import hashlib
import re
from collections.abc import Iterable

_RUN = re.compile(r":r(\d+)$")


def fingerprint(parts: Iterable[str]) -> str:
    """A short name for a set of things, whatever their order."""
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:12]


def of_run(key: str, run: int) -> str:
    """A key for this run."""
    return f"{key}:r{run}"


def run_of(key: str) -> int:
    """The run a key is for; 0 where it concerns none."""
    found = _RUN.search(key)
    return int(found[1]) if found else 0


def cause_of(key: str) -> str:
    """A key without its run."""
    return _RUN.sub("", key)


def visible(session: str, key: str) -> str:
    """The short mark a message carries, by which it is found again where it arrived."""
    return "mw-" + hashlib.sha256(f"{session}/{key}".encode()).hexdigest()[:10]
