"""The values that a host takes and returns; a host is a machine on which sessions run.

The values name runs, folders and files without paths, because a host may be this machine, a sandbox
or another machine. `runtimes.local_host` is this machine.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from lifecycle.model.facts import Agent
from runtimes.agents.base import NO_LIMITS, RunLimits
from runtimes.base import RuntimeFailure, Seen
from runtimes.isolation.base import IsolationSpec

_NAME = re.compile(r"(?P<session>.+)_(r\d+|home|(setup|teardown)\d+)")


def run_name(session: str, run: int) -> str:
    """Return the name of a run at its host: `widgets-12_r1`."""
    return f"{session}_r{run}"


def session_of(name: str) -> str:
    """Return the session in the name of a run, a home or an attempt at a workspace step.

    Any other name is returned unchanged.
    """
    match = _NAME.fullmatch(name)
    return match["session"] if match else name


class RunRef(Struct, frozen=True, kw_only=True):
    """The identity of one run of a session."""

    session: str
    run: int
    agent_type: str = ""  #: A name in `[agent-types]`; empty where a call does not use it.
    branch: str = ""  #: The session's branch; empty where a call does not use it.

    @property
    def name(self) -> str:
        """The run's name at its host."""
        return run_name(self.session, self.run)


class RunQuery(Struct, frozen=True, kw_only=True):
    """A request to probe one run and read its files."""

    run: RunRef
    alive: bool = True  #: If False, the caller knows that the run's program has ended.
    #: If True, the run's files need not be read until its program prints again: the caller has
    #: stored the last reading, and expects no other without new output.
    unchanged: bool = False
    awaiting: tuple[str, ...] = ()  #: Texts in sent messages, to check which have arrived.


class RunReading(Struct, frozen=True, kw_only=True):
    """The state of a run as read from its files and screen."""

    #: If the program vanished without a record of its exit, it counts as unknown here, not as dead,
    #: unless `RunQuery.alive` is False.
    agent: Agent
    head: str | None = None  #: The commit of the session's branch; if None, none can be read.
    received: frozenset[str] = frozenset()  #: Those of `RunQuery.awaiting` that arrived.


class Look(Struct, frozen=True, kw_only=True):
    """The probes and readings of several runs, by `RunRef.name`."""

    #: If there is no `failure`, a run that is missing here does not run.
    probes: Mapping[str, Seen] = {}
    #: The readings of the runs whose files were read. Omitted are runs that cannot be read, runs
    #: without a change (`RunQuery.unchanged`), and ended runs (not `RunQuery.alive`) without a
    #: probe.
    readings: Mapping[str, RunReading] = {}
    failure: str = ""  #: Why probing failed and `probes` is empty; empty if it succeeded.


class Resources(Struct, frozen=True, kw_only=True):
    """The memory and processor time that all processes of a run use together."""

    memory_mb: int  #: Now, in units of 1024 * 1024 bytes.
    cpu_seconds: float  #: Since the run's start, summed over all processors.


class StartSpec(Struct, frozen=True, kw_only=True):
    """How to start a run."""

    prompt: str  #: The first message to the agent; if empty, it waits for a person's message.
    isolation: IsolationSpec
    env: Mapping[str, str] = {}  #: The session's own variables, such as those of its ports.
    resume: str = ""  #: The agent's own ID of the conversation to resume; if empty, none.
    limits: RunLimits = NO_LIMITS
    bootstrap: tuple[str, ...] = ()  #: Shell commands, run in the workspace before the program.


#: The kinds of workspaces: a worktree reads the project's mirror, a clone has an `origin` of its
#: own.
WORKTREE, CLONE = "worktree", "clone"


