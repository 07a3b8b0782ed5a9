"""Recordings of real programs, in folders named by the expected activity: `NAME/ACTIVITY/CASE`.

A case has the files of a run (`run/`) and of its home (`home/`) at one instant, and `moment.json`:
when they were written, when they are read, and the other expected values; an expected usage may be
omitted. `screen.txt` is the captured terminal and `port.json` has the responses of the program's
port, @PORT@. A file `NAME.sql` becomes the database NAME. `@PID@` and `@START@` become the id and
the start time of the test's process.
"""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from lifecycle.model.facts import Agent
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen

RECORDINGS = Path(__file__).parent.parent / "recordings"
CASES = sorted(path.parent for path in RECORDINGS.glob("*/*/*/moment.json"))
LINES = (".jsonl", ".md", ".log")


class Moment(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `moment.json`."""

    written: datetime
    now: datetime
    expects: dict[str, object]


def each_recording(cases: Sequence[Path]) -> pytest.MarkDecorator:
    """Parametrize a test with these recordings, by their names."""
    return pytest.mark.parametrize("case", cases, ids=lambda case: "-".join(case.parts[-3:]))


def adapter_of(case: Path) -> AgentAdapter:
    """Return the adapter of the recorded program."""
    name = case.parts[-3]
    return AGENTS[name](AgentType(program=name))


def copy_recording(case: Path, files: RunFiles, port: int) -> Moment:
    """Copy the recorded files to a run's folders, with this process as the program."""
    moment = msgspec.json.decode((case / "moment.json").read_bytes(), type=Moment)
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    for part, place in (("run", files.dir), ("home", files.home)):
        for file in (case / part).rglob("*"):
            if file.is_file():
                name = str(file.relative_to(case / part)).replace("@PID@", str(os.getpid()))
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                text = file.read_text().replace("@PID@", str(os.getpid()))
                text = text.replace("@START@", start).replace("@PORT@", str(port))
                if name.endswith(".sql"):
                    name = name.removesuffix(".sql")
                    with closing(sqlite3.connect(place / name)) as database:
                        database.executescript(text)
                else:
                    (place / name).write_text(text)
                os.utime(place / name, (moment.written.timestamp(),) * 2)
    return moment


class Recording:
    """A recording that was copied to a run's folders, with methods to read and change it."""

    def __init__(self, case: Path, files: RunFiles, port: int, alive: Seen) -> None:
        self.files = files
        self.moment = copy_recording(case, files, port)
        self.adapter = adapter_of(case)
        shown = case / "screen.txt"
        self.screen = shown.read_text() if shown.exists() else None
        self.alive = alive

    def look(self, reader: Reader | None = None, seen: Seen | None = None) -> Agent:
        reader = reader or self.adapter.reader(self.files)
        return reader.read(seen or self.alive, self.screen, self.moment.now)

    def grown(self) -> dict[Path, bytes]:
        """Return the files that grow by lines, with their content."""
        paths = dict.fromkeys((*self.adapter.records(self.files), self.files.spool))
        return {path: path.read_bytes() for path in paths if path.suffix in LINES and path.exists()}

    def write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        os.utime(path, (self.moment.written.timestamp(),) * 2)
