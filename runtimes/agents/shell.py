"""The adapter that runs any command as an agent.

The command gets its prompt in a file, and reports its state in lines that it prints.
`docs/agents.md` lists the placeholders of its command line, its variables and those lines. The
state in a line that begins with `mergewright: ` holds until the next such line or the command's
end; `usage` lines do not change the state. A command without such lines counts as active while it
prints, and as ready after some silence. Other output does not change a reported state: in
particular, it does not end a question.
"""

import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Activity
from lifecycle.model.text import plain, settled
from lifecycle.model.times import from_seconds, from_text
from runtimes.agents.base import NO_LIMITS, Endpoint, LaunchSpec, RunFiles, RunLimits
from runtimes.agents.shared.adapter import AgentAdapter, begin_run
from runtimes.agents.shared.files import TEXT, Count, Dollars, LineTail, decode_json
from runtimes.agents.shared.messages import Message, MessageKind
from runtimes.agents.shared.reader import Reader, in_state
from runtimes.base import Seen

_SILENCE = timedelta(seconds=30)
_EVIDENCE = 200  #: Characters.
_REPORT = re.compile(
    r"mergewright: (active|ready|waiting|blocked|limited|received|calling|usage)\b *(.*)"
)
_ACTIVITIES = {
    "active": Activity.ACTIVE,
    "ready": Activity.READY,
    "waiting": Activity.WAITING_INPUT,
    "blocked": Activity.BLOCKED,
    "limited": Activity.BLOCKED,
    "received": Activity.ACTIVE,
    "calling": Activity.ACTIVE,
}


class ShellReader(Reader):
    """Reads the activity of one run of a command from the lines it prints."""

    def __init__(self, files: RunFiles) -> None:
        super().__init__(files)
        self._native = files.session
        self._lines = LineTail(files.output)
        self._reported_usage = Usage()
        #: Since when the command has printed without a pause.
        self._active_since: datetime | None = None

    def _judge(self, agent: Agent, seen: Seen, screen: str, now: datetime) -> Agent:
        """Return the reported activity, or else derive it from the time of the last output."""
        if agent.activity is not Activity.NONE or self._touched is None:
            return agent
        if now - self._touched < _SILENCE:
            return in_state(agent, Activity.ACTIVE, self._active_since, "the command prints")
        evidence = f"the command has printed nothing since {self._touched:%H:%M:%S} UTC"
        return in_state(agent, Activity.READY, self._touched, evidence)

    def _received_in(self) -> Sequence[Path]:
        """Return the output file, which has the `received` lines and the terminal's echo."""
        return (self._files.output,)

    def _update(self) -> None:
        lines = self._lines.to_end()
        if self._lines.modified is None:
            return
        printed = from_seconds(self._lines.modified)
        if self._touched is None or printed - self._touched > _SILENCE:
            self._active_since = printed
        self._touched = printed
        for line in lines:
            for part in line.split("\r"):
                if report := _REPORT.fullmatch(plain(part).rstrip()):
                    self._note(report[1], report[2][:TEXT], printed)

    def _note(self, word: str, text: str, at: datetime) -> None:
        if word == "usage":
            self._reported_usage = _usage(text) or self._reported_usage
            return
        activity = _ACTIVITIES[word]
        until, text = _limit(text) if word == "limited" else (None, text)
        same = activity is self._turn.activity is Activity.ACTIVE
        if activity is Activity.READY:
            self._summary = text
        self._turn = in_state(
            self._turn,
            activity,
            self._turn.since if same else at,
            f"the command reported `{word}`: {text}"[:_EVIDENCE],
            question=text if activity is Activity.WAITING_INPUT else "",
            error=text if activity is Activity.BLOCKED else "",
            limit_until=until,
            calling=word == "calling",
        )

    def _usage(self) -> Usage:
        return self._reported_usage


class _ReportedUsage(Struct, frozen=True):
    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    reasoning: Count = 0
    model: str = ""
    cost_usd: Dollars | None = None


def _usage(text: str) -> Usage | None:
    """Parse the JSON of a `usage` line. Return None if it is malformed."""
    reported = decode_json(text, _ReportedUsage)
    if reported is None:
        return None
    usage = msgspec.convert(reported, Usage, from_attributes=True)
    return replace(usage, models={reported.model: usage}) if reported.model else usage


def _limit(text: str) -> tuple[datetime | None, str]:
    """Split the text of a `limited` line into time and reason; the time may be missing."""
    word, _, why = text.partition(" ")
    until = from_text(word)
    return (until, why) if until else (None, text)


class Shell(AgentAdapter):
    """The adapter of any command that the configuration names."""

    not_adopted = "a command has no conversation to resume"
    submit_seconds = 0.0
    wants_screen = False
    remembers = False  #: A command may know nothing but its prompt.
    preambles: Collection[str] = ("system-prompt",)
    permission_modes = False
    supports_subagents = False

    reader = ShellReader
    parser = staticmethod(lambda: _parse_line)

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
        endpoint = run_limits.endpoint
        env |= endpoint.variables(url="MERGEWRIGHT_MODEL_URL", key="MERGEWRIGHT_MODEL_KEY")
        return LaunchSpec(argv=argv, env=env, native_id=files.session)

    def dialog(self, files: RunFiles, screen: str) -> None:
        """Return None: a command takes answers to its questions as messages."""

    def version(self) -> str:
        """Return the command's path: commands have no common way to print a version.

        Raises `FileNotFoundError` if it is not installed, or if no command is configured.
        """
        command = self._type.command
        path = shutil.which(command[0]) if command else None
        if path is None:
            raise FileNotFoundError(*self._not_installed())
        return path

    def _conversations(self, files: RunFiles) -> Sequence[Path]:
        return (files.output,)

    def _not_installed(self, path: str | None = None) -> Sequence[str]:
        if not self._type.command:
            return ["no command: set `command` of this agent type"]
        if shutil.which(self._command[0], path=path):
            return []
        return [f"{self._command[0]} is not installed: install it, or correct `command`"]

    def _misconfigured(self, environ: Mapping[str, str], endpoint: Endpoint) -> list[str]:
        return []


def _parse_line(line: str) -> Iterator[Message]:
    if text := settled(line).rstrip():
        yield Message(kind=MessageKind.ANSWER, text=text)


def _fill(word: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{\w+\}", lambda found: values.get(found[0], found[0]), word)
