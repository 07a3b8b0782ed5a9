"""Reads why a check failed: the end of the failed step's log, and the annotations of files."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from bot.github.api_client import ApiClient
from bot.github.errors import IgnoreRefused
from bot.github.rest import Annotation, CheckRunResponse, JobResponse, JobStep
from bot.github.snapshots import CheckReport
from lifecycle.model.text import plain
from lifecycle.model.times import from_text

GITHUB_ACTIONS = "github-actions"
#: The time that GitHub puts before each line of a job's log, and the mark of a line with an error.
_TIMESTAMP = re.compile(r"\ufeff?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z ")
_ERROR = "##[error]"
#: Times of steps are rounded to whole seconds, times of lines are not.
_SECOND = timedelta(seconds=1)
_MAX_ANNOTATIONS = 20
_LEVELS = ("failure", "warning")  # In the order in which they are shown.
_MAX_LINES, _MAX_LINE_LENGTH, _MAX_LENGTH = 50, 400, 8_000


def check_report(api: ApiClient, repo: str, run_id: int) -> CheckReport:
    """Return the shortened log of a check run (or else its output) and up to 20 annotations.

    `run_id` is the check run's id, which is also the id of its GitHub Actions job, if any.
    """
    run = api.get(repo, f"check-runs/{run_id}", CheckRunResponse)
    output = run.output
    log = _job_log(api, repo, run_id) if run.app and run.app.slug == GITHUB_ACTIONS else ""
    return CheckReport(
        log=tail(log or output.text or output.summary or output.title or ""),
        notes=_annotations(api, repo, run_id) if output.annotations_count else "",
    )


def tail(text: str) -> str:
    """Return the last 50 lines without control characters, at most 8,000 characters in all.

    Each line is cut to 400 characters. A line that was redrawn appears in its last state.
    """
    lines = [_printed(line) for line in text.rstrip().split("\n")[-_MAX_LINES:]]
    return "\n".join(lines)[-_MAX_LENGTH:]


def failed_step_log(log: str, steps: Iterable[JobStep]) -> str:
    """Return the log lines of the first failed step up to its last error, without timestamps.

    `log` contains the lines of all steps, including clean-up steps that ran after the failure. All
    lines are returned if no step failed, or if those of the failed step cannot be found.
    """
    failed = next((step for step in steps if step.conclusion == "failure"), None)
    lines = list(_timed_lines(log))
    if failed is not None and failed.started_at and failed.completed_at:
        begun, over = failed.started_at, failed.completed_at + _SECOND
        own = [(at, line) for at, line in lines if at is None or begun <= at < over]
        # The next step may have begun within the same second.
        ends = [number for number, (_, line) in enumerate(own, 1) if line.startswith(_ERROR)]
        lines = own[: ends[-1] if ends else None] or lines
    return "\n".join(line for _, line in lines)


def _job_log(api: ApiClient, repo: str, run_id: int) -> str:
    """Return the log of a job's failed step; empty if GitHub has no log that the bot may read.

    https://docs.github.com/rest/actions/workflow-jobs#download-job-logs-for-a-workflow-run
    """
    # The log is not written yet, has expired, or may not be read.
    with IgnoreRefused(403, 404, 410):
        log = api.log(repo, f"actions/jobs/{run_id}/logs")
        job = api.get(repo, f"actions/jobs/{run_id}", JobResponse)
        return failed_step_log(log, job.steps)
    return ""


def _timed_lines(log: str) -> Iterator[tuple[datetime | None, str]]:
    """Yield each line with its time. A line without a time gets that of the line before, if any."""
    at: datetime | None = None
    for line in log.split("\n"):
        timestamp = _TIMESTAMP.match(line)
        if timestamp:
            at = from_text(f"{timestamp[1]}+00:00") or at
        yield at, line[timestamp.end() :] if timestamp else line


def _printed(line: str) -> str:
    # A progress bar redraws its line with carriage returns: only the last state stays visible.
    return plain(line.rstrip("\r").rpartition("\r")[2])[:_MAX_LINE_LENGTH]


def _annotations(api: ApiClient, repo: str, run_id: int) -> str:
    """Return up to 20 failures and warnings as text, one line each, failures first."""
    path = f"check-runs/{run_id}/annotations"
    found = api.get(repo, path, list[Annotation], {"per_page": "100"})
    shown = [one for level in _LEVELS for one in found if one.annotation_level == level]
    return tail("\n".join(map(_line, shown[:_MAX_ANNOTATIONS])))


def _line(one: Annotation) -> str:
    text = ": ".join(filter(None, (one.title, one.message)))
    return " ".join(f"{one.path}:{one.start_line}: {one.annotation_level}: {text}".split())
