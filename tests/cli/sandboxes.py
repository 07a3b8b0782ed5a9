"""An installation with a repository at a stand-in GitHub, and `mergewright` as its own process."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bot.demo.github.server import GitHubServer
from tests.cli.results import MERGEWRIGHT, Result
from tests.runtimes.stages import processes
from tests.world.waiting import PATIENCE

_TOKEN = "wrights"
_CONFIGURATION = """
[server]
data = "{data}"
[github]
api-url = "{url}api/v3/"
[projects.widgets]
repository = "acme/widgets"
agent = "shell"
network = ["index.example"]
{project}
[agent-types.shell]
program = "shell"
command = ["cat", "{{prompt}}"]
[runtime]
isolation = "{isolation}"
[sandbox]
{sandbox}
"""


class SandboxedProject:
    """A project whose agents are isolated."""

    def __init__(self, folder: Path, github: GitHubServer, path: str) -> None:
        self.data = folder / "data"
        self._folder, self._github, self._path = folder, github, path
        github.bot_account("wright", token=_TOKEN)
        self._repository = github.repository("acme/widgets", {"README.md": "widgets\n"})
        self._repository.permission("wright", "write")
        self.is_configured()

    def is_configured(
        self, project: str = "", sandbox: str = "", isolation: str = "bubblewrap"
    ) -> None:
        """Write the configuration, with further settings of the project and of sandboxes."""
        values = {"project": project, "sandbox": sandbox, "isolation": isolation}
        text = _CONFIGURATION.format(data=self.data, url=self._github.url, **values)
        (self._folder / "mergewright.toml").write_text(text)

    def finds_programs_in(self, folder: Path) -> None:
        """Add a folder to the person's PATH."""
        self._path = f"{folder}:{self._path}"

    def __call__(self, *words: str) -> Result:
        """Run `mergewright` to its end, without a terminal."""
        started = self.starts(*words)
        out, err = started.communicate(timeout=PATIENCE)
        return Result(started.returncode, out, err)

    def starts(self, *words: str) -> "subprocess.Popen[str]":
        """Start `mergewright`."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            (MERGEWRIGHT, *words),
            cwd=self._folder,
            env=self.environment(),
            text=True,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )

    def environment(self) -> Mapping[str, str]:
        """The environment of the person, who has a secret."""
        secrets = {"MERGEWRIGHT_GITHUB_TOKEN": _TOKEN, "SECRET": "of the person"}
        return {"PATH": self._path, "COLUMNS": "200", "HOME": str(self._folder), **secrets}

    @property
    def url(self) -> str:
        """Where GitHub is."""
        return self._github.url

    def pushes(self, name: str, text: str) -> None:
        """Change a file of the base branch."""
        self._repository.push("main", {name: text}, by="wright")

    @property
    def workspaces(self) -> list[Path]:
        """The folders in which commands of sandboxes work."""
        return list((self.data / "sandboxes").glob("*/workspaces/*/checkout"))

    def workspaces_of(self, started: "subprocess.Popen[str]") -> list[Path]:
        """Return the checkout folders of the sandboxes whose lock the process `started` holds."""
        held = {str(one.readlink()) for one in Path(f"/proc/{started.pid}/fd").iterdir()}
        return [one for one in self.workspaces if f"{one.parents[2]}/lock" in held]

    @property
    def left(self) -> list[str]:
        """The files and processes that sandboxes left behind, except their shared lock file."""
        root = self.data / "sandboxes"
        files = [one.name for one in root.iterdir() if one.name != "lock"] if root.is_dir() else []
        return [*files, *map(str, self.processes)]

    @property
    def processes(self) -> list[int]:
        """The processes of its sandboxes."""
        return processes("environ", os.fsencode(self.data / "sandboxes"))

    def close(self) -> None:
        """Kill the processes of sandboxes that a failed test left running."""
        for pid in self.processes:
            os.kill(pid, signal.SIGKILL)
