"""The checks of a session's pull requests, with the failing part of their logs."""

from typing import Final

from msgspec import Struct

from bot.show.session_summary import PullSummary, summarize_pull
from bot.text import page_text
from lifecycle.model.facts import Check, Pull, Thread
from lifecycle.model.status import CheckState

#: Those that need attention first.
_ORDER: Final = (
    *(CheckState.FAILED, CheckState.ACTION_REQUIRED, CheckState.CANCELLED, CheckState.STALE),
    *(CheckState.PENDING, CheckState.PASSED, CheckState.SKIPPED),
)


class ShownCheck(Struct, frozen=True, kw_only=True):
    """One check."""

    name: str
    state: str
    url: str  #: Empty: it has none.
    remarks: tuple[str, ...]  #: Short phrases: `required`, `fails on the base too`.
    notes: str  #: What it noted at lines of files.
    log: str  #: The failing part of its log.


class OpenThread(Struct, frozen=True, kw_only=True):
    """A review thread that is not resolved."""

    place: str  #: `a.py, line 3`, or empty.
    author: str
    text: str


class PullReport(Struct, frozen=True, kw_only=True):
    """A pull request with its checks and what reviewers ask for."""

    pull: PullSummary
    checks: tuple[ShownCheck, ...]
    threads: tuple[OpenThread, ...]


def pull_report(pull: Pull) -> PullReport:
    """Return the checks of a pull request, those that need attention first."""
    checks = sorted(pull.checks, key=lambda one: (_ORDER.index(one.state), one.name))
    return PullReport(
        pull=summarize_pull(pull),
        checks=tuple(map(_check, checks)),
        threads=tuple(_thread(one) for one in pull.threads if not one.resolved and one.remarks),
    )


def _check(check: Check) -> ShownCheck:
    remarks = {
        "required": check.required,
        "has not reported yet": not check.reported,
        "fails on the base branch too": check.red_on_base,
        "known to fail at random": check.flaky,
    }
    return ShownCheck(
        name=page_text.line(check.name),
        state=check.state,
        url=page_text.link(check.url),
        remarks=tuple(words for words, applies in remarks.items() if applies),
        notes=page_text.block(check.notes),
        log=page_text.block(check.log),
    )


def _thread(thread: Thread) -> OpenThread:
    place = f"{thread.path}, line {thread.line}" if thread.line else thread.path
    last = thread.remarks[-1]
    return OpenThread(
        place=page_text.line(place),
        author=page_text.line(last.author),
        text=page_text.block(last.body),
    )
