"""The command line as it is installed, and what it prints."""

import sys
from pathlib import Path
from typing import NamedTuple

MERGEWRIGHT = str(Path(sys.executable).with_name("mergewright"))


class Result(NamedTuple):
    """The output and exit code of a command."""

    code: int
    out: str
    err: str
