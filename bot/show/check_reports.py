"""The checks and open review threads of pull requests, with the logs of failed checks."""

from typing import Final

from msgspec import Struct

from bot.show.session_summary import PullSummary, summarize_pull
from bot.text import page_text
from lifecycle.model.facts import Check, Pull, Thread
from lifecycle.model.status import CheckState

#: The order in which checks are shown: checks that need attention come first.
_ORDER: Final = (
    *(CheckState.FAILED, CheckState.ACTION_REQUIRED, CheckState.CANCELLED, CheckState.STALE),
    *(CheckState.PENDING, CheckState.PASSED, CheckState.SKIPPED),
)


class ShownCheck(Struct, frozen=True, kw_only=True):
    """One check of a pull request."""

    name: str
    state: str  #: A value of `CheckState`.
    url: str  #: Of its page; if empty, it has none.
    remarks: tuple[str, ...]  #: Short phrases, such as `required`.
    notes: str  #: Its annotations at lines of files; may be empty.
    log: str  #: The failing part of its log; may be empty.


class OpenThread(Struct, frozen=True, kw_only=True):
    """A review thread that is not resolved."""

    place: str  #: `a.py, line 3` or `a.py`; if empty, the thread names no file.
    author: str  #: The login of the author of the last comment.
    text: str  #: The last comment.


class PullReport(Struct, frozen=True, kw_only=True):
    """A pull request with its checks and what reviewers ask for."""

    pull: PullSummary
    checks: tuple[ShownCheck, ...]
    threads: tuple[OpenThread, ...]


def pull_report(pull: Pull) -> PullReport:
    """Return a pull request's checks, those that need attention first, and its open threads."""
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
