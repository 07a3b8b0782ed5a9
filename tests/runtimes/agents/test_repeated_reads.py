"""Reading an agent again without news costs next to nothing and misses nothing."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from lifecycle.model.status import Activity
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.gemini import Gemini
from runtimes.agents.opencode import OpenCode
from runtimes.base import Seen
from tests.runtimes.agents.fake_port import answering
from tests.runtimes.agents.recordings import (
    CASES,
    RECORDINGS,
    adapter_of,
    copy_recording,
    each_recording,
)

#: Audit events of a read: https://docs.python.org/3/library/audit_events.html.
COSTLY = {"open", "os.scandir", "os.listdir", "sqlite3.connect", "socket.connect"}
STARTS = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec", "os.system"}


@pytest.fixture(scope="module")
def happened() -> list[str]:
    """Return a list of costly events, filled by an audit hook until the process ends."""
    noted: list[str] = []
    sys.addaudithook(lambda event, _: noted.append(event) if event in COSTLY | STARTS else None)
    return noted


@each_recording(CASES)
def test_a_repeated_read_without_news_opens_nothing(
    case: Path, files: RunFiles, alive: Seen, happened: list[str]
) -> None:
    moment = copy_recording(case, files, 1)
    reader = adapter_of(case).reader(files)
    happened.clear()
    reader.read(alive, None, moment.now)
    assert happened or case.name in ("trust", "api_key")  # No file exists yet.
    assert not STARTS.intersection(happened)
    happened.clear()
    reader.read(alive, None, moment.now + timedelta(seconds=16))
    assert happened == []


@pytest.fixture
def port() -> Iterator[tuple[int, dict[str, object]]]:
    path = RECORDINGS / "opencode/waiting_input/permission/port.json"
    answers = msgspec.json.decode(path.read_bytes(), type=dict[str, object])
    with answering(answers, "secret") as number:
        yield number, answers


def test_opencodes_port_is_asked_after_writes_and_in_intervals(
    files: RunFiles, alive: Seen, port: tuple[int, dict[str, object]]
) -> None:
    number, answers = port
    asked = answers["/permission"]
    answers["/permission"] = []
    moment = copy_recording(RECORDINGS / "opencode/waiting_input/permission", files, number)
    reader = OpenCode(AgentType(program="opencode")).reader(files)

    def activity_after(seconds: float) -> Activity:
        return reader.read(alive, None, moment.now + timedelta(seconds=seconds)).activity

    assert activity_after(0) is Activity.ACTIVE
    answers["/permission"] = asked
    assert activity_after(5) is Activity.WAITING_INPUT, "lately something was written"
    answers["/permission"] = []
    assert activity_after(32) is Activity.WAITING_INPUT, "nothing has happened since"
    assert activity_after(36) is Activity.ACTIVE, "it was not asked for long"
    answers["/permission"] = asked
    assert activity_after(64) is Activity.ACTIVE
    assert activity_after(66) is Activity.WAITING_INPUT


def test_a_transcript_that_gemini_begins_later_is_found(files: RunFiles, alive: Seen) -> None:
    moment = copy_recording(RECORDINGS / "gemini/ready/turn_over", files, 1)
    (path,) = Gemini(AgentType(program="gemini")).records(files)
    later = path.with_name(path.name.replace("09-55", "09-56"))
    content = path.read_bytes()
    head = content.index(b"\n") + 1
    path.write_bytes(content[:head])
    reader = Gemini(AgentType(program="gemini")).reader(files)
    assert reader.read(alive, None, moment.now).usage.output == 0
    later.write_bytes(content)
    hooks = files.spool.read_bytes()
    files.spool.write_bytes(hooks + hooks.splitlines(keepends=True)[-1])
    assert reader.read(alive, None, moment.now).usage.output == 126
