"""Where everything lies below the data folder. Nothing else spells these paths."""

import os
from pathlib import Path

from msgspec import Struct

from runtimes.host import run_name


class Paths(Struct, frozen=True):
    """The folders and files of one installation; `data` is `Settings.data`."""

    data: Path

    @property
    def database(self) -> Path:
        """The store's file."""
        return self.data / "mergewright.db"

    @property
    def runtime(self) -> Path:
        """What the runtime keeps for itself; sockets are in it, so its path stays short."""
        return self.data / "runtime"

    @property
    def mirrors(self) -> Path:
        """The bot's own bare repositories, never writable by an agent."""
        return self.data / "mirrors"

    @property
    def model_port(self) -> Path:
        """Where agents ask for their models: kept, because those that run have been told it."""
        return self.data / "model-port"

    def mirror(self, project: str) -> Path:
        """One of them."""
        return self.mirrors / f"{project}.git"

    @property
    def host(self) -> Path:
        """The folder of the local host; only the host opens what is in it."""
        return self.data

    @property
    def archive(self) -> Path:
        """Copies of what programs wrote about themselves."""
        return self.data / "archive"

    def run_token(self, session: str, run: int) -> Path:
        """The token that stands for the model's key in a run; it goes when the run ends."""
        return self.data / "run-tokens" / run_name(session, run)


def read_private(path: Path) -> str:
    """The text of a small file of the bot's own; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user reads, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)
