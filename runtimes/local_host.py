"""This machine as a host: a runtime, the agents' adapters, and folders below two roots.

SESSIONS/SESSION_rN      the folder of a run: prompt, hooks, output, supervisor files
SESSIONS/SESSION_home    HOME of the session's programs
WORKSPACES/SESSION       the session's workspace (`runtimes.workspaces.worktree`)
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from runtimes.agents.base import AgentAdapter
from runtimes.base import Runtime
from runtimes.host import WorkspaceRef
from runtimes.local_records import LocalRecords, run_files
from runtimes.local_runs import LocalRuns
from runtimes.workspaces.worktree import Worktree


class LocalHost:
    """See `runtimes.host.Host`."""

    def __init__(
        self,
        runtime: Runtime,
        adapters: Mapping[str, AgentAdapter],
        *,
        sessions: Path,
        workspaces: Path,
    ) -> None:
        """`adapters` by agent type."""
        self._workspaces = workspaces
        files_of = partial(run_files, sessions, workspaces)
        self.runs = LocalRuns(runtime, adapters, files_of, self._worktree)
        self.records = LocalRecords(sessions, workspaces, adapters)

    def workspace(self, ref: WorkspaceRef) -> Worktree:
        """See `Host.workspace`."""
        return Worktree(
            self._workspaces, ref.session, ref.branch, ref.origin, sign_off=ref.sign_off
        )

    def _worktree(self, session: str, branch: str) -> Worktree:
        return Worktree(self._workspaces, session, branch, "")
