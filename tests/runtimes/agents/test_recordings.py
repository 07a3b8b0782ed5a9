"""What programs really wrote, in folders named by the answer: `NAME/ACTIVITY/CASE`.

A case holds the files of a run (`run/`) and of its home (`home/`) as they stood at one instant, and
`moment.json`: when they were written, when they are looked at, and all else the answer holds, where
it may be silent of the usage alone;
`screen.txt` is what the terminal showed, where somebody looked, and `port.json` what the program
answered on its port, @PORT@. A file `NAME.sql` stands for the database NAME.
`@PID@` and `@START@` in them stand for a process that lives.
"""

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from lifecycle.facts import Agent
from lifecycle.status import Activity
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, Reader, RunFiles
from runtimes.base import Seen
from tests.runtimes.agents.apis import answering

RECORDINGS = Path(__file__).parent.parent / "recordings"
CASES = sorted(path.parent for path in RECORDINGS.glob("*/*/*/moment.json"))
COUNTED = [case for case in CASES if b'"usage"' in (case / "moment.json").read_bytes()]
LINES = (".jsonl", ".md", ".log")
NEEDED = {Activity.ACTIVE, Activity.READY, Activity.WAITING_INPUT, Activity.BLOCKED}


class Moment(msgspec.Struct, forbid_unknown_fields=True):
    written: datetime
    now: datetime
    expects: dict[str, object]


#: Fields of an answer that do not stand in `expects`, or need not.
APART = ("activity", "run", "runtime", "program", "usage")


def told(agent: Agent) -> dict[str, object]:
    """An answer as `expects` has it."""
    nothing = Agent()
    fields = [each for each in agent.__struct_fields__ if each not in APART]
    said = {each: getattr(agent, each) for each in fields}
    said = {each: value for each, value in said.items() if value != getattr(nothing, each)}
    return {each: v.isoformat() if isinstance(v, datetime) else v for each, v in said.items()}


@pytest.fixture
def port(case: Path) -> Iterator[int]:
    """Where the program answers as it did; nothing answers where it was not asked."""
    said = case / "port.json"
    with answering(msgspec.json.decode(said.read_bytes()) if said.exists() else {}, "secret") as it:
        yield it


def lay(case: Path, files: RunFiles, port: int) -> Moment:
    """Put the recorded files where a run keeps them, as if this process were the program."""
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


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case.parts[-3:]))
def test_a_recorded_moment_is_read_as_its_folder_says(
    case: Path, files: RunFiles, port: int, alive: Seen
) -> None:
    moment = lay(case, files, port)
    program = AGENTS[case.parts[-3]](AgentType(program=case.parts[-3]))
    screen = (case / "screen.txt").read_text() if (case / "screen.txt").exists() else None
    agent = program.reader(files).read(alive, screen, moment.now)
    assert agent.activity == case.parts[-2], agent.evidence
    assert (agent.run, agent.runtime, agent.program) == (files.run, alive.runtime, alive.program)
    used = moment.expects.pop("usage", None)
    assert told(agent) == moment.expects
    assert used is None or msgspec.to_builtins(agent.usage) == used


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case.parts[-3:]))
def test_who_looks_at_every_line_learns_the_same_as_who_looks_once(
    case: Path, files: RunFiles, port: int, alive: Seen
) -> None:
    moment = lay(case, files, port)
    program = AGENTS[case.parts[-3]](AgentType(program=case.parts[-3]))
    screen = (case / "screen.txt").read_text() if (case / "screen.txt").exists() else None
    once = program.reader(files).read(alive, screen, moment.now)
    grow = dict.fromkeys((*program.records(files), files.spool))
    whole = {path: path.read_text() for path in grow if path.suffix in LINES and path.exists()}
    for path in whole:
        path.unlink()
    always = program.reader(files)
    always.read(alive, None, moment.now)
    told_last = case.parts[-3] == "aider"  # What it counts; hooks of others tell of things first.
    for path in sorted(whole, key=lambda path: (path == files.spool) is told_last):
        for line in whole[path].splitlines(keepends=True):
            with path.open("a") as file:
                file.write(line)
            os.utime(path, (moment.written.timestamp(),) * 2)
            always.read(alive, None, moment.now)
    assert always.read(alive, screen, moment.now) == once


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: "-".join(case.parts[-3:]))
def test_usage_is_counted_once_however_its_files_come_and_whoever_reads_them(
    case: Path, files: RunFiles, port: int, alive: Seen
) -> None:
    moment = lay(case, files, port)
    program = AGENTS[case.parts[-3]](AgentType(program=case.parts[-3]))
    records = [path for path in program.records(files) if path.exists()]
    whole = {path: path.read_bytes() for path in records}

    def replaces(path: Path, content: bytes) -> None:
        path.unlink()
        path.write_bytes(content)
        os.utime(path, (moment.written.timestamp(),) * 2)

    def used(reader: Reader) -> object:
        return msgspec.to_builtins(reader.read(alive, None, moment.now).usage)

    first = program.reader(files)
    for path, content in whole.items():
        if path.suffix == ".jsonl":  # Half of it, with half a line at its end.
            replaces(path, content[: len(content) // 2])
    assert used(first) == used(first)
    for path, content in whole.items():
        with path.open("r+b") as file:
            file.write(content)
    assert used(first) == moment.expects["usage"], "it grew"
    assert used(program.reader(files)) == moment.expects["usage"], "the bot was restarted"
    for path, content in whole.items():
        replaces(path, content)
    assert used(first) == moment.expects["usage"], "its files were rotated"


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: "-".join(case.parts[-3:]))
def test_numbers_too_large_to_be_meant_are_not_counted(
    case: Path, files: RunFiles, port: int, alive: Seen, tmp_path: Path
) -> None:
    written = tmp_path.joinpath("case", *case.parts[-3:])
    shutil.copytree(case, written)
    for file in written.glob("[rh]*/**/*"):
        if file.is_file():
            text = re.sub(r'(": ?)\d+(?=[,}])', rf"\g<1>{10**30}", file.read_text())
            file.write_text(text)
    moment = lay(written, files, port)
    program = AGENTS[case.parts[-3]](AgentType(program=case.parts[-3]))
    used = program.reader(files).read(alive, None, moment.now).usage
    assert used.tokens < 2**63
    assert (used.cost_usd or 0) <= 1e6


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_type_has_a_recording_of_every_activity_that_decides(name: str) -> None:
    recorded = {case.parts[-2] for case in CASES if case.parts[-3] == name}
    assert recorded >= NEEDED


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_type_says_in_some_recording_what_it_did(name: str) -> None:
    moments = (path.read_bytes() for path in RECORDINGS.glob(f"{name}/*/*/moment.json"))
    told = [msgspec.json.decode(moment, type=Moment).expects.get("summary") for moment in moments]
    assert any(told)
