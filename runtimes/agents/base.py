"""The interface of an agent type's adapter: how its program starts and how its state is read.

Adapters know no runtime: they get what a runtime saw, and return what it has to start.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from lifecycle.model.facts import Agent
from runtimes.agents.shared.dialogs import Dialog
from runtimes.agents.shared.messages import MessageReader
from runtimes.base import Seen
from runtimes.files import read_text


class AgentType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """How a program runs: `[agent-types.NAME]` of the configuration."""

    program: str  #: A name in `AGENTS`.
    command: tuple[str, ...] = ()  #: The program and its first arguments; empty: the usual ones.
    args: tuple[str, ...] = ()  #: Further arguments, before the prompt.
    model: str = ""
    permission_mode: str = "auto"  #: `auto`, `confirm` or `reject`, mapped to the program's own.
    env: Mapping[str, str] = {}  #: Additional environment variables.
    pass_env: tuple[str, ...] = ()  #: Names of the server's variables that the program gets.
    #: Whether it may start subagents inside its session, or how many at a time.
    subagents: bool | int = True
    preamble: str = ""  #: One of the program's `preambles`; empty: the first of them.


class Endpoint(Struct, frozen=True, kw_only=True):
    """The URL of a model API and the key for it. Its repr hides the key."""

    url: str = ""  #: Of the API, without the version in its path; empty: the provider's own.
    key: str = ""  #: Empty: the program signs in by itself, or needs no key.

    def __repr__(self) -> str:
        return f"Endpoint(url={self.url!r}, key={'***' if self.key else ''})"

    def variables(self, *, url: str = "", key: str = "") -> dict[str, str]:
        """Return URL and key as environment variables with these names, omitting empty values."""
        named = {url: self.url, key: self.key}
        return {name: value for name, value in named.items() if name and value}


#: The provider's own endpoint, where the program signs in by itself.
PROVIDER_DEFAULT = Endpoint()


class RunLimits(Struct, frozen=True, kw_only=True):
    """What the configuration sets for a run besides its agent type."""

    system: str = ""  #: The system prompt.
    endpoint: Endpoint = PROVIDER_DEFAULT
    #: The kinds of tools the agent may use, for adapters with `AgentAdapter.tools`; empty: all.
    tools: Collection[str] = ()


#: No system prompt, the provider's own endpoint, all tools.
NO_LIMITS = RunLimits()


class RunFiles(Struct, frozen=True, kw_only=True):
    """Where one run keeps its files. All paths are absolute."""

    session: str
    run: int
    dir: Path  #: Of this run only, mode 0700.
    workspace: Path
    branch: str

    @property
    def home(self) -> Path:
        """HOME of the session's programs: it holds the conversation and outlives the runs."""
        return self.dir.parent / f"{self.session}_home"

    @property
    def prompt(self) -> Path:
        """The first prompt, as text."""
        return self.dir / "prompt.md"

    @property
    def summary(self) -> Path:
        """Title and text of the session's pull request, written by the agent.

        In a folder of its own: it is all of the home that a program's sandbox must make writable.
        """
        return self.home / "for-people" / "pull_request.md"

    @property
    def progress(self) -> Path:
        """The agent's notes on what is done and what is next, for the run that continues."""
        return self.summary.with_name("progress.md")

    @property
    def output(self) -> Path:
        """Everything the program printed, as the runtime recorded it."""
        return self.dir / "output.log"

    @property
    def spool(self) -> Path:
        """Hook payloads, one JSON object a line, appended by the program's hooks."""
        return self.dir / "hooks.jsonl"

    @property
    def conversation(self) -> Path:
        """The program's own id of the run's conversation, written before the program starts."""
        return self.dir / "conversation"

    @property
    def began(self) -> datetime:
        """When the run was prepared; earlier records in the home belong to earlier runs."""
        try:
            return datetime.fromtimestamp(self.conversation.stat().st_mtime, UTC)
        except OSError:
            return datetime.min.replace(tzinfo=UTC)

    @property
    def git_folders(self) -> tuple[Path, ...]:
        """The folders a commit writes to: a worktree's own git folder and its repository's.

        https://git-scm.com/docs/gitrepository-layout
        """
        words = read_text(self.workspace / ".git")
        if not words.startswith("gitdir: "):
            return (self.workspace / ".git",)
        own = Path(words.removeprefix("gitdir: "))
        return (own, own.parent.parent)

    @property
    def trusted(self) -> tuple[Path, ...]:
        """The folders that programs ask to trust: the workspace and its main repository.

        Programs store the trust in a worktree for its main repository.
        """
        common = self.git_folders[-1]
        main = common.parent if common.name == ".git" else common
        return tuple(dict.fromkeys((self.workspace, main)))


