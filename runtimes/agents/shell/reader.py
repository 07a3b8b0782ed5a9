"""Reads the activity of a command from the lines it prints; the package describes them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs
from msgspec.structs import replace

from lifecycle.model.facts import Agent, Usage
from lifecycle.model.status import Activity
from lifecycle.model.text import plain
from runtimes.agents.base import RunFiles
from runtimes.agents.shared.activity import exited
from runtimes.agents.shared.files import TEXT, Count, Dollars, contains, decode_json
from runtimes.agents.shared.line_tail import LineTail
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


class ShellReader:
    """Reads one run of a command."""

    def __init__(self, files: RunFiles) -> None:
        self._files = files
        self._lines = LineTail(files.output)
        self._reported = Agent(run=files.run, native_id=files.session)
        self._printed: datetime | None = None  #: When it last printed.
        self._active_since: datetime | None = None  #: Since when it prints without a pause.

    def read(self, seen: Seen, screen: str | None, now: datetime) -> Agent:
        """Return the reported activity, or else whether the command prints; see `Reader.read`."""
        self._read_output()
        agent = replace(
            self._reported, seen=self._printed, runtime=seen.runtime, program=seen.program
        )
        if end := exited(seen, agent):
            return end
        if agent.activity is not Activity.NONE or self._printed is None:
            return agent
        if now - self._printed < _SILENCE:
            return replace(
                agent,
                activity=Activity.ACTIVE,
                since=self._active_since,
                evidence="it prints",
            )
        return replace(
            agent,
            activity=Activity.READY,
            since=self._printed,
            evidence=f"it runs and has printed nothing since {self._printed:%H:%M:%S} UTC",
        )

    def received(self, key: str) -> bool:
        """Whether the key is in the output: in a `received` line, or the terminal's echo."""
        return contains(self._files.output, key)

    def _read_output(self) -> None:
        lines = self._lines.to_end()
        if self._lines.modified is None:
            return
        printed = datetime.fromtimestamp(self._lines.modified, UTC)
        if self._printed is None or printed - self._printed > _SILENCE:
            self._active_since = printed
        self._printed = printed
        for line in lines:
            for part in line.split("\r"):
                if report := _REPORT.fullmatch(plain(part).rstrip()):
                    self._note(report[1], report[2][:TEXT], printed)

    def _note(self, word: str, text: str, at: datetime) -> None:
        if word == "usage":
            self._reported = replace(self._reported, usage=_usage(text) or self._reported.usage)
        else:
            self._reported = self._report(word, text, at)

    def _report(self, word: str, text: str, at: datetime) -> Agent:
        activity = _ACTIVITIES[word]
        until, text = _limit(text) if word == "limited" else (None, text)
        same = activity is self._reported.activity is Activity.ACTIVE
        return Agent(
            run=self._files.run,
            activity=activity,
            since=self._reported.since if same else at,
            evidence=f"it said `{word}`: {text}"[:_EVIDENCE],
            question=text if activity is Activity.WAITING_INPUT else "",
            error=text if activity is Activity.BLOCKED else "",
            limit_until=until,
            calling=word == "calling",
            usage=self._reported.usage,
            summary=text if activity is Activity.READY else self._reported.summary,
            native_id=self._files.session,
        )


class _ReportedUsage(Struct, frozen=True):
    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    reasoning: Count = 0
    model: str = ""
    cost_usd: Dollars | None = None


def _usage(text: str) -> Usage | None:
    """Parse the JSON of a `usage` line; None if it is malformed."""
    reported = decode_json(text, _ReportedUsage)
    if reported is None:
        return None
    fields = structs.asdict(reported)
    model = fields.pop("model")
    usage = Usage(**fields)
    return replace(usage, models={model: usage}) if model else usage


def _limit(text: str) -> tuple[datetime | None, str]:
    """Split the text of a `limited` line into time and reason; without a time, all is reason."""
    word, _, why = text.partition(" ")
    try:
        until = msgspec.convert(word, Annotated[datetime, Meta(tz=True)])
    except msgspec.ValidationError:
        return None, text
    return until, why
