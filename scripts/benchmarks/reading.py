"""How fast what agents write is read: a long transcript at once, and a thousand of them anew."""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from lifecycle.status import Probe
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, Reader, RunFiles
from runtimes.base import Seen
from scripts.benchmarks.figure import Figure

SESSIONS, CHANGED, ROUNDS = 1000, 10, 7
MB_A_SECOND, SWEEP_MS = 50.0, 100.0
_STEPS = 4000  #: Of one transcript: a call of a tool, and some kilobytes that it gave back.
_AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
_ALIVE = Seen(runtime=Probe.ALIVE, program=Probe.ALIVE)
_ID = "70825e5f-2a87-46e8-a5ad-8c5fe3ad80cc"
_COMMAND, _OUTPUT = "make test " * 20, "a line of a test run\n" * 300
_MEMORY = Path("/dev/shm")

_Record = Mapping[str, object]


def _claude(number: int) -> Iterator[_Record]:
    used = {"input_tokens": 1200, "output_tokens": 42, "cache_read_input_tokens": 800}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": _COMMAND}}
    said = {"id": f"m{number}", "model": "model", "content": [call], "usage": used}
    yield {"type": "assistant", "timestamp": _AT.isoformat(), "message": said}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": _OUTPUT}
    yield {"type": "user", "timestamp": _AT.isoformat(), "message": {"content": [result]}}


def _codex(number: int) -> Iterator[_Record]:
    call = {"type": "function_call", "call_id": f"c{number}", "name": "exec_command"}
    used = {"input_tokens": 1200, "cached_input_tokens": 800, "output_tokens": 42}
    output = {"type": "function_call_output", "call_id": f"c{number}", "output": _OUTPUT}
    for kind, payload in (
        ("response_item", {**call, "arguments": json.dumps({"cmd": _COMMAND})}),
        ("token_usage_record", {"response_id": f"r{number}", "usage": used}),
        ("response_item", output),
    ):
        yield {"timestamp": _AT.isoformat(), "type": kind, "payload": payload}


def _gemini(number: int) -> Iterator[_Record]:
    used = {"input": 1200, "output": 42, "cached": 800, "thoughts": 7}
    answer = {"id": f"g{number}", "timestamp": _AT.isoformat(), "type": "gemini", "model": "model"}
    yield {**answer, "content": "I run the tests.", "tokens": used}
    call = {"id": f"c{number}", "name": "shell", "args": {"command": _COMMAND}, "result": [_OUTPUT]}
    yield {**answer, "content": "I run the tests.", "tokens": used, "toolCalls": [call]}


def _status(home: Path) -> None:
    """Claude's status file, as if this process were the program."""
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    status = {"pid": os.getpid(), "sessionId": _ID, "procStart": start, "status": "busy"}
    path = home / ".claude" / "sessions" / f"{os.getpid()}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(status))
    os.utime(path, (0, 0))


class _Kind(NamedTuple):
    """What an agent type writes."""

    transcript: str  #: Where, below its home.
    step: Callable[[int], Iterator[_Record]]  #: What goes there at each step.
    beside: Callable[[Path], None] = lambda _: None  #: Lays what else stands in its home.


_KINDS: Mapping[str, _Kind] = {
    "claude": _Kind(f".claude/projects/-w/{_ID}.jsonl", _claude, _status),
    "codex": _Kind(f".codex/sessions/2026/11/21/rollout-2026-11-21T12-00-00-{_ID}.jsonl", _codex),
    "gemini": _Kind(f".gemini/tmp/w/chats/session-2026-11-21T12-00-{_ID[:8]}.jsonl", _gemini),
}


def run() -> dict[str, Figure]:
    """Read a long transcript of each agent type, and then a thousand of which ten have grown."""
    figures: dict[str, Figure] = {}
    place = _MEMORY if _MEMORY.is_dir() else None
    for name, kind in _KINDS.items():
        with tempfile.TemporaryDirectory(prefix="mw-", dir=place) as folder:
            speed = _parse(name, kind, Path(folder))
            figures[f"reading.{name}.parse"] = Figure(
                value=speed,
                unit="MB/s",
                limit=f">= {MB_A_SECOND:g}",
                holds=speed >= MB_A_SECOND,
            )
        with tempfile.TemporaryDirectory(prefix="mw-", dir=place) as folder:
            sweep = _sweep(name, kind, Path(folder))
            figures[f"reading.{name}.sweep"] = Figure(
                value=sweep, unit="ms", limit=f"<= {SWEEP_MS:g}", holds=sweep <= SWEEP_MS
            )
    return figures


def _parse(name: str, kind: _Kind, folder: Path) -> float:
    """MB a second of processor time."""
    reader, transcript = _session(name, kind, folder, 0)
    content = "".join(map(_line, (each for step in range(_STEPS) for each in kind.step(step))))
    transcript.write_text(content)
    begun = time.process_time()
    while reader.read(_ALIVE, None, _AT).usage.output < 42 * _STEPS:
        pass
    return len(content) / 1e6 / (time.process_time() - begun)


def _sweep(name: str, kind: _Kind, folder: Path) -> float:
    """One look at all of them, in milliseconds of processor time."""
    sessions = [_session(name, kind, folder, number) for number in range(SESSIONS)]
    sweeps = []
    for number in range(ROUNDS):
        for _, transcript in sessions[:CHANGED] if number else sessions:
            with transcript.open("a") as file:
                file.writelines(map(_line, kind.step(number)))
        begun = time.process_time()
        for reader, _ in sessions:
            reader.read(_ALIVE, None, _AT)
        sweeps.append(time.process_time() - begun)
    return min(sweeps[1:]) * 1000


def _session(name: str, kind: _Kind, folder: Path, number: int) -> tuple[Reader, Path]:
    """A session in the middle of a turn, with a transcript that is still empty."""
    session = f"bench-{number}"
    files = RunFiles(
        session=session,
        run=1,
        dir=folder / f"{session}_r1",
        workspace=folder,
        branch="bench",
    )
    files.dir.mkdir()
    files.conversation.write_text(_ID)
    os.utime(files.conversation, (0, 0))
    transcript = files.home / kind.transcript
    transcript.parent.mkdir(parents=True)
    transcript.touch()
    kind.beside(files.home)
    return AGENTS[name](AgentType(program=name)).reader(files), transcript


def _line(record: _Record) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"
