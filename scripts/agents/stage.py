"""One agent at work on a machine: its workspace, its terminal, and somebody who looks at it."""

import shlex
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from bot.demo.audit import processes_of
from bot.demo.model import ModelServer
from lifecycle.facts import Agent
from lifecycle.status import Activity
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, Reader, RunFiles
from runtimes.base import Launch, Options, Send
from runtimes.tmux import Tmux
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.worktree import Worktree

_T = TypeVar("_T")

#: Far more than anything takes: Gemini waits half a minute after some errors.
_PATIENCE = 90.0
_PAUSE = 0.05
#: As often, and as patiently, as the bot does it.
_PASTES, _HEARD_SECONDS = 3, 8.0
_SESSION = "trial-1"


class Failed(Exception):
    """Something did not come; the message says what, with what the terminal showed."""


class Stage:
    """An agent's session. Its runs follow each other: a new one begins where the last ended."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.folder = folder
        self.model = model
        self.run = 0
        self._runtime = Tmux(Options(data=folder / "tmux"))
        self._worktree = Worktree(
            _mirror(folder), folder / "workspaces", _SESSION, "mergewright/1-trial"
        )
        self._worktree.make("main")
        self.workspace = self._worktree.path

    def start(self, kind: AgentType, prompt: str, resume: str = "") -> None:
        """Begin a run with a prompt."""
        self.run += 1
        name = f"{_SESSION}_r{self.run}"
        self.files = RunFiles(
            session=_SESSION,
            run=self.run,
            dir=self.folder / "runs" / name,
            workspace=self.workspace,
            branch=self._worktree.branch,
        )
        self.files.dir.mkdir(parents=True, mode=0o700)
        self._program = AGENTS[kind.program](kind)
        command = self._program.prepare(self.files, prompt, resume)
        launch = Launch(
            name=name,
            argv=command.argv,
            cwd=self.workspace,
            env=command.env,
            dir=self.files.dir,
        )
        self._reader: Reader = self._program.reader(self.files)
        self.handle = self._runtime.start(launch)

    def look(self) -> Agent:
        """What the agent does now."""
        seen = self._runtime.look()[self.handle]
        return self._reader.read(seen, self.screen(), datetime.now(UTC))

    def screen(self) -> str:
        """What its terminal shows."""
        return self._runtime.screens([self.handle]).get(self.handle, "")

    def until(self, activity: Activity, seconds: float = _PATIENCE) -> Agent:
        """Wait until it does this."""

        def found() -> Agent | None:
            agent = self.look()
            return agent if agent.activity is activity else None

        return self.wait(found, f"it never was {activity}", seconds)

    def wait(self, found: Callable[[], _T | None], what: str, seconds: float = _PATIENCE) -> _T:
        """The first true value of `found`. Raises `Failed` where there is none in time."""
        deadline = time.monotonic() + seconds
        while True:
            if value := found():
                return value
            if time.monotonic() > deadline:
                raise Failed(f"{what} within {seconds:.0f} s; {self.look()}\n{self.screen()}")
            time.sleep(_PAUSE)

    def tell(self, text: str, key: str) -> None:
        """Send a message that carries this key, until it has arrived."""
        for paste in range(_PASTES):
            send = Send(
                text=text, key=f"{key}#{paste}", submit_seconds=self._program.submit_seconds
            )
            self._runtime.send(self.handle, send)
            deadline = time.monotonic() + _HEARD_SECONDS
            while time.monotonic() < deadline:
                if self._reader.received(key):
                    return
                time.sleep(_PAUSE)
        raise Failed(f"it never got the message {key}; {self.look()}\n{self.screen()}")

    def press(self, *keys: str) -> None:
        """Press keys at its terminal, as a person does who looks at it."""
        tmux = self._runtime.attach(self.handle)[:4]
        command = [*tmux, "send-keys", "-t", f"={self.handle}:", *keys]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def stop(self) -> None:
        """End the run."""
        self._runtime.stop(self.handle)

    def left(self) -> list[str]:
        """The processes that have to do with this session and still run."""
        return [f"{pid} {shlex.quote(words)}" for pid, words in processes_of(self.folder)]


def _mirror(folder: Path) -> Mirror:
    """A mirror of a repository with one commit."""
    origin = folder / "origin"
    origin.mkdir()
    author = ("-c", "user.name=Alice", "-c", "user.email=alice@localhost")
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "."),
        (*author, "commit", "--quiet", "--message=Begin"),
    ):
        if words[0] == "add":
            (origin / "README.md").write_text("# A trial\n")
        subprocess.run(["git", "-C", str(origin), *words], check=True)
    mirror = Mirror(folder / "mirror.git", str(origin))
    mirror.refresh()
    return mirror