class LaunchSpec(Struct, frozen=True, kw_only=True):
    """What a runtime needs from the adapter to start a run: see `runtimes.base.Launch`."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    native_id: str = ""  #: The conversation's id, where the adapter chooses it.


class Reader(Protocol):
    """Reads one run's state from its files, incrementally: a look costs only what is new."""

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """Return the agent's activity with its evidence. An unreadable source changes nothing.

        `screen` is the text on the terminal; None: it was not captured.
        """
        ...

    def received(self, key: str) -> bool:
        """Whether a message containing this key has reached the agent."""
        ...


class AgentAdapter(Protocol):
    """The adapter of one agent type, made from its `AgentType`. Holds no state of a session."""

    def __init__(self, agent_type: AgentType) -> None: ...

    #: The pause the program needs between a paste and Enter.
    submit_seconds: float
    #: How it takes a system prompt: `system-prompt` (an option) or `instructions-file`.
    preambles: Collection[str]
    #: Its own tool names by kind (`read`, `edit`, `run`, `web`); empty: it cannot be limited.
    tools: Mapping[str, Collection[str]]
    #: Whether it can start subagents inside its session, and be kept from it.
    supports_subagents: bool
    #: Whether the number of its concurrent subagents can be limited.
    limits_subagents: bool
    #: Base URL of its provider's API, without a version; empty: unknown.
    provider: str
    #: The environment variables it can sign in with by itself.
    login_variables: Collection[str]
    #: Whether `Reader.read` needs the screen.
    wants_screen: bool
    #: Whether a run that resumes a conversation knows its earlier messages.
    remembers: bool
    #: Whether it can write outside its workspace, where `RunFiles.summary` is.
    writes_outside: bool

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        """Write the files the program needs (settings, hooks, prompt); return how to start it.

        `resume` is the id of the conversation to resume, or empty; one that is missing from the
        session's home is replaced by a new conversation. Idempotent.
        """
        ...

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy a conversation of the user who runs this into a session's home, before its runs.

        Raises `shared.launch.NotAdopted`, also if the program cannot resume such a copy, and
        `OSError` if it cannot be copied.
        """
        ...

    def reader(self, files: RunFiles) -> Reader:
        """Return a reader for one run."""
        ...

    def dialog(self, files: RunFiles, screen: str) -> Dialog | None:
        """Return the dialog of a waiting run; None: the program takes answers as messages.

        Raises `OSError` if the program does not answer at its port.
        """
        ...

    def unsent_text(self, screen: str) -> str:
        """Return the text typed into the input box but not sent; empty if none is recognised."""
        ...

    def records(self, files: RunFiles) -> Sequence[Path]:
        """Return the files that record the run's conversations, for the archive.

        They are in the run's folder or the session's home, grow, and may be missing.
        """
        ...

    def messages(self, files: RunFiles) -> MessageReader:
        """Return a reader of the messages in `records`.

        They are those of all conversations of the session, or of this run if it keeps them apart.
        """
        ...

    def version(self) -> str:
        """Return the installed program's version. Raises `FileNotFoundError` if it is missing."""
        ...

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """Return what prevents a start, each problem with its remedy; empty: nothing."""
        ...
