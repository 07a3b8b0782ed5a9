"""The values that a host takes and returns; a host is a machine on which sessions run.

They name runs, folders and files, so that no path inside a session's folders leaves the host: it
may be this machine, a sandbox or another machine. `runtimes.local_host` is this machine.
"""

import re
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from lifecycle.model.facts import Agent
from runtimes.agents.base import NO_LIMITS, RunLimits
from runtimes.base import RuntimeFailure, Seen
from runtimes.isolation.base import IsolationSpec

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
    agent_type: str = ""  #: A name in `[agent-types]` of the configuration.
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


class Resources(Struct, frozen=True, kw_only=True):
    """What all processes of a run use together."""

    memory_mb: int  #: At this moment.
    cpu_seconds: float  #: Of all processors, since the run's start.


class StartSpec(Struct, frozen=True, kw_only=True):
    """How a run begins."""

    prompt: str
    isolation: IsolationSpec
    resume: str = ""  #: The agent's own ID of the conversation to resume; empty: none.
    limits: RunLimits = NO_LIMITS
    bootstrap: tuple[str, ...] = ()  #: Shell commands, run in the workspace before the program.


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
