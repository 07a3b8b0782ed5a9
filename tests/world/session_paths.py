"""Paths of sessions on the local host, which only tests read."""

from pathlib import Path

from bot.system.locations import Paths
from runtimes.host import home_of, run_name


class SessionPaths(Paths, frozen=True):
    """The bot's paths, and those of sessions on the local host."""

    @property
    def sessions(self) -> Path:
        return self.host / "sessions"

    @property
    def workspaces(self) -> Path:
        return self.host / "workspaces"

    def run(self, session: str, run: int) -> Path:
        return self.sessions / run_name(session, run)

    def home(self, session: str) -> Path:
        return self.sessions / home_of(session).name
