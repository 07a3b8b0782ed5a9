"""The base class of the agent adapters, and functions with which they prepare a run."""

import os
import re
import shutil
import stat
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from runtimes.agents.base import (
    NO_LIMITS,
    PROVIDER_DEFAULT,
    AgentType,
    Endpoint,
    LaunchSpec,
    RunFiles,
    RunLimits,
)
from runtimes.agents.shared.dialogs import Dialog, text_of
from runtimes.agents.shared.files import contains
from runtimes.agents.shared.messages import LineMessageReader, LineParser, MessageReader
from runtimes.agents.shared.reader import Reader
from runtimes.files import make_folder, open_regular, replacing, write_private

#: The providers' APIs by the prefix of a model's name: `anthropic/NAME`.
PROVIDERS: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "google": "https://generativelanguage.googleapis.com",
}
_ARGUMENT_BYTES = 100_000  #: Linux limits one argument to 128 KiB: execve(2), MAX_ARG_STRLEN.
_CONVERSATION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class AgentAdapter(ABC):
    """Base of the adapters: how an agent type's program starts and how its state is read.

    Adapters are made from an `AgentType` and hold no state of a session. They call no runtime: they
    get what a runtime saw, and return the command that it has to start.
    """

    program = ""  #: The usual command.
    install = ""  #: The command that installs it.
    other_login = ""  #: The end of a sentence that names other ways to sign in.
    not_adopted = ""  #: Why no copy of a user's conversation can be resumed; if empty, one can.

    #: The pause that the program needs between a paste and Enter, in seconds (measured with five
    #: programs).
    submit_seconds = 0.6
    #: Whether `Reader.read` needs the screen, because some dialogs and retries are visible only
    #: there.
    wants_screen = True
    remembers = True  #: Whether a run that resumes a conversation knows its earlier messages.
    writes_outside = True  #: Whether it can write outside its workspace, to `RunFiles.summary`.
    #: How the program takes a system prompt: `system-prompt` (an option or a variable) or
    #: `instructions-file`.
    preambles: Collection[str] = ("instructions-file",)
    #: The program's tool names by kind (`read`, `edit`, `run`, `web`); empty if its tools cannot be
    #: limited.
    tools: Mapping[str, Collection[str]] = {}
    permission_modes = True  #: Whether it has permission modes.
    #: Whether the program can be limited to given MCP servers, and whether the repository's hooks
    #: can be disabled.
    limits_mcp_servers, limits_hooks = False, False
    supports_subagents = True  #: Whether it can start subagents, which can be switched off.
    limits_subagents = False  #: Whether the number of its concurrent subagents can be limited.
    provider = ""  #: Base URL of its provider's API, without a version; if empty, unknown.
    #: The environment variables it can sign in with by itself, the usual one first.
    login_variables: Collection[str] = ()
    #: Matches the input box on the screen, with its text as group 1. None if no pattern can find
    #: the box, for instance because only colours mark it.
    input_box: re.Pattern[str] | None = None
    input_hint = re.compile("$")  #: Matches what an empty input box shows.
    reader: Callable[[RunFiles], Reader]  #: Makes a reader for one run.
    parser: Callable[[], LineParser]  #: Makes a parser of the lines of one conversation's file.

    def __init__(self, agent_type: AgentType) -> None:
        self._type = agent_type
        self._command = agent_type.command or (self.program,)

    @property
    def command(self) -> Sequence[str]:
        """The program and its first arguments."""
        return self._command

    @abstractmethod
    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        """Write the files the program needs (settings, hooks, prompt); return how to start it.

        Without a `prompt` the program waits for a message at its terminal. `resume` is the id of
        the conversation to resume, or empty. If the session's home has no such conversation, a new
        one begins. Idempotent.
        """

    def adopt(self, files: RunFiles, native: str) -> None:
        """Copy a user's conversation into a session's home, before the session's first run.

        The user is the one who runs this process. `native` is the conversation's id. Raises
        `NotAdopted` if the user has no such conversation or the program cannot resume a copy of
        one, and `OSError` if the copying fails.
        """
        raise NotAdopted(f"{self.not_adopted}: start the session without --resume")

    @abstractmethod
    def dialog(self, files: RunFiles, screen: str) -> Dialog | None:
        """Return the dialog of a waiting run, or None if the program takes answers as messages.

        If no dialog is recognised, the `Dialog` is empty. Raises `OSError` if the program does not
        answer at its port.
        """

    def environment(self, files: RunFiles) -> Mapping[str, str]:
        """Return the environment for the project's own commands, without model keys.

        It has the variables of the agent type and the run, but not those that `prepare` adds.
        Creates the folders of the files that the variables name, and empties the prompt's file.
        """
        own, keys = self._type, self.login_variables
        public = tuple(name for name in own.pass_env if not _is_key(name, keys))
        env = {name: value for name, value in own.env.items() if not _is_key(name, keys)}
        return begin_run(replace(own, pass_env=public, env=env), files, "", "")[2]

    def unenforceable(self, limits: RunLimits) -> Sequence[str]:
        """Return the names of those settings in `limits` that the program cannot enforce."""
        wanted = {
            "tools": (limits.tools, self.tools),
            "permission-mode": (limits.permission_mode, self.permission_modes),
            "mcp-servers": (limits.mcp_servers is not None, self.limits_mcp_servers),
            "hooks": (not limits.hooks, self.limits_hooks),
        }
        return [name for name, (limited, enforces) in wanted.items() if limited and not enforces]

    def _mode(self, limits: RunLimits) -> str:
        """Return the permission mode of a run."""
        return limits.permission_mode or self._type.permission_mode

    def unsent_text(self, screen: str) -> str:
        """Return the text typed into the input box but not sent; empty if none is recognised."""
        text = text_of(self.input_box, screen) if self.input_box else ""
        return "" if self.input_hint.match(text) else text

    def records(self, files: RunFiles) -> Sequence[Path]:
        """Return the files that record the conversations, for the archive.

        Those in the session's home may belong to several of its runs. Files may be missing, and
        they grow while the program runs.
        """
        return self._conversations(files)

    def messages(self, files: RunFiles) -> MessageReader:
        """Return a reader of the messages of all the session's conversations.

        If the program keeps its messages in the run's own folder, the reader returns only those of
        this run.
        """
        return LineMessageReader(lambda: self._conversations(files), self.parser)

    @abstractmethod
    def _conversations(self, files: RunFiles) -> Sequence[Path]:
        """Return the files with the messages that `messages` reads, in order."""

    def version(self) -> str:
        """Return the version number in the first line of `--version`, or an empty string.

        Raises `FileNotFoundError` if the program is not installed, and `subprocess.TimeoutExpired`
        if it does not answer within 20 seconds.
        """
        if problems := self._not_installed():
            raise FileNotFoundError(*problems)
        run = subprocess.run(
            [*self._command, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
        words = run.stdout.partition("\n")[0].split()
        return next((word for word in words if word[:1].isdigit()), "")

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """Return the problems that prevent a start, each with its remedy; empty if there are none.

        `environ` has the server's variables, `endpoint` the model API that the runs would use.
        """
        missing = self._not_installed(environ.get("PATH"))
        return [*missing, *self._misconfigured(environ, endpoint)]

    def _not_installed(self, path: str | None = None) -> Sequence[str]:
        if shutil.which(self._command[0], path=path):
            return []
        remedy = ", or correct `command` of the agent type" if "/" in self._command[0] else ""
        return [f"{self._command[0]} is not installed: {self.install}{remedy}"]

    def _misconfigured(self, environ: Mapping[str, str], endpoint: Endpoint) -> list[str]:
        """Return problems of the program's own credentials and settings, each with its remedy."""
        known = login_variable(self._type, environ, self.login_variables)
        if known or endpoint != PROVIDER_DEFAULT:
            return []
        return [
            f"it has no credentials: set {next(iter(self.login_variables))} for the server and"
            f" name it in `key` of the agent type{self.other_login}"
        ]


class NotAdopted(Exception):
    """A conversation cannot be copied; the message says why and what to do."""


def begin_run(
    agent_type: AgentType, files: RunFiles, prompt: str, system: str
) -> tuple[str, str, dict[str, str]]:
    """Write the prompt's file; return prompt, system prompt and environment of the program.

    Makes the folders for the program's output and summary. With the preamble `first-message`, the
    prompt returned begins with `system`, and the system prompt returned is empty.
    """
    if system and agent_type.preamble == "first-message":
        prompt, system = f"{system}\n\n{prompt}", ""
    make_folder(files.summary.parent)  # In the session's home.
    make_folder(files.outputs)
    write_private(files.prompt, prompt)
    env = {
        "HOME": str(files.home),
        "MERGEWRIGHT_SESSION": files.session,
        "MERGEWRIGHT_RUN": str(files.run),
        "MERGEWRIGHT_BRANCH": files.branch,
        "MERGEWRIGHT_WORKSPACE": str(files.workspace),
        "MERGEWRIGHT_PROMPT_FILE": str(files.prompt),
        "MERGEWRIGHT_SUMMARY_FILE": str(files.summary),
        "MERGEWRIGHT_PROGRESS_FILE": str(files.progress),
        **{name: os.environ[name] for name in agent_type.pass_env if name in os.environ},
        **agent_type.env,
    }
    return prompt, system, env


def _is_key(name: str, known: Collection[str]) -> bool:
    """Whether a variable of this name holds a model key: a name in `known`, or `*_API_KEY`."""
    return name in known or name.endswith("_API_KEY")


def conversation(files: RunFiles, chosen: str) -> str:
    """Store `chosen` as the run's conversation id unless one was stored; return the stored id.

    An empty id means that the program chooses the id itself.
    """
    if not files.conversation.exists():
        write_private(files.conversation, chosen)
    return files.native


def with_prompt(
    files: RunFiles, argv: Iterable[str], prompt: str, name: str = ""
) -> tuple[str, ...]:
    """Return a command line that runs `argv` with the prompt as a further, last argument.

    Without a prompt `argv` is returned unchanged. `name` is the option that takes the prompt,
    including its `=`, such as `--prompt=`; if it is empty, the prompt is an argument by itself. A
    shell reads the prompt from `files.prompt`, so that only the program's command line shows it,
    not those of the sandbox and the terminal around the program. If the prompt is too long for an
    argument, the last argument tells the agent to read that file.
    """
    if not prompt:
        return tuple(argv)
    if len(prompt.encode()) > _ARGUMENT_BYTES:
        text = f"Read {files.prompt} from beginning to end and do what it says."
        return (*argv, f"{name}{text}")
    script = f'prompt=$(cat "$0") && exec "$@" "{name}$prompt"'
    return ("/bin/sh", "-c", script, str(files.prompt), *argv)


def option(name: str, value: str) -> Sequence[str]:
    """Return an option and its value as two arguments, or no arguments if the value is empty."""
    return (name, value) if value else ()


def tool_names(tools: Mapping[str, Collection[str]], kinds: Collection[str]) -> list[str]:
    """Return a program's own names for the tools of these kinds."""
    return [name for kind in kinds for name in tools[kind]]


def login_variable(
    agent_type: AgentType, environ: Mapping[str, str], variables: Collection[str]
) -> str:
    """Return the name of the first variable that the program gets and `variables` contains.

    The name is empty if there is none. The program gets the variables in `pass_env` that `environ`
    has, and those in `env`.
    """
    passed = [name for name in agent_type.pass_env if environ.get(name)]
    return next((name for name in (*passed, *agent_type.env) if name in variables), "")


def no_variables(agent_type: AgentType, endpoint: Endpoint) -> list[str]:
    """Return a problem if neither variables nor an endpoint are configured for a program.

    Whether those in `pass_env` are set is not checked. Used for programs that support so many
    providers that the variable a model needs is unknown.
    """
    if endpoint != PROVIDER_DEFAULT or agent_type.pass_env or agent_type.env:
        return []
    return [
        "it has no credentials: set the key of its model's provider for the server, e.g."
        " ANTHROPIC_API_KEY, and name it in `key` of the agent type"
    ]


def user_folder(variable: str, name: str) -> Path:
    """Return the folder in which a program keeps the files of the user who runs this process.

    It is the value of the environment variable, if that is set, or `name` in the home directory.
    """
    return Path(os.environ.get(variable) or Path.home() / name)


def copy_transcript(source: Path, pattern: str, native: str, target: Path) -> Path:
    """Copy a conversation's transcript from the folder `source` to the same place in `target`.

    `pattern` is a glob pattern below `source`, with `{id}` for the conversation's id, `native`. Of
    the matching regular files that belong to this process's user and contain the id, the largest is
    copied. Returns the copy's path. Raises `NotAdopted` if the id is malformed or the user has no
    such transcript, and `OSError` if it cannot be copied.
    """
    if not _CONVERSATION.fullmatch(native):
        raise NotAdopted(
            f"{native!r} is not a conversation id such as 4bb28834-d7d9-428f-9c9f-9179ca24a4f5:"
            " the agent's program prints the id when it exits, with the command to resume it"
        )
    place, source = pattern.format(id=native), source.resolve()
    own = (path for path in source.glob(place) if _is_own(path.lstat()))
    found = [path for path in own if contains(path.resolve(), native)]
    if not found:
        raise NotAdopted(
            f"you have no conversation {native}: no file of yours matches {source / place}"
        )
    original = max(found, key=lambda path: path.stat().st_size)  # Stubs are shorter.
    copy = target / original.relative_to(source)
    with open_regular(original.resolve()) as file, replacing(copy) as out:
        shutil.copyfileobj(file, out)
    return copy


def _is_own(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
