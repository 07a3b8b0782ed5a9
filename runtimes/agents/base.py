"""What every agent type offers: how it starts, how its state is read. It knows no runtime."""

import mmap
import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO, Protocol, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from lifecycle.facts import Agent
from lifecycle.status import Activity, Probe
from runtimes.agents.messages import Messages
from runtimes.agents.questions import Dialog
from runtimes.base import Seen

_T = TypeVar("_T")
_FILE_BYTES = 4 * 1024 * 1024
_ARGUMENT_BYTES = 100_000  #: One argument of a program may have 128 KiB on Linux.
#: What programs count. Agents write such files too: nothing is too large for the database.
Count = Annotated[int, Meta(ge=0, le=10**11)]
Dollars = Annotated[float, Meta(ge=0, le=1e6)]
Seconds = Annotated[float, Meta(ge=0, le=4e9)]  #: Since 1970.
TEXT = 2000  #: No more characters of a question, an error or a summary are kept.


class AgentType(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """How a program runs: `[agent-types.NAME]` of the configuration."""

    program: str  #: A name in AGENTS.
    command: tuple[str, ...] = ()  #: The program and its first arguments; empty: the usual one.
    args: tuple[str, ...] = ()  #: More arguments, before the prompt.
    model: str = ""
    permission_mode: str = "auto"  #: `auto`, `confirm` or `reject`, mapped to the program's own.
    env: Mapping[str, str] = {}  #: Set for the program, as they stand.
    pass_env: tuple[str, ...] = ()  #: Names of the server's variables the program may see.
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
THEIRS = Endpoint()


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


class Command(Struct, frozen=True, kw_only=True):
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


class Program(Protocol):
    """One agent type at work. Made from its `AgentType`; holds no state of a session."""

    def __init__(self, kind: AgentType) -> None: ...

    #: The pause this program needs between a paste and Enter.
    submit_seconds: float
    #: Where it can be told its system prompt: `system-prompt` or `instructions-file`.
    preambles: Collection[str]
    #: By kind (`read`, `edit`, `run`, `web`), its own names for its tools. Empty: it cannot be
    #: held to some of them.
    tools: Mapping[str, Collection[str]]
    #: Its provider's own API, without a version; empty: nobody knows.
    provider: str
    #: The variables with which it signs in by itself, where it is given one of them.
    logins: Collection[str]
    #: Whether `Reader.read` needs the screen when its files say nothing.
    wants_screen: bool
    #: Whether it can write outside its workspace, where the file for its pull request is.
    writes_outside: bool

    def prepare(
        self,
        files: RunFiles,
        prompt: str,
        resume: str,
        system: str = "",
        endpoint: Endpoint = THEIRS,
        tools: Collection[str] = (),
    ) -> Command:
        """Write the files the program needs (settings, hooks, prompt) and say how to start it.

        `resume` is the conversation to go on with, or empty; `system` is what it is told before
        anything else; `endpoint` is for this run alone; `tools` are the kinds of tools it is held
        to, as far as `tools` of the program goes, or empty: all. Safe to repeat.
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
        """What a run asks now, by its screen or its port; None: it hears messages even so."""
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

    def check(self, environ: Mapping[str, str], endpoint: Endpoint = THEIRS) -> Sequence[str]:
        """What stands in the way of starting it, each with its remedy; empty: nothing."""
        ...


def ended(seen: Seen, agent: Agent) -> Agent | None:
    """The agent as one whose program is over; None while it lives, and where nobody knows."""
    if seen.program is not Probe.DEAD:
        return None
    end = seen.exit
    if end is None:
        how = "its program is gone"
    elif end.lost:
        how = f"its program did not end by itself: {end.lost}"
    elif end.signal is not None:
        how = f"its program was ended by signal {end.signal}"
    else:
        how = "its program vanished" if end.code is None else f"its program exited with {end.code}"
    return replace(
        agent,
        activity=Activity.EXITED,
        since=end.at if end else agent.seen,
        evidence=how,
        question="",
        error="",
        limit_until=None,
        unauthorised=False,
        calling=False,
        exit=end,
    )


def holds(path: Path, key: str) -> bool:
    """Whether a file has this text anywhere."""
    with (
        suppress(OSError, ValueError),  # An empty file cannot be mapped.
        opened(path) as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        return content.find(key.encode()) >= 0
    return False


def read_text(path: Path) -> str:
    """A file's text; what cannot be read is empty."""
    with suppress(OSError), opened(path) as file:
        return file.read(_FILE_BYTES).decode(errors="replace").strip()
    return ""


def understood(text: str | msgspec.Raw, kind: type[_T]) -> _T | None:
    """One JSON value of a kind; None where it is something else."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


@contextmanager
def opened(path: Path | str) -> Iterator[BinaryIO]:
    """A regular file for reading. Agents may have put links and pipes in its place: `OSError`."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is no regular file")
        yield file


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user reads, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)