class WorkspaceOptions(Struct, frozen=True, kw_only=True):
    """How the workspaces of a project are made."""

    sign_off: bool = False  #: Whether the agent's commits get a trailer `Signed-off-by`.
    #: The operator's files in the checkout, which git ignores; see `env_files`.
    excluded: tuple[str, ...] = ()
    kind: str = WORKTREE  #: Or `CLONE`.
    depth: int = 0  #: The most commits of each branch in a new clone; if 0, all.
    #: The most megabytes of Git LFS files in the checkout. If 0, the checkout has only their
    #: pointers.
    lfs_max_mb: int = 0
    #: The folders of a sparse checkout (`runtimes.workspaces.sparse`). If none, the checkout has
    #: all files.
    sparse: tuple[str, ...] = ()


#: The default options.
USUAL = WorkspaceOptions()


class WorkspaceStep(StrEnum):
    """An occasion on which the project's own commands run in a session's workspace."""

    SETUP = "setup"  #: Once, before the first run in the workspace.
    TEARDOWN = "teardown"  #: Before the workspace is removed.


class StepState(StrEnum):
    """The state of one attempt at a workspace step."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    EXPIRED = "expired"  #: It was ended at its time limit.
    LOST = "lost"  #: It was ended with the session or the machine, or nobody knows how it ended.


class StepSpec(Struct, frozen=True, kw_only=True):
    """The commands of a workspace step."""

    lines: tuple[str, ...]  #: Shell commands; the first that fails ends the step.
    isolation: IsolationSpec
    env: Mapping[str, str] = {}  #: As in `StartSpec`.
    seconds: float  #: The time limit.


class StepRecord(Struct, frozen=True, kw_only=True):
    """One attempt at a workspace step."""

    session: str
    step: WorkspaceStep
    attempt: int  #: From 1, counted for each session and step.
    began: datetime
    state: StepState = StepState.RUNNING
    ended: datetime | None = None
    #: The exit code. If None, the attempt is running or did not exit by itself.
    code: int | None = None

    @property
    def name(self) -> str:
        """The name of the attempt at its host: `widgets-12_setup1`."""
        return f"{self.session}_{self.step}{self.attempt}"

    @property
    def output(self) -> str:
        """The name of the recorded file with what the attempt printed, up to 1 GiB."""
        return f"{self.name}/output.log"


class OpenDialog(Struct, frozen=True, kw_only=True):
    """A dialog that a program shows."""

    id: str  #: The same while the same question is open; if empty, the dialog is not recognised.
    state: str  #: Changes with each step of an answer that takes several steps.
    accepts: bool = False  #: Whether it takes the answer given to `LocalRuns.dialog`.


class UnsentInput(RuntimeFailure):
    """The terminal's input box holds unsent text, which would be sent together with a message."""

    def __init__(self, words: str) -> None:
        super().__init__("the agent's input box holds words that were not sent")
        self.words = words  #: The unsent text.


class Unreadable(RuntimeFailure):
    """It cannot be determined which dialog a program shows."""


class HandoverTexts(Struct, frozen=True, kw_only=True):
    """The texts that an agent has written for people and for its successor."""

    writable: bool  #: Whether the agent's program can write these files outside its workspace.
    summary_path: str  #: The path by which the agent knows the file with `summary`.
    progress_path: str  #: The same for `progress`.
    summary: str = ""  #: For the pull request: title, then text; if empty, not written.
    progress: str = ""  #: For the agent that resumes the work; if empty, not written.


class FolderKind(StrEnum):
    """What a folder of a host holds."""

    RUN = "run folder"  #: Of a run, or of an attempt at a workspace step.
    HOME = "home"
    WORKSPACE = "workspace"
    REMOVED = "removed"  #: A workspace whose removal was interrupted.


class Folder(Struct, frozen=True, kw_only=True):
    """A folder that a host keeps for a session."""

    kind: FolderKind
    name: str  #: Unique within the kind.
    session: str


def home_of(session: str) -> Folder:
    """Return the folder that is HOME of a session's programs."""
    return Folder(kind=FolderKind.HOME, name=f"{session}_home", session=session)


def output_of(session: str, run: int) -> str:
    """Return the name of the recorded file with what a run's program printed, up to 1 GiB."""
    return f"{run_name(session, run)}/output.log"
