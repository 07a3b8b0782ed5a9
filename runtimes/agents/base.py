"""What every agent type offers: how it starts, how its state is read. It knows no runtime."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lifecycle.model.facts import Agent
from runtimes.agents.shared.files import read_text
from runtimes.agents.shared.messages import Messages
from runtimes.agents.shared.questions import Dialog
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
    #: Whether it may run agents of its own inside its session, or how many at a time.
    intra_parallel: bool | int = True
    preamble: str = ""  #: Where the system prompt stands: one of its program's; empty: the first.


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a program finds its model, and the key it shows there. Its repr shows no key."""

    url: str = ""  #: Of the API, without the version in its path; empty: the provider's own.
    key: str = ""  #: Empty: it signs in by itself, or nobody asks for one.

    def __repr__(self) -> str:
        return f"Endpoint(url={self.url!r}, key={'***' if self.key else ''})"

    def variables(self, *, url: str = "", key: str = "") -> dict[str, str]:
        """The environment of a program that has these names for it; nothing that is empty."""
        named = {url: self.url, key: self.key}
        return {name: value for name, value in named.items() if name and value}


#: The provider's own, where a program signs in by itself.
PROVIDER_DEFAULT = Endpoint()


class RunLimits(Struct, frozen=True, kw_only=True):
    """What a run is held to besides its work."""

    system: str = ""  #: What it is told before anything else.
    endpoint: Endpoint = PROVIDER_DEFAULT
    #: The kinds of tools it may use, as far as `Program.tools` goes; empty: all.
    tools: Collection[str] = ()


#: A program as it is by itself.
USUAL = RunLimits()


class RunFiles(Struct, frozen=True, kw_only=True):
    """Where one run keeps its files. All paths are absolute."""

    session: str
    run: int
    dir: Path  #: Of this run alone, 0700.
    workspace: Path
    branch: str

    @property
    def home(self) -> Path:
        """HOME of the session's programs: kept from run to run, for it holds the conversation."""
        return self.dir.parent / f"{self.session}_home"

    @property
    def prompt(self) -> Path:
        """The first prompt, as text."""
        return self.dir / "prompt.md"

    @property
    def summary(self) -> Path:
        """What the session's pull request is to say, written by the agent: a title, then the rest.

        In a folder of its own: all of the home that a program's sandbox has to open for writing.
        """
        return self.home / "for-people" / "pull_request.md"

    @property
    def progress(self) -> Path:
        """What is done and what is next, written by the agent for whoever goes on with its work."""
        return self.summary.with_name("progress.md")

    @property
    def output(self) -> Path:
        """All the program printed, as the runtime kept it."""
        return self.dir / "output.log"

    @property
    def spool(self) -> Path:
        """Hook payloads, one JSON object a line, appended by the program's hooks."""
        return self.dir / "hooks.jsonl"

    @property
    def conversation(self) -> Path:
        """The program's own name for the run's conversation, written before it starts."""
        return self.dir / "conversation"

    @property
    def began(self) -> datetime:
        """When the run was prepared: what is kept of earlier runs is not about it."""
        try:
            return datetime.fromtimestamp(self.conversation.stat().st_mtime, UTC)
        except OSError:
            return datetime.min.replace(tzinfo=UTC)

    @property
    def git_folders(self) -> tuple[Path, ...]:
        """What a commit is written to: git's own folder; of a worktree its repository's too."""
        words = read_text(self.workspace / ".git")
        if not words.startswith("gitdir: "):
            return (self.workspace / ".git",)
        own = Path(words.removeprefix("gitdir: "))
        return (own, own.parent.parent)

    @property
    def trusted(self) -> tuple[Path, ...]:
        """The folders whose trust a program asks for: of a worktree the main repository too."""
        common = self.git_folders[-1]
        main = common.parent if common.name == ".git" else common
        return tuple(dict.fromkeys((self.workspace, main)))


class LaunchSpec(Struct, frozen=True, kw_only=True):
    """How to start a run: what `runtimes.base.Launch` needs of the agent."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    native_id: str = ""  #: The conversation's name, where we choose it.


class Reader(Protocol):
    """Reads one run's state from its files; remembers how far, so a look costs what is new."""

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The agent's activity with its evidence. A source that fails changes nothing.

        `screen` is what the terminal shows, where somebody looked; None: nobody did.
        """
        ...

    def received(self, key: str) -> bool:
        """Whether a message that carries this visible key has reached the agent."""
        ...


class AgentAdapter(Protocol):
    """One agent type at work. Made from its `AgentType`; holds no state of a session."""

    def __init__(self, kind: AgentType) -> None: ...

    #: The pause this program needs between a paste and Enter.
    submit_seconds: float
    #: Where it can be told its system prompt: `system-prompt` or `instructions-file`.
    preambles: Collection[str]
    #: By kind (`read`, `edit`, `run`, `web`), its own names for its tools. Empty: it cannot be
    #: held to some of them.
    tools: Mapping[str, Collection[str]]
    #: Whether it can run agents of its own inside its session, and be kept from it.
    runs_agents: bool
    #: Whether it can be told how many of them at a time.
    counts_agents: bool
    #: Its provider's own API, without a version; empty: nobody knows.
    provider: str
    #: The variables with which it signs in by itself, where it is given one of them.
    logins: Collection[str]
    #: Whether `Reader.read` needs the screen when its files say nothing.
    wants_screen: bool
    #: Whether a run that goes on with its conversation knows what was said in it.
    remembers: bool
    #: Whether it can write outside its workspace, where the file for its pull request is.
    writes_outside: bool

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = USUAL
    ) -> LaunchSpec:
        """Write the files the program needs (settings, hooks, prompt) and say how to start it.

        `resume` is the conversation to go on with, or empty. Safe to repeat.
        """
        ...

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy a conversation of the person who runs this into a session's home, before its runs.

        Raises `adopting.NotAdopted`, also where the program can go on with none but its own, and
        `OSError` where it cannot be copied.
        """
        ...

    def reader(self, files: RunFiles) -> Reader:
        """A reader for one run."""
        ...

    def dialog(self, files: RunFiles, screen: str) -> Dialog | None:
        """What a run asks now, by its screen or its port; None: it hears messages even so.

        Raises `OSError` where its port does not say.
        """
        ...

    def typed(self, screen: str) -> str:
        """The words in its input box that nobody has sent; empty: none, or nobody can tell."""
        ...

    def records(self, files: RunFiles) -> Sequence[Path]:
        """The files of a run that tell what was said and done: they grow, and are archived.

        They stand in the run's folder or in the session's home; any of them may be missing.
        """
        ...

    def messages(self, files: RunFiles) -> Messages:
        """What was said in the session's conversations, or in this run where it keeps them apart.

        They are read from the same files as `records`.
        """
        ...

    def version(self) -> str:
        """The installed program's version; raises `FileNotFoundError` where there is none."""
        ...

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """What stands in the way of starting it, each with its remedy; empty: nothing."""
        ...
