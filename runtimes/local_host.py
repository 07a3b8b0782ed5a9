"""This machine as a host: a runtime, the agents' adapters, and a folder for its sessions.

FOLDER/sessions/SESSION_rN      a run: prompt, hooks, output, the supervisor's files
FOLDER/sessions/SESSION_home    HOME of the session's programs
FOLDER/workspaces/SESSION       the session's workspace (`runtimes.workspaces.worktree`)
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from runtimes.agents.base import AgentAdapter
from runtimes.base import Runtime
from runtimes.local_records import LocalRecords
from runtimes.local_runs import LocalRuns
from runtimes.workspaces.base import WorkspaceRef
from runtimes.workspaces.worktree import Worktree, WorktreeHead


class LocalHost:
    """See `runtimes.host.Host`."""

    def __init__(
        self, runtime: Runtime, adapters: Mapping[str, AgentAdapter], folder: Path
    ) -> None:
        """`adapters` by agent type."""
        self._workspaces = folder / "workspaces"
        self.records = LocalRecords(adapters, folder)
        head_of = partial(WorktreeHead, self._workspaces)
        self.runs = LocalRuns(runtime, adapters, self.records.run_files, head_of)

    def workspace(self, ref: WorkspaceRef) -> Worktree:
        """See `Host.workspace`."""
        return Worktree(
            self._workspaces, ref.session, ref.branch, ref.origin, sign_off=ref.sign_off
        )
