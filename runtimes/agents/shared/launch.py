"""What the starts of programs have in common: environment, arguments, what stands in the way."""

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence

from runtimes.agents.base import PROVIDER_DEFAULT, AgentType, Endpoint, RunFiles

_ARGUMENT_BYTES = 100_000  #: One argument of a program may have 128 KiB on Linux.


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
        "MERGEWRIGHT_PROGRESS_FILE": str(files.progress),
        **passed,
        **kind.env,
    }


def introduced(kind: AgentType, prompt: str, system: str) -> tuple[str, str]:
    """Prompt and system prompt; where the type wants it so, the one begins with the other."""
    if system and kind.preamble == "first-message":
        return f"{system}\n\n{prompt}", ""
    return prompt, system


def argument(files: RunFiles, prompt: str) -> str:
    """The prompt as one argument, or a word on where it stands, where it is too long for that."""
    if len(prompt.encode()) <= _ARGUMENT_BYTES:
        return prompt
    return f"Read {files.prompt} from beginning to end and do what it says."


def named(tools: Mapping[str, Collection[str]], kinds: Collection[str]) -> list[str]:
    """A program's own names for the tools of these kinds."""
    return [name for kind in kinds for name in tools[kind]]


def login(kind: AgentType, environ: Mapping[str, str], variables: Collection[str]) -> str:
    """The variable a program is given that it signs in with by itself; empty: none of these."""
    passed = [name for name in kind.pass_env if environ.get(name)]
    return next((name for name in (*passed, *kind.env) if name in variables), "")


def keyless(kind: AgentType, endpoint: Endpoint) -> list[str]:
    """That a program is given nothing to sign in with, with the remedy; empty where it is.

    For one whose model may be any provider's: there are too many to know which key it needs.
    """
    if endpoint != PROVIDER_DEFAULT or kind.pass_env or kind.env:
        return []
    return [
        "it has no credentials: set the key of its model's provider for the server, e.g."
        " ANTHROPIC_API_KEY, and name it in `key` of the agent type"
    ]


def missing(command: Sequence[str], remedy: str, path: str | None = None) -> list[str]:
    """That a program is not installed, with the remedy; empty where it is."""
    if shutil.which(command[0], path=path):
        return []
    named = ", or correct `command` of the agent type" if "/" in command[0] else ""
    return [f"{command[0]} is not installed: {remedy}{named}"]


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
