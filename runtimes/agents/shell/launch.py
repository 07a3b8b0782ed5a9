"""Any command as an agent: the prompt in a file, its state in the lines it prints.

`command` and `args` may hold `{prompt}` (path of the first prompt), `{workspace}`, `{session}`,
`{run}`, `{branch}` and `{resume}` (the session from its second run on, empty before). The same
stands in MERGEWRIGHT_PROMPT_FILE, _WORKSPACE, _SESSION, _RUN, _BRANCH and _RESUME, what the agent
at work is told before anything else in MERGEWRIGHT_SYSTEM_PROMPT, its model's endpoint and key in
MERGEWRIGHT_MODEL_URL and MERGEWRIGHT_MODEL_KEY, and the path of the file for what its pull request
is to say in MERGEWRIGHT_SUMMARY_FILE, that of the file for notes on its progress, which a later run
is shown, in MERGEWRIGHT_PROGRESS_FILE. Later messages come as lines on its standard input.

A line of its output that begins with `mergewright: ` says what it does:

    active [TEXT]      it works
    ready [SUMMARY]    its turn is over
    waiting QUESTION   a person has to answer
    blocked ERROR      it cannot go on by itself
    limited UNTIL WHY  a usage limit stops it until then: 2026-11-21T15:00:00Z
    received KEY       it read the message with this key, and works at it
    calling TEXT       it works, and runs something that may be silent for long
    usage JSON         what it used in this run so far: {"input": 9, "output": 9, "cost_usd": 0.1};
                       with a "model" it is priced by the configuration where it names no cost

The last of them counts, while the program lives; `usage` is counted beside the others. One that
never prints any is taken to work while it prints, and to be ready once it has been silent for
30 seconds. Other output says nothing: it does not end a question.
"""

import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs
from msgspec.structs import replace

from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Activity
from lifecycle.model.text import plain, settled
from runtimes.agents.base import (
    PROVIDER_DEFAULT,
    USUAL,
    AgentType,
    Endpoint,
    LaunchSpec,
    RunFiles,
    RunLimits,
)
from runtimes.agents.shared.adoption import NotAdopted
from runtimes.agents.shared.conversation import MessagesOfLines
from runtimes.agents.shared.exits import ended
from runtimes.agents.shared.files import TEXT, Count, Dollars, holds, understood, write_private
from runtimes.agents.shared.launch import environment, introduced
from runtimes.agents.shared.line_tail import LineTail
from runtimes.agents.shared.messages import Kind, Message
from runtimes.base import Seen

_SILENCE = timedelta(seconds=30)
_SAYS = re.compile(
    r"mergewright: (active|ready|waiting|blocked|limited|received|calling|usage)\b *(.*)"
)
_WORDS = {
    "active": Activity.ACTIVE,
    "ready": Activity.READY,
    "waiting": Activity.WAITING_INPUT,
    "blocked": Activity.BLOCKED,
    "limited": Activity.BLOCKED,
    "received": Activity.ACTIVE,
    "calling": Activity.ACTIVE,
}


class Shell:
    """A command of the configuration."""

    submit_seconds = 0.0
    wants_screen = False
    remembers = False  #: What is known of a command is that it is given its prompt.
    writes_outside = True
    provider = ""
    preambles: Collection[str] = ("system-prompt",)
    tools: Mapping[str, Collection[str]] = {}
    runs_agents = False
    counts_agents = False
    logins: Collection[str] = ()

    def __init__(self, kind: AgentType) -> None:
        self._kind = kind

    def prepare(
        self, files: RunFiles, prompt: str, resume: str, run_limits: RunLimits = USUAL
    ) -> LaunchSpec:
        """Write the prompt's file and fill the command's names; see `Program.prepare`."""
        prompt, system = introduced(self._kind, prompt, run_limits.system)
        write_private(files.prompt, prompt)
        names = {
            "{prompt}": str(files.prompt),
            "{workspace}": str(files.workspace),
            "{session}": files.session,
            "{run}": str(files.run),
            "{branch}": files.branch,
            "{resume}": resume,
        }
        words = (*self._kind.command, *self._kind.args)
        argv = tuple(_filled(word, names) for word in words if names.get(word) != "")
        env = {
            **environment(self._kind, files),
            "MERGEWRIGHT_RESUME": resume,
            "MERGEWRIGHT_SYSTEM_PROMPT": system,
            **run_limits.endpoint.variables(
                url="MERGEWRIGHT_MODEL_URL", key="MERGEWRIGHT_MODEL_KEY"
            ),
        }
        return LaunchSpec(argv=argv, env=env, native_id=files.session)

    def adopt(self, files: RunFiles, native: str) -> None:
        """Refuse it, and say why."""
        raise NotAdopted(
            "a command has no conversation to go on with: start the session without --resume"
        )

    def reader(self, files: RunFiles) -> "ShellReader":
        """A reader of the run's output."""
        return ShellReader(files)

    def dialog(self, files: RunFiles, screen: str) -> None:
        """Nothing: what it asks is answered with a message."""

    def typed(self, screen: str) -> str:
        """Nothing: it has no box."""
        return ""

    def records(self, files: RunFiles) -> Sequence[Path]:
        """All it printed."""
        return (files.output,)

    def messages(self, files: RunFiles) -> MessagesOfLines:
        """What it printed."""
        return MessagesOfLines(lambda: self.records(files), lambda: _printed)

    def version(self) -> str:
        """Where the command is; a command of anybody's has no version."""
        path = shutil.which(self._kind.command[0]) if self._kind.command else None
        if path is None:
            raise FileNotFoundError(self._missing())
        return path

    def check(
        self, environ: Mapping[str, str], endpoint: Endpoint = PROVIDER_DEFAULT
    ) -> Sequence[str]:
        """What stands in the way: no command, or one that is not installed."""
        if not self._kind.command or not shutil.which(
            self._kind.command[0], path=environ.get("PATH")
        ):
            return [self._missing()]
        return []

    def _missing(self) -> str:
        if not self._kind.command:
            return "no command: set `command` of this agent type"
        return f"{self._kind.command[0]} is not installed: install it, or correct `command`"


