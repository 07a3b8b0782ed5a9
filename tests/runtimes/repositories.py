"""Runs git as people and agents do."""

import os
import subprocess
from pathlib import Path


class Git:
    """Run git with the repository's own configuration."""

    def __init__(self, home: Path) -> None:
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def __call__(self, place: Path, *args: str) -> str:
        run = subprocess.run(
            ["git", *args], cwd=place, env=self.env, text=True, capture_output=True
        )
        assert run.returncode == 0, f"git {args}: {run.stderr}"
        return run.stdout.strip()

    def commit(self, place: Path, name: str, text: str, message: str = "") -> str:
        (place / name).write_text(text)
        self(place, "add", "--", name)
        self(place, "commit", "--quiet", "-m", message or f"Write {name}")
        return self(place, "rev-parse", "HEAD")
