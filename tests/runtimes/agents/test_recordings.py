"""A recording of a real agent, in a folder `AGENT/ACTIVITY/CASE`, is read as that activity."""

import os
import re
import shutil
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents import AGENTS
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.reader import Reader
from runtimes.base import Seen
from tests.runtimes.agents.recordings import (
    CASES,
    RECORDINGS,
    Moment,
    Recording,
    adapter_of,
    copy_recording,
    each_recording,
)

COUNTED = [case for case in CASES if b'"usage"' in (case / "moment.json").read_bytes()]
NEEDED = {Activity.ACTIVE, Activity.READY, Activity.WAITING_INPUT, Activity.BLOCKED}


#: Fields that `expects` leaves out.
APART = ("activity", "run", "runtime", "program", "usage")


def as_expected(agent: Agent) -> dict[str, object]:
    """Convert an agent's state to the form of `expects`."""
    nothing = Agent()
    fields = [each for each in agent.__struct_fields__ if each not in APART]
    values = {each: getattr(agent, each) for each in fields}
    values = {each: value for each, value in values.items() if value != getattr(nothing, each)}
    return {each: v.isoformat() if isinstance(v, datetime) else v for each, v in values.items()}


@each_recording(CASES)
def test_a_recording_is_read_as_the_activity_of_its_folder(
    case: Path, recording: Recording, files: RunFiles, alive: Seen
) -> None:
    agent, expects = recording.look(), recording.moment.expects
    assert agent.activity == case.parts[-2], agent.evidence
    assert (agent.run, agent.runtime, agent.program) == (files.run, alive.runtime, alive.program)
    used = expects.pop("usage", None)
    assert as_expected(agent) == expects
    assert used is None or msgspec.to_builtins(agent.usage) == used


@each_recording(CASES)
def test_reading_after_every_line_gives_the_same_result_as_reading_once(
    case: Path, recording: Recording, files: RunFiles, alive: Seen
) -> None:
    once, whole, now = recording.look(), recording.grown(), recording.moment.now
    for path in whole:
        path.unlink()
    always = recording.adapter.reader(files)
    always.read(alive, None, now)
    hooks_last = case.parts[-3] == "aider"  # Other agents' hooks precede the records.
    for path in sorted(whole, key=lambda path: (path == files.spool) is hooks_last):
        for line in whole[path].splitlines(keepends=True):
            with path.open("ab") as file:
                file.write(line)
            os.utime(path, (recording.moment.written.timestamp(),) * 2)
            always.read(alive, None, now)
    assert recording.look(always) == once


@each_recording(COUNTED)
def test_usage_counts_once_however_the_files_grow(
    recording: Recording, files: RunFiles, alive: Seen
) -> None:
    moment, adapter = recording.moment, recording.adapter
    records = [path for path in adapter.records(files) if path.exists()]
    whole = {path: path.read_bytes() for path in records}

    def replaces(path: Path, content: bytes) -> None:
        path.unlink()
        path.write_bytes(content)
        os.utime(path, (moment.written.timestamp(),) * 2)

    def used(reader: Reader) -> object:
        return msgspec.to_builtins(reader.read(alive, None, moment.now).usage)

    first = adapter.reader(files)
    for path, content in whole.items():
        if path.suffix == ".jsonl":  # The first half, ending in a partial line.
            replaces(path, content[: len(content) // 2])
    assert used(first) == used(first)
    for path, content in whole.items():
        with path.open("r+b") as file:
            file.write(content)
    assert used(first) == moment.expects["usage"], "it grew"
    assert used(adapter.reader(files)) == moment.expects["usage"], "the bot was restarted"
    for path, content in whole.items():
        replaces(path, content)
    assert used(first) == moment.expects["usage"], "its files were rotated"


@each_recording(COUNTED)
def test_implausibly_large_numbers_are_not_counted(
    case: Path, files: RunFiles, port: int, alive: Seen, tmp_path: Path
) -> None:
    written = tmp_path.joinpath("case", *case.parts[-3:])
    shutil.copytree(case, written)
    for file in written.glob("[rh]*/**/*"):
        if file.is_file():
            text = re.sub(r'(": ?)\d+(?=[,}])', rf"\g<1>{10**30}", file.read_text())
            file.write_text(text)
    moment = copy_recording(written, files, port)
    used = adapter_of(case).reader(files).read(alive, None, moment.now).usage
    assert used.tokens < 2**63
    assert (used.cost_usd or 0) <= 1e6


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_type_has_a_recording_of_every_needed_activity(name: str) -> None:
    recorded = {case.parts[-2] for case in CASES if case.parts[-3] == name}
    assert recorded >= NEEDED


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_type_has_a_recording_with_a_summary(name: str) -> None:
    moments = (path.read_bytes() for path in RECORDINGS.glob(f"{name}/*/*/moment.json"))
    summaries = [
        msgspec.json.decode(moment, type=Moment).expects.get("summary") for moment in moments
    ]
    assert any(summaries)
