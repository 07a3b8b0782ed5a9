"""Runs one real agent in a workspace and a terminal, and observes it as the bot does."""

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
from runtimes.agents.base import AgentType, Endpoint, RunFiles, RunLimits
from runtimes.agents.shared.dialogs import Dialog
from runtimes.agents.shared.reader import Reader
from runtimes.base import Launch, Options
from runtimes.isolation import ISOLATIONS
from runtimes.local_runs import take
from runtimes.tmux import Tmux
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.preparation import prepare
from runtimes.workspaces.worktree import Worktree

_T = TypeVar("_T")

#: In seconds, far more than any step takes: Gemini waits half a minute after some errors, and the
#: first start of OpenCode or Aider took more than 90 on a machine with too much to do.
_PATIENCE = 300.0
_PAUSE = 0.2  #: Seconds between two looks.
#: The number of times that a message is pasted, and the time that its receipt may take.
_PASTES, _RECEIPT_SECONDS = 3, 8.0
#: The number of times that a key is pressed (the program may not listen yet), and the time that its
#: effect may take.
_PRESSES, _PRESS_SECONDS = 5, 3.0
_SESSION = "trial-1"
_KEY = "sk-no-key-for-a-model-that-is-none"


class TrialFailed(Exception):
    """A step of a trial failed; the message has the reason and the terminal's text."""


class Stage:
    """One session of an agent, with successive runs."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.folder = folder
        self.model = model
        self.run = 0
        self._runtime = Tmux(Options(data=folder / "tmux", path=os.environ["PATH"]))
        mirror = _mirror(folder)
        self._worktree = Worktree(
            *(folder / "workspaces", _SESSION, "mergewright/1-trial", mirror.path),
            lambda: ISOLATIONS["none"],
        )
        prepare(mirror, self._worktree, "main")
        self.workspace = self._worktree.path

    def start(self, kind: AgentType, prompt: str, resume: str = "") -> None:
        """Start a run with a prompt; `resume` is the ID of a conversation, empty: a new one."""
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
        self._runtime.start(launch)
        self._name = name

    def look(self) -> Agent:
        """Return the agent's state now, as the bot reads it."""
        seen = self._runtime.look()[self._name]
        return self._reader.read(seen, self.screen(), datetime.now(UTC))

    def screen(self) -> str:
        """Return the text of the terminal; empty if there is none."""
        return self._runtime.screens([self._name]).get(self._name, "")

    def until(self, activity: Activity, seconds: float = _PATIENCE) -> Agent:
        """Return the agent's state once it has this activity. Raises `TrialFailed`."""

        def found() -> Agent | None:
            agent = self.look()
            return agent if agent.activity is activity else None

        return self.wait(found, f"it never was {activity}", seconds)

    def wait(self, found: Callable[[], _T | None], what: str, seconds: float = _PATIENCE) -> _T:
        """Return the first true value of `found`. After `seconds`, raise `TrialFailed` (`what`)."""
        deadline = time.monotonic() + seconds
        while True:
            if value := found():
                return value
            if time.monotonic() > deadline:
                raise TrialFailed(f"{what} within {seconds:.0f} s; {self.look()}\n{self.screen()}")
            time.sleep(_PAUSE)

    def send(self, text: str, key: str) -> None:
        """Send a message that contains `key` until the agent has it. Raises `TrialFailed`."""
        if typed := self._program.unsent_text(self.screen()):
            raise TrialFailed(
                f"its input box is empty, but {typed!r} is read from it\n{self.screen()}"
            )
        for paste in range(_PASTES):
            pause = self._program.submit_seconds
            self._runtime.send(self._name, text, f"{key}#{paste}", pause)
            deadline = time.monotonic() + _RECEIPT_SECONDS
            while time.monotonic() < deadline:
                if self._reader.received(key):
                    return
                time.sleep(_PAUSE)
        raise TrialFailed(f"it did not receive the message {key}; {self.look()}\n{self.screen()}")

    def answer(self, text: str) -> None:
        """Answer the open dialog, step by step, until it is closed. Raises `TrialFailed`."""
        asked = dialog = self.wait(self._dialog, "no dialog was open")
        while dialog.id == asked.id:
            self._take(dialog, text)
            dialog = self._after(dialog)

    def _after(self, dialog: Dialog) -> Dialog:
        """Return the dialog after a step, once two captures in a row show the same.

        A single capture may show a half-drawn screen.
        """
        last = before = (dialog.id, dialog.state)

        def changed() -> Dialog | None:
            nonlocal last
            now = self._dialog() or Dialog()
            seen, last = last, (now.id, now.state)
            return now if last != before and last == seen else None

        return self.wait(changed, "the dialog did not change")

    def _take(self, dialog: Dialog, text: str) -> None:
        """Take the next step of an answer."""
        step = dialog.step(text)
        if step is None:
            raise TrialFailed(f"{text!r} is no answer to {dialog}\n{self.screen()}")
        key = f"{text}:{dialog.state}"
        take(self._runtime, self._name, step, key, self._program.submit_seconds)

    def _dialog(self) -> Dialog | None:
        """Return the open dialog; None if none is open."""
        dialog = self._program.dialog(self.files, self.screen())
        return dialog if dialog and dialog.id else None

    def press(self, key: str, done: Callable[[Agent], bool]) -> None:
        """Press a tmux key in the terminal until the agent's state satisfies `done`."""
        for _ in range(_PRESSES):
            tmux = self._runtime.attach(self._name)[:4]
            command = [*tmux, "send-keys", "-t", f"={self._name}:", key]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
            with suppress(TrialFailed):
                self.wait(lambda: done(self.look()), f"{key} changed nothing", _PRESS_SECONDS)
                return
        self.wait(lambda: done(self.look()), f"{key} changed nothing")

    def prompts(self) -> str:
        """Return all prompts of the conversation in the last request to the model."""
        asked = [recorded.asked for recorded in self.model.requests if recorded.asked]
        turns = next((each.turns for each in reversed(asked) if not each.aside), ())
        return "\n".join(turn.text for turn in turns if turn.who == "user")

    def kill(self) -> None:
        """Kill the program, as a crash would."""
        supervisor = json.loads((self.files.dir / "pid.json").read_bytes())["pid"]
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text()
        for pid in children.split():
            os.kill(int(pid), signal.SIGKILL)

    def stop(self) -> None:
        """End the run."""
        self._runtime.stop(self._name)

    def close(self) -> None:
        """End all runs that have not ended."""
        for name in self._runtime.look():
            self._runtime.stop(name)

    def processes(self) -> Mapping[Path, str]:
        """Return the command lines of the run's processes, by their folders in `/proc`.

        Processes that left the run's process group are included.
        """
        found = [json.loads((self.files.dir / "pid.json").read_bytes())["pid"]]
        for (
            pid
        ) in found:  # Grows while it is read. The supervisor adopts orphans: it is a subreaper.
            with suppress(OSError):
                children = (
                    task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children")
                )
                found += [int(child) for each in children for child in each.split()]
        return {Path("/proc", str(pid)): _command_line(pid) for pid in found}

    def leftovers(self) -> list[str]:
        """Return PID and command line of the session's processes that still run."""
        return [f"{pid} {shlex.quote(words)}" for pid, words in processes_of(self.folder)]


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    return ""


def _mirror(folder: Path) -> Mirror:
    """Create a mirror of a repository with one commit."""
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
