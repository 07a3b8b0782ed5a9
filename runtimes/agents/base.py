"""What every agent type offers: how it starts, how its state is read. It knows no runtime."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lifecycle.facts import Agent
from runtimes.base import Seen


class AgentType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """How a program runs: `[agent-types.NAME]` of the configuration."""

    program: str  #: A name in AGENTS.
    command: tuple[str, ...] = ()  #: The program and its first arguments; empty: the usual one.
    args: tuple[str, ...] = ()  #: More arguments, before the prompt.
    model: str = ""
    permission_mode: str = "auto"  #: `auto`, `confirm` or `reject`, mapped to the program's own.
    env: Mapping[str, str] = {}  #: Set for the program, as they stand.
    pass_env: tuple[str, ...] = ()  #: Names of the server's variables the program may see.


class RunFiles(Struct, frozen=True, kw_only=True):
    """Where one run keeps its files. All paths are absolute."""

    session: str
    run: int
    dir: Path  #: Of this run alone, 0700.
    workspace: Path
    branch: str

    @property
    def prompt(self) -> Path:
        """The first prompt, as text."""
        return self.dir / "prompt.md"

    @property
    def output(self) -> Path:
        """All the program printed, as the runtime kept it."""
        return self.dir / "output.log"

    @property
    def spool(self) -> Path:
        """Hook payloads, one JSON object a line, appended by the program's hooks."""
        return self.dir / "hooks.jsonl"


class Command(Struct, frozen=True, kw_only=True):
    """How to start a run: what `runtimes.base.Launch` needs of the agent."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    native_id: str = ""  #: The conversation's name, where we choose it.


class Reader(Protocol):
    """Reads one run's state from its files; remembers how far it read, so a look costs what is new."""

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The agent's activity with its evidence. A source that fails changes nothing.

        `screen` is what the terminal shows, where somebody looked; None: nobody did.
        """
        ...

    def received(self, key: str) -> bool:
        """Whether a message that carries this visible key has reached the agent."""
        ...


class Program(Protocol):
    """One agent type at work. Made from its `AgentType`; holds no state of a session."""

    #: The pause this program needs between a paste and Enter.
    submit_seconds: float
    #: Whether `Reader.read` needs the screen when its files say nothing.
    wants_screen: bool

    def prepare(self, files: RunFiles, prompt: str, resume: str) -> Command:
        """Write the files the program needs (settings, hooks, prompt) and say how to start it.

        `resume` is the conversation to go on with, or empty. Safe to repeat.
        """
        ...

    def reader(self, files: RunFiles) -> Reader:
        """A reader for one run."""
        ...

    def version(self) -> str:
        """The installed program's version; raises `FileNotFoundError` where there is none."""
        ...

    def check(self, environ: Mapping[str, str]) -> Sequence[str]:
        """What stands in the way of starting it, each with its remedy; empty: nothing."""
        ...
