"""Shared launch code of agent programs: environment, arguments, and checks."""

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence

from runtimes.agents.base import PROVIDER_DEFAULT, AgentType, Endpoint, RunFiles
from runtimes.files import read_text, write_private

ANTHROPIC = "https://api.anthropic.com"
OPENAI = "https://api.openai.com"
GOOGLE = "https://generativelanguage.googleapis.com"
#: The providers' APIs by the prefix of a model's name: `anthropic/NAME`.
PROVIDERS: Mapping[str, str] = {"anthropic": ANTHROPIC, "openai": OPENAI, "google": GOOGLE}

_ARGUMENT_BYTES = 100_000  #: Linux limits one argument to 128 KiB: execve(2), MAX_ARG_STRLEN.


class TerminalAgent(ABC):
    """Base of the adapters of programs that have a version and a terminal of their own."""

    program = ""  #: The usual command.
    install = ""  #: The command that installs it.

    submit_seconds = 0.6  #: Measured with all five: an earlier Enter becomes part of the paste.
    wants_screen = True  #: Some dialogs and retries are visible there only.
    remembers = True
    writes_outside = True
    tools: Mapping[str, Collection[str]] = {}
    supports_subagents = True
    limits_subagents = False
    login_variables: Collection[str] = ()

    def __init__(self, agent_type: AgentType) -> None:
        self._type = agent_type
        self._command = agent_type.command or (self.program,)

    def version(self) -> str:
        """Return the number in the first line of `--version`; empty if there is none.

        Raises `FileNotFoundError` if the program is not installed.
        """
        if problems := _not_installed(self._command, self.install):
            raise FileNotFoundError(*problems)
        run = subprocess.run(
            [*self._command, "--version"], capture_output=True, text=True, timeout=20, check=False
        )
        words = run.stdout.partition("\n")[0].split()
        return next((word for word in words if word[:1].isdigit()), "")

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """Return what prevents a start: the program, its credentials or its settings."""
        return [
            *_not_installed(self._command, self.install, environ.get("PATH")),
            *self._misconfigured(environ, endpoint),
        ]

    @abstractmethod
    def _misconfigured(self, environ: Mapping[str, str], endpoint: Endpoint) -> Sequence[str]:
        """Return what the program's own credentials or settings lack."""

    def _credentials_missing(
        self, environ: Mapping[str, str], endpoint: Endpoint, key: str, alternative: str = ""
    ) -> list[str]:
        """Return the problem of a program without an endpoint that gets no login variable."""
        if endpoint != PROVIDER_DEFAULT or login_variable(
            self._type, environ, self.login_variables
        ):
            return []
        return [
            f"it has no credentials: set {key} for the server and name it in `key` of the agent"
            f" type{alternative}"
        ]


def begin_run(
    agent_type: AgentType, files: RunFiles, prompt: str, system: str
) -> tuple[str, str, dict[str, str]]:
    """Write the prompt's file; return prompt, system prompt and environment of the program.

    With the preamble `first-message` the prompt begins with the system prompt, which is empty then.
    """
    if system and agent_type.preamble == "first-message":
        prompt, system = f"{system}\n\n{prompt}", ""
    files.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.summary.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(files.prompt, prompt)
    passed = {name: os.environ[name] for name in agent_type.pass_env if name in os.environ}
    env = {
        "HOME": str(files.home),
        "MERGEWRIGHT_SESSION": files.session,
        "MERGEWRIGHT_RUN": str(files.run),
        "MERGEWRIGHT_BRANCH": files.branch,
        "MERGEWRIGHT_WORKSPACE": str(files.workspace),
        "MERGEWRIGHT_PROMPT_FILE": str(files.prompt),
        "MERGEWRIGHT_SUMMARY_FILE": str(files.summary),
        "MERGEWRIGHT_PROGRESS_FILE": str(files.progress),
        **passed,
        **agent_type.env,
    }
    return prompt, system, env


def conversation(files: RunFiles, choose: Callable[[], str]) -> str:
    """Return the run's conversation id, chosen the first time and kept in the run's folder."""
    if not files.conversation.exists():
        write_private(files.conversation, choose())
    return read_text(files.conversation)


def prompt_argument(files: RunFiles, prompt: str) -> str:
    """Return the prompt as one argument; a pointer to its file if it is too long for that."""
    if len(prompt.encode()) <= _ARGUMENT_BYTES:
        return prompt
    return f"Read {files.prompt} from beginning to end and do what it says."


def option(name: str, value: str) -> Sequence[str]:
    """Return an option with its value as two arguments; nothing if the value is empty."""
    return (name, value) if value else ()


def tool_names(tools: Mapping[str, Collection[str]], kinds: Collection[str]) -> list[str]:
    """Return a program's own names for the tools of these kinds."""
    return [name for kind in kinds for name in tools[kind]]


def login_variable(
    agent_type: AgentType, environ: Mapping[str, str], variables: Collection[str]
) -> str:
    """Return the first of these variables that a program of this type gets; empty if none."""
    passed = [name for name in agent_type.pass_env if environ.get(name)]
    return next((name for name in (*passed, *agent_type.env) if name in variables), "")


def no_variables(agent_type: AgentType, endpoint: Endpoint) -> list[str]:
    """Return the problem of a program that gets no variable at all, and so no credentials.

    For programs that support too many providers to know which variable a model needs.
    """
    if endpoint != PROVIDER_DEFAULT or agent_type.pass_env or agent_type.env:
        return []
    return [
        "it has no credentials: set the key of its model's provider for the server, e.g."
        " ANTHROPIC_API_KEY, and name it in `key` of the agent type"
    ]


def _not_installed(command: Sequence[str], install: str, path: str | None = None) -> list[str]:
    if shutil.which(command[0], path=path):
        return []
    remedy = ", or correct `command` of the agent type" if "/" in command[0] else ""
    return [f"{command[0]} is not installed: {install}{remedy}"]
