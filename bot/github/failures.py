"""Why a check failed: the end of its failed step's log, and what it notes at files and lines."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from msgspec import Struct

from bot.github.calls import ApiClient
from bot.github.errors import Refused
from bot.github.log_tail import tail
from bot.github.shapes import CheckApp
from bot.github.snapshots import CheckReport

_ACTIONS = "github-actions"
#: GitHub has not written it yet, has thrown it away, or hides it from us.
_NOT_SHOWN = {403, 404, 410}
#: The time GitHub writes before each line of a job's log; and what an end by an error leaves there.
_STAMP = re.compile(r"\ufeff?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z ")
_ERROR = "##[error]"
#: Times of steps are whole seconds, those of lines are not.
_SECOND = timedelta(seconds=1)
_NOTES = 20
_LEVELS = ("failure", "warning")  # In the order in which they are told.


class CheckRunOutput(Struct, frozen=True):
    """What a check run says, and how many notes it made at lines of files."""

    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations_count: int = 0


class CheckRunResponse(Struct, frozen=True):
    """GET check-runs/ID."""

    output: CheckRunOutput
    app: CheckApp | None = None


class JobStep(Struct, frozen=True):
    """One step of a job."""

    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


class JobResponse(Struct, frozen=True):
    """GET actions/jobs/ID: a job of GitHub Actions has the number of its check run."""

    steps: tuple[JobStep, ...] = ()


class Annotation(Struct, frozen=True):
    """One entry of GET check-runs/ID/annotations."""

    path: str
    start_line: int
    annotation_level: str | None = None
    title: str | None = None
    message: str | None = None


def check_report(calls: ApiClient, repo: str, run_id: int) -> CheckReport:
    """What a check run printed, or the text it gave itself, and its notes; all of it shortened."""
    run = calls.get(repo, f"check-runs/{run_id}", CheckRunResponse)
    output = run.output
    log = _job_log(calls, repo, run_id) if run.app and run.app.slug == _ACTIONS else ""
    return CheckReport(
        log=tail(log or output.text or output.summary or output.title or ""),
        notes=_notes(calls, repo, run_id) if output.annotations_count else "",
    )


def _job_log(calls: ApiClient, repo: str, run_id: int) -> str:
    """The log of a job's failed step without the times; empty where GitHub does not show it."""
    try:
        log = calls.log(repo, f"actions/jobs/{run_id}/logs")
        job = calls.get(repo, f"actions/jobs/{run_id}", JobResponse)
    except Refused as refusal:
        if refusal.status not in _NOT_SHOWN:
            raise
        return ""
    return of_failed_step(log, job.steps)


def of_failed_step(log: str, steps: Iterable[JobStep]) -> str:
    """What the first failed step printed, without the times; all of it where none failed.

    The steps after it, which clean up, write to the same log.
    """
    failed = next((step for step in steps if step.conclusion == "failure"), None)
    lines = list(_stamped(log))
    if failed is not None and failed.started_at and failed.completed_at:
        begun, over = failed.started_at, failed.completed_at + _SECOND
        own = [(at, line) for at, line in lines if at is None or begun <= at < over]
        # The next step may have begun within the same second.
        ends = [number for number, (_, line) in enumerate(own, 1) if line.startswith(_ERROR)]
        lines = own[: ends[-1] if ends else None] or lines
    return "\n".join(line for _, line in lines)


def _stamped(log: str) -> Iterator[tuple[datetime | None, str]]:
    """The lines with their times; one without its own has that of the line before it."""
    at: datetime | None = None
    for line in log.split("\n"):
        stamp = _STAMP.match(line)
        if stamp:
            at = datetime.fromisoformat(f"{stamp[1]}+00:00")
        yield at, line[stamp.end() :] if stamp else line


def _notes(calls: ApiClient, repo: str, run_id: int) -> str:
    """A line for each note, the failures first."""
    path = f"check-runs/{run_id}/annotations"
    found = calls.get(repo, path, list[Annotation], {"per_page": "100"})
    told = [note for level in _LEVELS for note in found if note.annotation_level == level]
    return tail("\n".join(map(_line, told[:_NOTES])))


def _line(note: Annotation) -> str:
    said = ": ".join(filter(None, (note.title, note.message)))
    return " ".join(f"{note.path}:{note.start_line}: {note.annotation_level}: {said}".split())
