"""Writes the files that each agent type writes during a turn, for the benchmark of reading."""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from runtimes.agents.base import RunFiles
from runtimes.agents.opencode import files as opencode_files
from runtimes.agents.opencode import port as opencode_port
from runtimes.files import write_private

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
#: The ID of every conversation.
ID = "70825e5f-2a87-46e8-a5ad-8c5fe3ad80cc"
_COMMAND, _OUTPUT = "make test " * 20, "a line of a test run\n" * 300
#: The text of a terminal without its last lines.
_SHOWN = "a line of a test run\n" * 45

_Record = Mapping[str, object]
#: Appends these steps of a turn to a run's files and returns the number of bytes.
_Grow = Callable[[RunFiles, Iterable[int]], int]


class Kind(NamedTuple):
    """How an agent type writes its files and what its terminal shows."""

    grow: _Grow
    #: Writes the agent's other files; takes the run's files and the port at which `port` answers.
    beside: Callable[[RunFiles, int], None] = lambda _files, _port: None
    shows: str = ""  #: The text of its terminal.
    parses: bool = True  #: Whether the reader parses everything that `grow` appends.


def _appends(place: str, step: Callable[[int], Iterator[_Record]]) -> _Grow:
    """Return a `_Grow` that appends the lines of each step to one file in the home."""

    def grow(files: RunFiles, steps: Iterable[int]) -> int:
        lines = (_line(record) for number in steps for record in step(number))
        return _append(files.home / place, lines)

    return grow


def _claude(number: int) -> Iterator[_Record]:
    used = {"input_tokens": 1200, "output_tokens": 42, "cache_read_input_tokens": 800}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": _COMMAND}}
    message = {"id": f"m{number}", "model": "model", "content": [call], "usage": used}
    yield {"type": "assistant", "timestamp": NOW.isoformat(), "message": message}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": _OUTPUT}
    yield {"type": "user", "timestamp": NOW.isoformat(), "message": {"content": [result]}}


def _codex(number: int) -> Iterator[_Record]:
    call = {"type": "function_call", "call_id": f"c{number}", "name": "exec_command"}
    used = {"input_tokens": 1200, "cached_input_tokens": 800, "output_tokens": 42}
    output = {"type": "function_call_output", "call_id": f"c{number}", "output": _OUTPUT}
    for kind, payload in (
        ("response_item", {**call, "arguments": json.dumps({"cmd": _COMMAND})}),
        ("token_usage_record", {"response_id": f"r{number}", "usage": used}),
        ("response_item", output),
    ):
        yield {"timestamp": NOW.isoformat(), "type": kind, "payload": payload}


def _gemini(number: int) -> Iterator[_Record]:
    used = {"input": 1200, "output": 42, "cached": 800, "thoughts": 7}
    answer = {"id": f"g{number}", "timestamp": NOW.isoformat(), "type": "gemini", "model": "model"}
    yield {**answer, "content": "I run the tests.", "tokens": used}
    call = {"id": f"c{number}", "name": "shell", "args": {"command": _COMMAND}, "result": [_OUTPUT]}
    yield {**answer, "content": "I run the tests.", "tokens": used, "toolCalls": [call]}


def _aider(files: RunFiles, steps: Iterable[int]) -> int:
    """Append Aider's replies to its conversation, and its usage to the run's spool."""
    conversation, counted = [], []
    for number in steps:
        conversation.append(
            f"#### go on {number}\n\n{_OUTPUT}\n> Tokens: 2.4k sent, 42 received.\n\n"
        )
        used = {"prompt_tokens": 1200, "completion_tokens": 42, "cost": 0.5}
        for event in ("message_send", "message_send_starting"):
            record = {"event": event, "properties": used, "time": int(NOW.timestamp())}
            counted.append(_line(record))
    return _append(files.home / f".aider/{ID}.chat.md", conversation) + _append(
        files.spool, counted
    )


def _opencode(files: RunFiles, steps: Iterable[int]) -> int:
    """Insert OpenCode's replies into its database; the first step is ten minutes old."""
    path = opencode_files.database(files)
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("session", "message", "part"):
            database.execute(f"create table if not exists {table} (id, message_id, session_id,"
                             " time_created, time_updated, data)")  # fmt: skip
        for number in steps:
            at = int((NOW if number else NOW - timedelta(minutes=10)).timestamp() * 1000)
            message = {"role": "assistant", "time": {"created": at}, "tokens": {"output": 42}}
            part = {"type": "text", "text": _OUTPUT}
            for table, data in (("message", message), ("part", part)):
                row = (f"m{number}", f"m{number}", ID, at, at, _line(data))
                database.execute(f"insert into {table} values (?, ?, ?, ?, ?, ?)", row)
    return path.stat().st_size


def _status(files: RunFiles, _port: int) -> None:
    """Write Claude's status file, as if this process were the program."""
    start = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    status = {"pid": os.getpid(), "sessionId": ID, "procStart": start, "status": "busy"}
    path = files.home / ".claude" / "sessions" / f"{os.getpid()}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(status))
    os.utime(path, (0, 0))


def _answers(files: RunFiles, port: int) -> None:
    server = json.dumps({"port": port, "password": "none"})
    write_private(opencode_port.server_file(files), server)


@contextmanager
def port() -> Iterator[int]:
    """Run a fake OpenCode server, which is always busy and has no questions; yield its port."""

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = b'{"%s":{"type":"busy"}}' % ID.encode() if "status" in self.path else b"[]"
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            self.wfile.write(head + body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def _append(path: Path, lines: Iterable[str]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(lines)
    with path.open("a") as file:
        file.write(content)
    return len(content)


def _line(record: _Record) -> str:
    return json.dumps(record, separators=(",", ":")) + "\n"


_CODEX = f".codex/sessions/2026/11/21/rollout-2026-11-21T12-00-00-{ID}.jsonl"
KINDS: Mapping[str, Kind] = {
    "claude": Kind(_appends(f".claude/projects/-w/{ID}.jsonl", _claude), _status),
    "codex": Kind(_appends(_CODEX, _codex), shows=f"{_SHOWN}› Ask Codex to do anything\n"),
    "gemini": Kind(
        _appends(f".gemini/tmp/w/chats/session-2026-11-21T12-00-{ID[:8]}.jsonl", _gemini),
        shows=f"{_SHOWN} *   Type your message or @path/to/file\n",
    ),
    "opencode": Kind(_opencode, _answers, parses=False),
    "aider": Kind(_aider, shows=f"{_SHOWN}░█  Waiting for openai/model\n"),
}
