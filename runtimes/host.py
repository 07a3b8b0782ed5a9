"""The interface to a machine where sessions live: their runs, workspaces and recorded files.

Arguments and results are values (names, texts, structs, bytes), so that a host may be this machine,
a sandbox or another machine. No path below a session's folders crosses the interface; a path that
does is the caller's own: where the host is to put a pack or a copy, or to read a copy from.

Every method may be called from any thread and repeated after a crash. A host that cannot be asked
raises `Unavailable`: nothing is known then, least of all that something ended.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lifecycle.model.facts import Agent
from runtimes.agents.base import NO_LIMITS, RunLimits
from runtimes.agents.shared.messages import Message
from runtimes.base import RuntimeFailure, Seen
from runtimes.workspaces.base import Workspace, WorkspaceRef

_NAME = re.compile(r"(?P<session>.+)_(r\d+|home)")


def run_name(session: str, run: int) -> str:
    """The name of a run at its host: `widgets-12_r1`."""
    return f"{session}_r{run}"


def session_of(name: str) -> str:
    """The session in the name of a run or home; any other name is returned as it is."""
    match = _NAME.fullmatch(name)
    return match["session"] if match else name


class RunRef(Struct, frozen=True, kw_only=True):
    """The identity of one run of a session."""

    session: str
    run: int
    agent_type: str  #: A name in `[agent-types]` of the configuration.
    branch: str = ""

    @property
    def name(self) -> str:
        """The run's name at its host."""
        return run_name(self.session, self.run)


class RunQuery(Struct, frozen=True, kw_only=True):
    """One run to look at."""

    run: RunRef
    alive: bool = True  #: Whether the caller knows of no end of its program.
    #: Whether the caller has stored the last reading, and only new output can change it: without
    #: new output, the run's files need not be read.
    unchanged: bool = False
    awaiting: tuple[str, ...] = ()  #: Visible marks of messages that may have arrived.


class RunReading(Struct, frozen=True, kw_only=True):
    """The state of a run as read from its files and screen."""

    #: Without the end of a program that vanished and left no record of its exit.
    agent: Agent
    head: str | None = None  #: The commit of the session's branch; None: unreadable.
    received: frozenset[str] = frozenset()  #: Those of the awaited marks that have arrived.


class Look(Struct, frozen=True, kw_only=True):
    """The result of one look at many runs, by `RunRef.name`."""

    probes: Mapping[str, Seen] = {}  #: One that is missing does not run.
    #: Of the runs whose files were read. What cannot be read is left out, and so is what has not
    #: changed (`RunQuery.unchanged`).
    readings: Mapping[str, RunReading] = {}
    failure: str = ""  #: Why the probes failed: nothing is known of any program.


class StartSpec(Struct, frozen=True, kw_only=True):
    """How a run begins."""

    prompt: str
    resume: str = ""  #: The conversation to resume, by the program's own name for it.
    limits: RunLimits = NO_LIMITS
    bootstrap: tuple[str, ...] = ()  #: Lines of a shell, run in the workspace before the program.


class OpenDialog(Struct, frozen=True, kw_only=True):
    """A dialog that a program shows."""

    id: str  #: The same as long as the same question is open; empty: it is not understood.
    state: str  #: Differs after each step of an answer that takes several.
    accepts: bool = False  #: Whether it takes the answer that was asked about.


class UnsentInput(RuntimeFailure):
    """Somebody types at the terminal; a message would be sent together with it."""

    def __init__(self, words: str) -> None:
        super().__init__("the agent's input box holds words that were not sent")
        self.words = words


class Unreadable(RuntimeFailure):
    """It cannot be determined which dialog a program shows."""


