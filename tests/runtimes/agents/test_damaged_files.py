"""A recording with truncated, replaced, huge or unrelated files is read as if undamaged."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from lifecycle.model.status import Activity, Probe
from runtimes.agents import AGENTS
from runtimes.base import Seen
from runtimes.files import read_text
from tests.runtimes.agents.recordings import CASES, Recording, each_recording

GONE = Seen(runtime=Probe.ALIVE, program=Probe.DEAD)
#: Recordings with files that grow by lines.
GROWING = [case for case in CASES if not any(case.rglob("*.sql"))]
OURS = re.compile(r'^\{"run": ?2', re.MULTILINE)
HOOKED = [case for case in CASES if OURS.match(read_text(case / "run/spool/hooks.jsonl"))]
#: The longest waiting recording of each agent: it involves the most rules.
ASKING = [
    max(
        (case for case in CASES if case.parts[-3:-1] == (name, "waiting_input")),
        key=lambda case: sum(file.stat().st_size for file in case.rglob("*") if file.is_file()),
    )
    for name in AGENTS
]


@each_recording(GROWING)
@pytest.mark.parametrize("how", ["replaced", "cut"])
def test_truncated_and_replaced_files_are_read_from_their_beginning(
    recording: Recording, how: str
) -> None:
    once, whole = recording.look(), recording.grown()
    reader = recording.adapter.reader(recording.files)
    middle = {path: content.find(b"\n", len(content) // 3) + 1 for path, content in whole.items()}
    for path, content in whole.items():
        recording.write(path, content[: middle[path]])
    recording.look(reader)
    for path in whole:
        if how == "cut":
            recording.write(path, b"")
        else:
            path.rename(path.with_name("rotated"))
    recording.look(reader)
    for path, content in whole.items():
        recording.write(path, content[middle[path] :])
    agent = recording.look(reader)
    # Aider's words and usage are in two files, which were cut at different times here.
    assert replace(agent, usage=once.usage, summary=once.summary) == once


@each_recording(GROWING)
def test_a_partial_line_is_ignored_until_it_is_complete(recording: Recording) -> None:
    once, whole = recording.look(), recording.grown()
    last = {path: content.rstrip(b"\n").rpartition(b"\n")[2] for path, content in whole.items()}
    for path, content in whole.items():
        recording.write(path, content[: content.rindex(last[path])])
    without = recording.look()
    reader = recording.adapter.reader(recording.files)
    for path, content in whole.items():
        recording.write(path, content[: content.rindex(last[path]) + len(last[path]) // 2])
    assert recording.look(reader) == without
    for path, content in whole.items():
        recording.write(path, content)
    assert recording.look(reader) == once


@each_recording([case for case in ASKING if case in GROWING])
def test_megabytes_of_earlier_lines_change_nothing(recording: Recording) -> None:
    once = recording.look()
    line = b"> said before" + b"." * 2000
    for path, content in recording.grown().items():
        earlier = b"%s\n" % line if path.suffix == ".md" else b'{"type": "%s"}\n' % line
        recording.write(path, earlier * (5_000_000 // len(earlier)) + content)
    assert recording.look() == once


@each_recording(HOOKED)
def test_late_hooks_of_an_earlier_run_change_nothing(case: Path, recording: Recording) -> None:
    once = recording.look()
    hooks = sorted(case.parent.parent.glob("*/*/run/spool/hooks.jsonl"))
    late = "".join(OURS.sub('{"run":1', path.read_text()) for path in hooks)
    recording.write(recording.files.spool, recording.files.spool.read_bytes() + late.encode())
    assert recording.look() == once


@each_recording(ASKING)
def test_concurrent_sessions_do_not_read_each_others_files(
    case: Path, recording: Recording, alive: Seen
) -> None:
    alone = recording.look()
    other = next(each for each in CASES if each.parts[-3] == case.parts[-3] and each != case)
    sibling = recording.files.dir.with_name("widgets-13_r2")
    sibling.mkdir()
    files = replace(
        recording.files,
        session="widgets-13",
        dir=sibling,
        workspace=recording.files.workspace / "../other",
    )
    second = Recording(other, files, 1, alive)
    assert recording.look() == alone
    assert second.look().activity == other.parts[-2]


@each_recording(ASKING)
def test_a_dead_program_has_exited_although_its_terminal_lives(recording: Recording) -> None:
    agent = recording.look(seen=GONE)
    assert agent.activity is Activity.EXITED
    assert agent.evidence == "the agent's program is gone"
    assert (agent.question, agent.error, agent.calling) == ("", "", False)
