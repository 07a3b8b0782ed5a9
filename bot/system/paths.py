"""The paths below the data directory; no other module builds them."""

from pathlib import Path

from msgspec import Struct

from runtimes.host import run_name


class Paths(Struct, frozen=True):
    """The directories and files of an installation; `data` is `Settings.data`."""

    data: Path

    @property
    def database(self) -> Path:
        """The store's database."""
        return self.data / "mergewright.db"

    @property
    def runtime(self) -> Path:
        """The runtime's own data; its path is short because it contains sockets."""
        return self.data / "runtime"

    @property
    def mirrors(self) -> Path:
        """The bare mirrors, which agents cannot write to."""
        return self.data / "mirrors"

    @property
    def model_port(self) -> Path:
        """The model proxy's port, kept for agents that outlive the bot."""
        return self.data / "model-port"

    def mirror(self, project: str) -> Path:
        """The bare mirror of one project."""
        return self.mirrors / f"{project}.git"

    @property
    def host(self) -> Path:
        """The folder of the local host; only the host opens what is in it."""
        return self.data

    @property
    def archive(self) -> Path:
        """Copies of the agents' files."""
        return self.data / "archive"

    def run_token(self, session: str, run: int) -> Path:
        """The run token, which is deleted when the run ends."""
        return self.data / "run-tokens" / run_name(session, run)