class Runs(Protocol):
    """The runs of agents: processes, terminals, states."""

    def look(self, queries: Sequence[RunQuery], now: datetime) -> Look:
        """Probe all of these and read what is new in their files and on their screens.

        One call for all sessions of a sweep: its cost grows with what is new.
        """
        ...

    def running(self) -> Collection[str]:
        """The names of all runs that were started here and not stopped, including ended ones."""
        ...

    def resumes(self, run: RunRef, conversation: str) -> bool:
        """Whether a run started with this conversation's id would resume it."""
        ...

    def start(self, run: RunRef, spec: StartSpec) -> str:
        """Start the program of a run in its session's workspace.

        Returns the program's name for the conversation, empty where it has none yet. A run that
        was started before, or stopped, is not started again. Raises `RuntimeFailure`.
        """
        ...

    def send(self, run: RunRef, text: str, key: str) -> None:
        """Paste a message into the program's terminal and submit it, once for each key.

        Raises `UnsentInput`, and `Gone` where the program does not run.
        """
        ...

    def dialog(self, run: RunRef, answer: str = "") -> OpenDialog | None:
        """The dialog that is open, and whether it takes an answer; None: it takes messages.

        Raises `Unreadable`.
        """
        ...

    def answer(self, run: RunRef, dialog: OpenDialog, answer: str, key: str) -> bool:
        """Take one step of an answer, once for each key.

        False: another dialog or step is open by now, or the dialog does not take the answer, and
        nothing was done. Raises `Gone` and `Unreadable`.
        """
        ...

    def screen(self, run: RunRef) -> str:
        """The lines that the terminal shows; empty where there is none."""
        ...

    def output(self, session: str, run: int) -> str:
        """The last lines that the program printed, as plain text; empty before the first."""
        ...

    def attach(self, session: str, run: int) -> tuple[str, ...]:
        """The command line with which a person opens the run's terminal."""
        ...

    def stop(self, name: str, grace_seconds: float = 5.0) -> None:
        """End the program of a run and every process it left.

        SIGTERM comes first, SIGKILL after `grace_seconds`. Stopping what is gone does nothing.
        Raises `RuntimeFailure` if a process cannot be ended.
        """
        ...


class HandoverTexts(Struct, frozen=True, kw_only=True):
    """The texts that an agent has written for people and for its successor."""

    writable: bool  #: Whether its program can write there, outside its workspace.
    summary_path: str  #: As the agent knows it.
    progress_path: str
    summary: str = ""  #: For the pull request: a title, then the rest.
    progress: str = ""  #: For the agent that resumes the work.


class FolderKind(StrEnum):
    """What a folder of a host holds."""

    RUN = "run folder"
    HOME = "home"
    WORKSPACE = "workspace"
    REMOVED = "removed"  #: Its removal was interrupted.


class Folder(Struct, frozen=True, kw_only=True):
    """A folder that a host keeps for a session."""

    kind: FolderKind
    name: str  #: Unique within the kind.
    session: str


def home_of(session: str) -> Folder:
    """The home of a session's programs."""
    return Folder(kind=FolderKind.HOME, name=f"{session}_home", session=session)


def output_of(session: str, run: int) -> str:
    """The name of the recorded file with all that a run's program printed."""
    return f"{run_name(session, run)}/output.log"


class RecordFile(Struct, frozen=True, kw_only=True):
    """A file in which a program records its conversation."""

    name: str  #: Relative, with `/`: its place in the archive.
    version: tuple[int, ...]  #: Differs once anything was written.


class Records(Protocol):
    """The files that programs and agents write. Methods that read may raise `OSError`."""

    def handover(self, run: RunRef) -> HandoverTexts:
        """The agent's texts for people and for its successor, at most 64 KiB each."""
        ...

    def files(self, run: RunRef) -> Sequence[RecordFile]:
        """The recorded files of a run and its session's home that exist."""
        ...

    def read(self, session: str, name: str, start: int, end: int) -> bytes:
        """Bytes of a recorded file; fewer where it is shorter."""
        ...

    def size(self, session: str, name: str) -> int:
        """The size of a recorded file in bytes."""
        ...

    def copy_database(self, session: str, name: str, into: Path) -> None:
        """Write one state of a recorded SQLite database into a file of the caller's."""
        ...

    def missing(self, session: str, names: Sequence[str]) -> Sequence[str]:
        """Which of these recorded files are gone and can be restored."""
        ...

    def restore(self, session: str, name: str, source: Path) -> None:
        """Write a recorded file that is gone; `source` is a file of the caller's."""
        ...

    def messages(self, run: RunRef, start: int, most: int) -> Sequence[Message]:
        """Return at most so many messages from a run's files, starting at a position.

        The first has place 0. Where a program has one conversation for all runs of a session,
        those of all of them are counted. To continue where the last call ended costs what is new.
        """
        ...

    def adopt(self, run: RunRef, conversation: str) -> None:
        """Copy a conversation of the host's own user into a session's home, before its runs.

        Raises `NotAdopted`, and `FileExistsError` where the session has a home.
        """
        ...

    def folders(self) -> Sequence[Folder]:
        """All folders kept for sessions, including unknown sessions."""
        ...

    def folder_bytes(self, folder: Folder) -> int:
        """The approximate size of a folder on disk, in bytes."""
        ...

    def remove(self, folder: Folder) -> None:
        """Remove a folder. Idempotent."""
        ...


class Host(Protocol):
    """A machine where sessions live."""

    @property
    def runs(self) -> Runs:
        """Processes and terminals."""
        ...

    @property
    def records(self) -> Records:
        """Files that programs and agents write."""
        ...

    def workspace(self, ref: WorkspaceRef) -> Workspace:
        """The session's workspace, which may not have been created yet."""
        ...
