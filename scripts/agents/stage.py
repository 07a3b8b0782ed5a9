"""One agent at work on a machine: its workspace, its terminal, and somebody who looks at it."""

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from bot.demo.audit import processes_of
from bot.demo.model import ModelServer
from lifecycle.model.facts import Agent
from lifecycle.model.status import Activity
from runtimes.agents import AGENTS
from runtimes.agents.base import AgentType, Endpoint, Reader, RunFiles, RunLimits
from runtimes.agents.shared.dialogs import Dialog
from runtimes.base import Launch, Options, Send
from runtimes.local_runs import take
from runtimes.tmux import Tmux
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree

_T = TypeVar("_T")

#: Far more than anything takes: Gemini waits half a minute after some errors.
_PATIENCE = 90.0
_PAUSE = 0.2
#: As often, and as patiently, as the bot does it.
_PASTES, _HEARD_SECONDS = 3, 8.0
#: How often, and how patiently, a key is pressed: a program may not be listening yet.
_PRESSES, _PRESS_SECONDS = 5, 3.0
_SESSION = "trial-1"
_KEY = "sk-no-key-for-a-model-that-is-none"


class Failed(Exception):
    """Something did not come; the message says what, with what the terminal showed."""


class Stage:
    """An agent's session. Its runs follow each other: a new one begins where the last ended."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.folder = folder
        self.model = model
        self.run = 0
        self._runtime = Tmux(Options(data=folder / "tmux", path=os.environ["PATH"]))
        mirror = _mirror(folder)
        self._worktree = Worktree(
            folder / "workspaces", _SESSION, "mergewright/1-trial", str(mirror.path)
        )
        prepare(mirror, self._worktree, "main")
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
        endpoint = Endpoint(url=self.model.url, key=_KEY)
        command = self._program.prepare(self.files, prompt, resume, RunLimits(endpoint=endpoint))
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
        if typed := self._program.unsent_text(self.screen()):
            raise Failed(f"its box is empty, and {typed!r} is read in it\n{self.screen()}")
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

    def answer(self, text: str) -> None:
        """Answer what it asks as its own file says, step by step, until it asks that no more."""
        asked = dialog = self.wait(self._dialog, "no dialog was open")
        while dialog.id == asked.id:
            self._take(dialog, text)
            dialog = self._after(dialog)

    def _after(self, dialog: Dialog) -> Dialog:
        """What it asks after a step; two looks must say so: one may see it drawn by half.

        Where the bot tells people that nothing changes, a trial fails and shows the terminal.
        """
        last = before = (dialog.id, dialog.state)

        def changed() -> Dialog | None:
            nonlocal last
            now = self._dialog() or Dialog()
            seen, last = last, (now.id, now.state)
            return now if last != before and last == seen else None

        return self.wait(changed, "it asks the same still")

    def _take(self, dialog: Dialog, text: str) -> None:
        """Take the next step of an answer."""
        way = dialog.step(text)
        if way is None:
            raise Failed(f"{text!r} is no answer to {dialog}\n{self.screen()}")
        key = f"{text}:{dialog.state}"
        take(self._runtime, self.handle, way, key, self._program.submit_seconds)

    def _dialog(self) -> Dialog | None:
        """What it asks in a dialog that is open."""
        dialog = self._program.dialog(self.files, self.screen())
        return dialog if dialog and dialog.id else None

    def press(self, key: str, done: Callable[[Agent], bool]) -> None:
        """Press a key at its terminal until this is so, as a person does who looks at it."""
        for _ in range(_PRESSES):
            tmux = self._runtime.attach(self.handle)[:4]
            command = [*tmux, "send-keys", "-t", f"={self.handle}:", key]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
            with suppress(Failed):
                self.wait(lambda: done(self.look()), f"{key} changed nothing", _PRESS_SECONDS)
                return
        self.wait(lambda: done(self.look()), f"{key} changed nothing")

    def told(self) -> str:
        """All that people said in the conversation, as the model was told it last."""
        asked = [recorded.asked for recorded in self.model.requests if recorded.asked]
        turns = next((each.turns for each in reversed(asked) if not each.aside), ())
        return "\n".join(turn.text for turn in turns if turn.who == "user")

    def kill(self) -> None:
        """End its program as a crash would."""
        supervisor = json.loads((self.files.dir / "pid.json").read_bytes())["pid"]
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text()
        for pid in children.split():
            os.kill(int(pid), signal.SIGKILL)

    def stop(self) -> None:
        """End the run."""
        self._runtime.stop(self.handle)

    def close(self) -> None:
        """End whatever still runs."""
        for handle in self._runtime.look():
            self._runtime.stop(handle)

    def running(self) -> Mapping[Path, str]:
        """The run's processes, with what each was started as; those that got away from it too."""
        found = [json.loads((self.files.dir / "pid.json").read_bytes())["pid"]]
        for pid in found:  # It grows while it is walked: what is orphaned is the first one's.
            with suppress(OSError):
                children = (
                    task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children")
                )
                found += [int(child) for each in children for child in each.split()]
        return {Path("/proc", str(pid)): _words(pid) for pid in found}

    def left(self) -> list[str]:
        """The processes that have to do with this session and still run."""
        return [f"{pid} {shlex.quote(words)}" for pid, words in processes_of(self.folder)]


def _words(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return ""


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