class ShellReader:
    """Reads one run of a command."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._lines = LineTail(files.output)
        self._said = Agent(run=files.run, native_id=files.session)
        self._printed: datetime | None = None
        self._works_since: datetime | None = None

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """The activity by what it last said, or by whether it prints; see `Reader.read`."""
        self._look_at_output(now)
        agent = replace(self._said, seen=self._printed, runtime=seen.runtime, program=seen.program)
        if end := ended(seen, agent):
            return end
        if agent.activity is not Activity.NONE or self._printed is None:
            return agent
        if now - self._printed < _SILENCE:
            return replace(
                agent,
                activity=Activity.ACTIVE,
                since=self._works_since,
                evidence="it prints",
            )
        return replace(
            agent,
            activity=Activity.READY,
            since=self._printed,
            evidence=f"it lives and has been silent since {self._printed:%H:%M:%S} UTC",
        )

    def received(self, key: str) -> bool:
        """Whether the key is in what it printed: its own line, or the terminal's echo."""
        return holds(self._files.output, key)

    def _look_at_output(self, now: datetime) -> None:
        lines = self._lines.to_end()
        if self._lines.written is None:
            return
        printed = datetime.fromtimestamp(self._lines.written, UTC)
        if self._printed is None or printed - self._printed > _SILENCE:
            self._works_since = printed
        self._printed = printed
        for line in lines:
            for part in line.split("\r"):
                if says := _SAYS.fullmatch(plain(part).rstrip()):
                    self._hear(says[1], says[2][:TEXT], printed)

    def _hear(self, word: str, text: str, at: datetime) -> None:
        if word == "usage":
            self._said = replace(self._said, usage=_used(text) or self._said.usage)
        else:
            self._said = self._understood(word, text, at)

    def _understood(self, word: str, text: str, at: datetime) -> Agent:
        activity = _WORDS[word]
        until, text = _limit(text) if word == "limited" else (None, text)
        same = activity is self._said.activity is Activity.ACTIVE
        return Agent(
            run=self._files.run,
            activity=activity,
            since=self._said.since if same else at,
            evidence=f"it said `{word}`: {text}"[:200],
            question=text if activity is Activity.WAITING_INPUT else "",
            error=text if activity is Activity.BLOCKED else "",
            limit_until=until,
            calling=word == "calling",
            usage=self._said.usage,
            summary=text if activity is Activity.READY else self._said.summary,
            native_id=self._files.session,
        )


def _printed(line: str) -> Iterator[Message]:
    if text := settled(line).rstrip():
        yield Message(kind=Kind.ANSWER, text=text)


class _Used(Struct, frozen=True):
    """What a `usage` line says."""

    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    reasoning: Count = 0
    model: str = ""
    cost_usd: Dollars | None = None


def _used(text: str) -> Usage | None:
    """What was used; None where the line does not say it."""
    said = understood(text, _Used)
    if said is None:
        return None
    counted = structs.asdict(said)
    model = counted.pop("model")
    usage = Usage(**counted)
    return replace(usage, models={model: usage}) if model else usage


def _limit(text: str) -> tuple[datetime | None, str]:
    """Until when a limit stands, and what is said of it; all of it, where no time is named."""
    word, _, why = text.partition(" ")
    try:
        until = msgspec.convert(word, Annotated[datetime, Meta(tz=True)])
    except msgspec.ValidationError:
        return None, text
    return until, why


def _filled(word: str, names: Mapping[str, str]) -> str:
    return re.sub(r"\{\w+\}", lambda found: names.get(found[0], found[0]), word)