def argument(files: RunFiles, prompt: str) -> str:
    """The prompt as one argument, or a word on where it stands, where it is too long for that."""
    if len(prompt.encode()) <= _ARGUMENT_BYTES:
        return prompt
    return f"Read {files.prompt} from beginning to end and do what it says."


def missing(command: Sequence[str], remedy: str, path: str | None = None) -> list[str]:
    """That a program is not installed, with the remedy; empty where it is."""
    if shutil.which(command[0], path=path):
        return []
    return [f"{command[0]} is not installed: {remedy}"]


def keyless(kind: AgentType, endpoint: Endpoint) -> list[str]:
    """That a program is given nothing to sign in with, with the remedy; empty where it is.

    For one whose model may be any provider's: there are too many to know which key it needs.
    """
    if endpoint != THEIRS or kind.pass_env or kind.env:
        return []
    return [
        "it has no credentials: set the key of its model's provider for the server, e.g."
        " ANTHROPIC_API_KEY, and name it in `key` of the agent type"
    ]


def login(kind: AgentType, environ: Mapping[str, str], variables: Collection[str]) -> str:
    """The variable a program is given that it signs in with by itself; empty: none of these."""
    passed = [name for name in kind.pass_env if environ.get(name)]
    return next((name for name in (*passed, *kind.env) if name in variables), "")


def introduced(kind: AgentType, prompt: str, system: str) -> tuple[str, str]:
    """Prompt and system prompt; where the type wants it so, the one begins with the other."""
    if system and kind.preamble == "first-message":
        return f"{system}\n\n{prompt}", ""
    return prompt, system


def named(tools: Mapping[str, Collection[str]], kinds: Collection[str]) -> list[str]:
    """A program's own names for the tools of these kinds."""
    return [name for kind in kinds for name in tools[kind]]


def installed_version(command: Sequence[str], remedy: str) -> str:
    """The number in the first line of `--version`: `1.2.3` of `agent 1.2.3`.

    Raises `FileNotFoundError` where there is none.
    """
    if absent := missing(command, remedy):
        raise FileNotFoundError(*absent)
    run = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, timeout=20, check=False
    )
    words = run.stdout.partition("\n")[0].split()
    return next((word for word in words if word[:1].isdigit()), "")


def environment(kind: AgentType, files: RunFiles) -> dict[str, str]:
    """What every program is started with: its own home, the run's names, what the type allows."""
    files.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.summary.parent.mkdir(mode=0o700, exist_ok=True)
    passed = {name: os.environ[name] for name in kind.pass_env if name in os.environ}
    return {
        "HOME": str(files.home),
        "MERGEWRIGHT_SESSION": files.session,
        "MERGEWRIGHT_RUN": str(files.run),
        "MERGEWRIGHT_BRANCH": files.branch,
        "MERGEWRIGHT_WORKSPACE": str(files.workspace),
        "MERGEWRIGHT_PROMPT_FILE": str(files.prompt),
        "MERGEWRIGHT_SUMMARY_FILE": str(files.summary),
        **passed,
        **kind.env,
    }
