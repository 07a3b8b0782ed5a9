"""This machine as a host: a runtime, the agents' adapters, and a folder for its sessions.

FOLDER/sessions/SESSION_rN      a run: output, the supervisor's files
    inputs                      what its program only reads: prompt, settings
    spool                       what its program and its hooks write for the bot
FOLDER/sessions/SESSION_setup1  an attempt at the project's `setup`, with the files of a run;
                                attempts at `teardown` have such folders, too
FOLDER/sessions/SESSION_home    HOME of the session's programs
FOLDER/ports/20001              the session that has this port (`runtimes.local_ports`)
FOLDER/workspaces/SESSION       the session's workspace (`runtimes.workspaces.worktree`)
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.base import Runtime
from runtimes.disk import LocalDisk
from runtimes.host import USUAL, WorkspaceOptions
from runtimes.isolation.base import Isolation
from runtimes.local_ports import LocalPorts
from runtimes.local_records import LocalRecords
from runtimes.local_runs import LocalRuns
from runtimes.local_steps import LocalSteps
from runtimes.workspaces.worktree import Worktree

_MEMORY = Path("/proc/meminfo")


class LocalHost:
    """The sessions of this machine: runs, recorded files, workspaces."""

    def __init__(
        self, runtime: Runtime, adapters: Mapping[str, AgentAdapter], folder: Path
    ) -> None:
        """Keep all files below `folder`; `adapters` are by agent type."""
        self.runtime, folder = runtime, folder.resolve()
        self._workspaces = folder / "workspaces"
        self.records = LocalRecords(adapters, folder)
        places = self._workspaces, folder / "sessions"
        self.runs = LocalRuns(runtime, adapters, self.records.run_files, *places)
        self.disk = LocalDisk(places)
        self.ports = LocalPorts(folder)
        self.steps = LocalSteps(runtime, adapters, self.records, folder)

    def workspace(
        self,
        session: str,
        branch: str,
        origin: Path,
        isolation: Callable[[], Isolation],
        options: WorkspaceOptions = USUAL,
    ) -> Worktree:
        """Return the session's workspace, which may not have been created yet; see `Worktree`."""
        return Worktree(self._workspaces, session, branch, origin, isolation, options)


def free_mb(memory: Path = _MEMORY) -> int | None:
    """Return the memory that programs can use without swapping (`MemAvailable` of proc(5)).

    In units of 1024 * 1024 bytes; None if the system does not report it.
    """
    try:
        for line in memory.read_text(encoding="ascii").splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) // 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
