"""Where the programs of coding agents are found, and by which name they know the scripted model."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

#: For each program the name of its model where that is the scripted one; empty: whatever it likes.
MODELS: Mapping[str, str] = {
    "aider": "openai/gpt-4o",
    "claude": "",
    "codex": "scripted",
    "gemini": "",
    "opencode": "scripted/scripted",
}


def cached(program: str, version: str) -> Path:
    """The folder into which `scripts/test-agents` installs a program; it stands in `bin` there."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "mergewright" / "agents" / f"{program}-{version}"


def found(program: str) -> Path | None:
    """The program on PATH, or the one that was last installed into the cache."""
    if there := shutil.which(program):
        return Path(there)
    folder = cached(program, "*")
    programs = folder.parent.glob(f"{folder.name}/bin/{program}")
    return max(programs, key=lambda path: path.lstat().st_mtime, default=None)
