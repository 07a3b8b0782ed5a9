"""Reading an agent's files takes limited time and memory, however much the agent writes."""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lifecycle.model.facts import Usage
from lifecycle.model.status import Activity
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.claude import Claude
from runtimes.agents.codex import Codex
from runtimes.agents.gemini import Gemini
from runtimes.agents.shared import files as shared_files
from runtimes.agents.shared.files import LineTail, Newest, new_lines
from runtimes.agents.shared.usage import UsageCounter
from runtimes.base import Seen
from runtimes.files import read_text
from tests.runtimes.agents import fake_claude, fake_codex

#: So many records are read in seconds; comparing each with each takes many minutes.
_RECORDS, _SECONDS = 60_000, 60
_AT = datetime.now(UTC).isoformat()


def hooks(files: RunFiles, event: str, more: Callable[[int], Mapping[str, object]]) -> None:
    """Write `_RECORDS` calls of a hook as an agent can."""
    with files.spool.open("a") as spool:
        for number in range(_RECORDS):
            hook = {"hook_event_name": event, "session_id": fake_codex.ID, **more(number)}
            spool.write(json.dumps({"run": files.run, "at": time.time(), "hook": hook}) + "\n")


def is_read_soon(read: Callable[[], object]) -> bool:
    began = time.monotonic()
    read()
    return time.monotonic() - began < _SECONDS


def test_requests_without_an_answer_are_not_all_compared_with_each_result(
    files: RunFiles, alive: Seen
) -> None:
    launch = Claude(fake_claude.KIND).prepare(files, "Do it.", "")
    reader = Claude(fake_claude.KIND).reader(files)
    hooks(files, "PermissionRequest", lambda n: {"tool_name": "Bash", "tool_input": {"n": n}})
    result = {"content": [{"type": "tool_result", "tool_use_id": "x"}]}
    at = fake_claude.NOW.isoformat()
    record = {"timestamp": at, "type": "user", "message": result}
    fake_claude.transcript(files, launch, *[record] * _RECORDS)
    assert is_read_soon(lambda: reader.read(alive, None, fake_claude.NOW))


def test_calls_without_an_end_are_not_all_compared_with_each_end(
    files: RunFiles, alive: Seen, now: datetime
) -> None:
    kind = AgentType(program="gemini")
    Gemini(kind).prepare(files, "Do it.", "")
    reader = Gemini(kind).reader(files)
    for event in ("BeforeTool", "AfterTool"):
        hooks(files, event, lambda n: {"tool_name": "t", "tool_input": {"n": n}, "timestamp": _AT})
    assert is_read_soon(lambda: reader.read(alive, None, now))


def test_requests_are_not_all_searched_at_the_end_of_each_turn(
    files: RunFiles, alive: Seen, now: datetime
) -> None:
    Codex(fake_codex.KIND).prepare(files, "Do it.", "")
    reader = Codex(fake_codex.KIND).reader(files)
    hooks(files, "PermissionRequest", lambda n: {"tool_name": f"t{n}", "turn_id": "t1"})
    fake_codex.rollout(files, *[{"type": "task_complete", "turn_id": "other"}] * _RECORDS)
    assert is_read_soon(lambda: reader.read(alive, None, now))


def test_of_many_status_files_only_the_newest_are_read(
    files: RunFiles, alive: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand sparse files of 4 MiB need no space, but reading them takes seconds."""
    launch = Claude(fake_claude.KIND).prepare(files, "Do it.", "")
    reader = Claude(fake_claude.KIND).reader(files)
    fake_claude.hook(files, launch, "UserPromptSubmit")
    real = fake_claude.status(files, launch, "idle")
    for number in range(1000):
        # A bare number may be the name of `real`: this process's id, small in a new container.
        path = real.with_name(f"old-{number}.json")
        path.touch()
        os.truncate(path, 4 * 1024 * 1024)
        os.utime(path, (1, 1))
    read = list[Path]()

    def noting(path: Path) -> str:
        read.append(path)
        return read_text(path)

    monkeypatch.setattr(shared_files, "read_text", noting)
    assert reader.read(alive, None, fake_claude.NOW).activity is Activity.READY
    assert len(read) <= 12, "ten status files, and two of the status line"


def test_files_are_read_up_to_an_amount_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_files, "NEW_BYTES", 3000)
    tails = []
    for number in range(10):
        (tmp_path / str(number)).write_text(f"{number}\n" * 500)
        tails.append(LineTail(tmp_path / str(number), most=1000))

    def read(found: Iterable[Iterable[str]]) -> str:
        return "".join(sorted({line for lines in found for line in lines}))

    assert [read(new_lines(tails)) for _ in range(4)] == ["012", "345", "678", "9"]


def test_many_models_and_responses_are_counted_without_keeping_all() -> None:
    counter = UsageCounter()
    for number in range(30_000):
        counter.count(f"{number:09}" * 30, f"{number:09}" * 30, Usage(input=1))
    used = counter.usage()
    assert used.input == 30_000
    counter.count("another response", next(iter(used.models)), Usage(input=1))
    assert next(iter(counter.usage().models.values())).input == 2, "a known model keeps its name"
    assert len(used.models) <= 50
    assert max(map(len, used.models)) <= 200
    assert len(counter._responses) <= 20_000


def test_of_many_entries_the_newest_are_kept() -> None:
    kept = Newest[int, str](most=2)
    for number in (1, 2, 1, 3):
        kept[number] = str(number)
    assert kept == {2: "2", 3: "3"}
