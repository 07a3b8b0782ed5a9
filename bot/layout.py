"""Where everything lies below the data folder. Nothing else spells these paths."""

from pathlib import Path

from msgspec import Struct


class Layout(Struct, frozen=True):
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
    def workspaces(self) -> Path:
        """The checkouts the sessions work in."""
        return self.data / "workspaces"

    def run(self, session: str, run: int) -> Path:
        """The folder of one run: prompt, hooks, output, supervisor files."""
        return self.data / "sessions" / run_name(session, run)


def run_name(session: str, run: int) -> str:
    """The name a run has at its runtime: `widgets-12_r1`."""
    return f"{session}_r{run}"
