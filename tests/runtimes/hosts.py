"""Hosts for the contract suite, each with a mirror and workspaces."""

import os
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from lifecycle.model.facts import Agent
from runtimes.agents.base import AgentType, RunFiles
from runtimes.agents.shared.adapter import AgentAdapter
from runtimes.agents.shared.dialogs import Dialog, numbered_dialog
from runtimes.agents.shell import Shell
from runtimes.base import Options, Seen
from runtimes.host import (
    CLONE,
    WORKTREE,
    RunQuery,
    RunReading,
    RunRef,
    StartSpec,
    WorkspaceOptions,
)
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.base import IsolationSpec
from runtimes.local_host import LocalHost
from runtimes.supervise import MARK
from runtimes.tmux import Tmux
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree
from tests.runtimes.stages import end_terminals, needs, processes
from tests.world.waiting import eventually

SESSION, BRANCH = "widgets-12", "mergewright/12-x"
#: Reports that it is ready, has a child, and prints each line that it reads.
_AGENT = """
stty -echo
sleep 600 &
echo "mergewright: ready waiting for work"
while read -r line; do echo "read $line"; done
"""


class _Asking(Shell):
    """A command whose screen may show a dialog or unsent text."""

    def dialog(self, files: RunFiles, screen: str) -> Dialog | None:  # type: ignore[override]
        if "Continue?" not in screen or "read 1" in screen:
            return None
        return numbered_dialog("Continue?", ("yes", "no"))

    def unsent_text(self, screen: str) -> str:
        return "half a sentence" if "half a sentence" in screen else ""


class HostStage(Protocol):
    """A host on which a test can restart the bot, act as the agent and find processes of runs."""

    host: LocalHost
    mirror: Mirror
    isolation: IsolationSpec
    options: WorkspaceOptions

    def restarts_the_bot(self) -> None:
        """Drop all state in memory, as a restart does."""
        ...

    def as_agent(self, script: str) -> str:
        """Run a shell script in the session's workspace, in no sandbox; return its output."""
        ...

    def processes_of(self, run: RunRef) -> list[int]: ...


class LocalStage:
    """This machine as a host, with a tmux server for each run."""

    def __init__(self, folder: Path, mirror: Mirror, isolation: str, kind: str) -> None:
        needs(isolation)
        self.mirror = mirror
        self.options = WorkspaceOptions(kind=kind)
        origin = folder / "workspaces" / SESSION / "origin.git" if kind == CLONE else mirror.path
        self.isolation = IsolationSpec(kind=isolation, readable=(origin,))
        self._folder = folder
        agent = AgentType(program="shell", command=("sh", "-c", _AGENT))
        self._adapters: Mapping[str, AgentAdapter] = {"shell": _Asking(agent)}
        self.restarts_the_bot()

    def restarts_the_bot(self) -> None:
        self.host = LocalHost(
            Tmux(Options(data=self._folder / "tmux", path=os.environ["PATH"])),
            self._adapters,
            self._folder,
        )

    def as_agent(self, script: str) -> str:
        identity = ("GIT_AUTHOR", "GIT_COMMITTER")
        names = {f"{who}_NAME": "Ada" for who in identity}
        mails = {f"{who}_EMAIL": "ada@example.com" for who in identity}
        done = subprocess.run(
            ["sh", "-ec", script],
            cwd=self._folder / "workspaces" / SESSION / "checkout",
            env={**os.environ, **names, **mails, "HOME": str(self._home())},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def processes_of(self, run: RunRef) -> list[int]:
        folder = self._folder / "sessions" / run.name
        return processes("environ", f"{MARK}={folder}\0".encode())

    def close(self) -> None:
        """End the programs and tmux servers of all runs."""
        for folder in (self._folder / "sessions").glob("*_r*"):
            for pid in processes("environ", f"{MARK}={folder}\0".encode()):
                with suppress(ProcessLookupError):  # A sandbox ends as a whole.
                    os.kill(pid, signal.SIGKILL)
        end_terminals(self._folder / "tmux")

    def _home(self) -> Path:
        home = self._folder / "sessions" / f"{SESSION}_home"
        home.mkdir(parents=True, exist_ok=True)
        return home


@contextmanager
def _local(isolation: str, kind: str, mirror: Mirror) -> Iterator[HostStage]:
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        stage = LocalStage(Path(folder).resolve(), mirror, isolation, kind)
        yield stage
        stage.close()


#: Every host, with every isolation and every kind of workspace.
HOSTS: Mapping[str, Callable[[Mirror], AbstractContextManager[HostStage]]] = {
    "local": partial(_local, "none", WORKTREE),
    "bubblewrap": partial(_local, "bubblewrap", WORKTREE),
    "clone": partial(_local, "none", CLONE),
    "bubblewrap-clone": partial(_local, "bubblewrap", CLONE),
}


class OneSession:
    """One session on a host."""

    def __init__(self, stage: HostStage) -> None:
        self.stage = stage
        self.run = self.named(1)

    @property
    def host(self) -> LocalHost:
        return self.stage.host

    @property
    def isolation(self) -> IsolationSpec:
        return self.stage.isolation

    def named(self, run: int) -> RunRef:
        return RunRef(session=SESSION, run=run, agent_type="shell", branch=BRANCH)

    @property
    def workspace(self) -> Worktree:
        isolation = ISOLATIONS[self.stage.isolation.kind]
        mirror, options = self.stage.mirror.path, self.stage.options
        return self.host.workspace(SESSION, BRANCH, mirror, lambda: isolation, options)

    def prepares(self) -> str:
        return prepare(self.stage.mirror, self.workspace, "main") or ""

    def starts(self, run: int = 1) -> str:
        """Start a run and wait until its program reads messages."""
        conversation = self.host.runs.start(
            self.named(run), StartSpec(prompt="Do it.", isolation=self.isolation)
        )
        self.shows("ready", run)
        return conversation

    def shows(self, text: str, run: int = 1) -> None:
        eventually(lambda: text in self.host.runs.screen(self.named(run)), text)

    def probe(self, run: int = 1) -> Seen | None:
        look = self.host.runs.look([RunQuery(run=self.named(run))], datetime.now(UTC))
        assert look.failure == ""
        return look.probes.get(self.named(run).name)

    def reading(self, *awaiting: str) -> RunReading:
        query = RunQuery(run=self.run, awaiting=awaiting)
        return self.host.runs.look([query], datetime.now(UTC)).readings[self.run.name]

    def agent(self) -> Agent:
        return self.reading().agent

    def file(self, name: str) -> str:
        """The name of a file in the session's home, as the archive has it."""
        return f"{SESSION}_home/{name}"


def database(path: Path) -> list[str]:
    """Return the texts in the table `said` of the SQLite database at `path`."""
    with closing(sqlite3.connect(path)) as copy:
        return [row[0] for row in copy.execute("SELECT text FROM said")]
