"""Writes the files that Claude Code would write."""

import json
import os
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runtimes.agents.base import AgentType, LaunchSpec, RunFiles

KIND = AgentType(program="claude", model="opus", args=("--verbose",))
#: The time of reading: long after the hooks of a test, which record the real time.
NOW = datetime.now(UTC) + timedelta(hours=1)


def status(
    files: RunFiles,
    launch: LaunchSpec,
    word: str,
    *,
    start: str | None = None,
    ago: float = 10.0,
    **more: object,
) -> Path:
    """Write the status file, with this process as the program."""
    here = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    path = files.home / ".claude" / "sessions" / f"{os.getpid()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    payload = {"pid": os.getpid(), "sessionId": launch.native_id, "procStart": start or here}
    at = (NOW - timedelta(seconds=ago)).timestamp() * 1000
    path.write_text(json.dumps({**payload, "status": word, "statusUpdatedAt": at, **more}))
    return path


def hook(
    files: RunFiles, launch: LaunchSpec, event: str, *, run: int = 2, **payload: object
) -> subprocess.CompletedProcess[str]:
    """Call a hook by its prepared command line."""
    settings = json.loads((files.inputs / "claude-settings.json").read_text())
    line = settings["hooks"][event][0]["hooks"][0]["command"]
    line = line.replace('"run":2', f'"run":{run}')
    payload = {"session_id": launch.native_id, "hook_event_name": event, **payload}
    return subprocess.run(["sh", "-c", line], input=json.dumps(payload) + "\n", text=True,
                          capture_output=True)  # fmt: skip


def transcript(files: RunFiles, launch: LaunchSpec, *records: Mapping[str, object]) -> Path:
    path = files.home / ".claude" / "projects" / "-work" / f"{launch.native_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for record in records:
            file.write(json.dumps({"timestamp": datetime.now(UTC).isoformat(), **record}) + "\n")
    return path
