"""Agent types, and the files and limits of their runs."""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from lifecycle.model.times import from_seconds
from runtimes.base import PORT_SOCKET
from runtimes.files import read_text

_ID = re.compile(r"\w[\w.-]{0,199}", re.ASCII)


class AgentType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """One table `[agent-types.NAME]` of the configuration: how a program runs as an agent."""

    program: str  #: A name in `AGENTS`.
    command: tuple[str, ...] = ()  #: The program and its first arguments; if empty, the usual ones.
    args: tuple[str, ...] = ()  #: Further arguments, before the prompt.
    model: str = ""  #: The model's name, as the program takes it; if empty, the program's default.
    permission_mode: str = "auto"  #: `auto`, `confirm` or `reject`, mapped to the program's own.
    env: Mapping[str, str] = {}  #: Additional environment variables.
    pass_env: tuple[str, ...] = ()  #: Names of the server's variables that the program gets.
    #: Whether the agent may start subagents inside its session, or how many may run at a time.
    subagents: bool | int = True
    #: How the program gets the system prompt: one of its `AgentAdapter.preambles`, or
    #: `first-message`. If empty, the first of its `preambles`.
    preamble: str = ""


class Endpoint(Struct, frozen=True, kw_only=True):
    """The URL of a model API and the key for it. Its repr hides the key."""

    url: str = ""  #: The API's URL, without a version in its path; if empty, the provider's.
    key: str = ""  #: If empty, the program signs in by itself, or needs no key.

    def __repr__(self) -> str:
        return f"Endpoint(url={self.url!r}, key={'***' if self.key else ''})"

    def variables(self, *, url: str = "", key: str = "") -> dict[str, str]:
        """Return the URL and the key as environment variables.

        The arguments are the names of the two variables. A variable is omitted if its name or its
        value is empty.
        """
        named = {url: self.url, key: self.key}
        return {name: value for name, value in named.items() if name and value}


#: The provider's own endpoint, where the program signs in by itself.
PROVIDER_DEFAULT = Endpoint()


class RunLimits(Struct, frozen=True, kw_only=True):
    """What the configuration sets for a run besides its agent type."""

    system: str = ""  #: The system prompt, which may be empty.
    endpoint: Endpoint = PROVIDER_DEFAULT
    #: The kinds of tools the agent may use, for adapters with `AgentAdapter.tools`; all if empty.
    tools: Collection[str] = ()
    permission_mode: str = ""  #: If empty, that of its agent type.
    #: The only MCP servers the agent may use: their commands by name. If None, those of its
    #: repository.
    mcp_servers: Mapping[str, Sequence[str]] | None = None
    hooks: bool = True  #: Whether the hooks of its repository run.


#: No system prompt, the provider's own endpoint, all tools.
NO_LIMITS = RunLimits()


class RunFiles(Struct, frozen=True, kw_only=True):
    """Where one run keeps its files. All paths are absolute."""

    session: str
    run: int
    dir: Path  #: The run's own folder, mode 0700.
    workspace: Path
    branch: str

    @property
    def home(self) -> Path:
        """HOME of the session's programs. It holds the conversation and is kept between runs."""
        return self.dir.parent / f"{self.session}_home"

    @property
    def inputs(self) -> Path:
        """The folder of files that the program only reads: prompt, settings."""
        return self.dir / "inputs"

    @property
    def outputs(self) -> Path:
        """The folder of untrusted files that the program and its hooks write for the bot."""
        return self.dir / "spool"

    @property
    def prompt(self) -> Path:
        """The file with the first prompt."""
        return self.inputs / "prompt.md"

    @property
    def summary(self) -> Path:
        """The file to which the agent writes the title and text of the session's pull request.

        Its folder is the only one in the home that agents' own sandboxes let them write to.
        """
        return self.home / "for-people" / "pull_request.md"

    @property
    def progress(self) -> Path:
        """The file with the agent's notes on what is done and what is next, for the next run."""
        return self.summary.with_name("progress.md")

    @property
    def output(self) -> Path:
        """The file with what the program printed, as far as the runtime recorded it."""
        return self.dir / "output.log"

    @property
    def spool(self) -> Path:
        """The file to which the program's hooks append their calls, one `HookCall` a line.

        A program without hooks may write a log of its own there.
        """
        return self.outputs / "hooks.jsonl"

    @property
    def port_socket(self) -> Path:
        """The UNIX socket through which the bot reaches the port of a program in a sandbox.

        See `Launch.listens`.
        """
        return self.dir / PORT_SOCKET

    @property
    def conversation(self) -> Path:
        """The file with the program's own id of the conversation, written before the start.

        It is empty if the program chooses the id of a new conversation itself.
        """
        return self.dir / "conversation"

    @property
    def native(self) -> str:
        """The program's own id of the conversation, read from the file `conversation`.

        It is empty if the file contains no id.
        """
        return conversation_id(read_text(self.conversation))

    @property
    def began(self) -> datetime:
        """When the run was first prepared. Earlier records in the home belong to earlier runs.

        Without the file `conversation`, the earliest possible time.
        """
        try:
            return from_seconds(self.conversation.stat().st_mtime)
        except OSError:
            return datetime.min.replace(tzinfo=UTC)

    @property
    def repository(self) -> Path:
        """The session's own bare repository; see `runtimes.workspaces.worktree`."""
        return self.workspace.with_name("repository.git")

    @property
    def git_folders(self) -> tuple[Path, ...]:
        """The folders a commit writes to: a worktree's own git folder and its repository's.

        They are not read from `.git`, because the agent can write to it. If the session has no
        repository of its own, as in tests of an agent, the only folder is `.git` in the workspace.

        https://git-scm.com/docs/gitrepository-layout
        """
        if not self.repository.is_dir():
            return (self.workspace / ".git",)
        return (self.repository / "worktrees" / self.workspace.name, self.repository)

    @property
    def trusted(self) -> tuple[Path, ...]:
        """The folders that programs ask people to trust: the workspace and its main repository.

        Trust in a worktree is stored under its main repository.
        """
        common = self.git_folders[-1]
        main = common.parent if common.name == ".git" else common
        return tuple(dict.fromkeys((self.workspace, main)))


def conversation_id(text: str) -> str:
    """Return the text if it is safe as a conversation's id, else an empty text.

    A text is not safe if it could be taken for an option, a pattern or a path.
    """
    return text if _ID.fullmatch(text) else ""


class LaunchSpec(Struct, frozen=True, kw_only=True):
    """What a runtime needs from the adapter to start a run: see `runtimes.base.Launch`."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    native_id: str = ""  #: The conversation's id; if empty, the program chooses it later.
    port: int = 0  #: The port of 127.0.0.1 to which the bot sends requests, or 0.
    reads: tuple[Path, ...] = ()  #: Mergewright's own scripts in `argv`; a sandbox shows them.
