"""Starts a command of the configuration as an agent."""

import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from lifecycle.model.text import settled
from runtimes.agents.base import (
    NO_LIMITS,
    PROVIDER_DEFAULT,
    AgentType,
    Endpoint,
    LaunchSpec,
    RunFiles,
    RunLimits,
)
from runtimes.agents.shared.adoption import NotAdopted
from runtimes.agents.shared.launch import begin_run
from runtimes.agents.shared.messages import LineMessageReader, Message, MessageKind
from runtimes.agents.shell.reader import ShellReader


class Shell:
    """A command of the configuration."""

    submit_seconds = 0.0
    wants_screen = False
    remembers = False  #: All that is known of a command is that it gets its prompt.
    writes_outside = True
    provider = ""
    preambles: Collection[str] = ("system-prompt",)
    tools: Mapping[str, Collection[str]] = {}
    supports_subagents = False
    limits_subagents = False
    login_variables: Collection[str] = ()

    def __init__(self, agent_type: AgentType) -> None:
        self._type = agent_type

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = NO_LIMITS
    ) -> LaunchSpec:
        """Write the prompt's file and fill the command's placeholders."""
        prompt, system, env = begin_run(self._type, files, prompt, run_limits.system)
        values = {
            "{prompt}": str(files.prompt),
            "{workspace}": str(files.workspace),
            "{session}": files.session,
            "{run}": str(files.run),
            "{branch}": files.branch,
            "{resume}": resume,
        }
        words = (*self._type.command, *self._type.args)
        argv = tuple(_fill(word, values) for word in words if values.get(word) != "")
        env |= {"MERGEWRIGHT_RESUME": resume, "MERGEWRIGHT_SYSTEM_PROMPT": system}
        env |= run_limits.endpoint.variables(
            url="MERGEWRIGHT_MODEL_URL", key="MERGEWRIGHT_MODEL_KEY"
        )
        return LaunchSpec(argv=argv, env=env, native_id=files.session)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Raise `NotAdopted`: a command has no conversations."""
        raise NotAdopted(
            "a command has no conversation to resume: start the session without --resume"
        )

    def reader(self, files: RunFiles) -> ShellReader:
        """Return a reader of the run's output."""
        return ShellReader(files)

    def dialog(self, files: RunFiles, screen: str) -> None:
        """Return None: its questions are answered by messages."""

    def unsent_text(self, screen: str) -> str:
        """Return an empty text: a command has no input box."""
        return ""

    def records(self, files: RunFiles) -> Sequence[Path]:
        """Return the run's output."""
        return (files.output,)

    def messages(self, files: RunFiles) -> LineMessageReader:
        """Return a reader of the run's output."""
        return LineMessageReader(lambda: self.records(files), lambda: _parse_line)

    def version(self) -> str:
        """Return the command's path: commands have no common way to print a version."""
        path = shutil.which(self._type.command[0]) if self._type.command else None
        if path is None:
            raise FileNotFoundError(self._missing())
        return path

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """Return what prevents a start: no command is set, or it is not installed."""
        if not self._type.command or not shutil.which(
            self._type.command[0], path=environ.get("PATH")
        ):
            return [self._missing()]
        return []

    def _missing(self) -> str:
        if not self._type.command:
            return "no command: set `command` of this agent type"
        return f"{self._type.command[0]} is not installed: install it, or correct `command`"


def _parse_line(line: str) -> Iterator[Message]:
    if text := settled(line).rstrip():
        yield Message(kind=MessageKind.ANSWER, text=text)


def _fill(word: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{\w+\}", lambda found: values.get(found[0], found[0]), word)
