"""Writes the files that Codex would write."""

import json
import subprocess
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from runtimes.agents.base import AgentType, LaunchSpec, RunFiles

KIND = AgentType(program="codex", model="gpt-5.1-codex", args=("--search",))
ID = "01a1fd83-378b-7881-bd79-673a10f8339e"
SPENT = "token_usage_record"


def settings(launch: LaunchSpec) -> dict[str, Any]:
    """Parse the settings among the arguments."""
    words = [launch.argv[i + 1] for i, word in enumerate(launch.argv) if word == "--config"]
    return tomllib.loads("\n".join(words))


def hook(
    files: RunFiles, launch: LaunchSpec, event: str, *, run: int = 2, **payload: object
) -> str:
    """Call a hook by its prepared command line."""
    line = settings(launch)["hooks"][event][0]["hooks"][0]["command"]
    payload = {"session_id": ID, "hook_event_name": event, "turn_id": "t1", **payload}
    done = subprocess.run(["sh", "-c", line.replace('"run":2', f'"run":{run}')], text=True,
                          input=json.dumps(payload) + "\n", capture_output=True)  # fmt: skip
    assert done.returncode == 0
    return done.stdout + done.stderr


def rollout(files: RunFiles, *events: Mapping[str, object], at: datetime | None = None) -> Path:
    path = files.home / f".codex/sessions/2026/11/21/rollout-2026-11-21T09-49-57-{ID}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for event in events:
            kind = "response_item" if "_call" in str(event["type"]) else "event_msg"
            kind = str(event["type"]) if event["type"] in ("turn_context", SPENT) else kind
            time = (at or datetime.now(UTC)).isoformat()
            file.write(json.dumps({"timestamp": time, "type": kind, "payload": event}) + "\n")
    return path


def started(turn: str = "t1") -> dict[str, object]:
    return {"type": "task_started", "turn_id": turn}


def complete(turn: str = "t1", **more: object) -> dict[str, object]:
    return {"type": "task_complete", "turn_id": turn, "last_agent_message": "ok", **more}


def call(id: str, **more: object) -> dict[str, object]:
    return {"type": "function_call", "call_id": id, "name": "exec_command", **more}


def returned(id: str) -> dict[str, object]:
    return {"type": "function_call_output", "call_id": id, "output": ""}


def limited(windows: object) -> dict[str, object]:
    return {"type": "token_count", "rate_limits": windows}


def spent(answer: str, tokens: int) -> dict[str, object]:
    return {"type": SPENT, "response_id": answer, "usage": {"input_tokens": tokens}}
