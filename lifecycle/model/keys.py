"""Makes the keys of actions and findings: one function for each kind."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Final

from lifecycle.model.key import Key, KeyKind, ParkCause, StartCause

#: So many keys of one kind are remembered, of those that nearly every decision asks about.
_REMEMBERED: Final = 1024


def fingerprint(parts: Iterable[str]) -> str:
    """Return a short hash of a set of texts, independent of their order."""
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:12]


def visible(session: str, key: Key) -> str:
    """Return the short mark by which a message to an agent is found in the transcript."""
    return "mw-" + hashlib.sha256(f"{session}/{key}".encode()).hexdigest()[:10]


def marker(session: str, key: Key) -> str:
    """Return the marker by which a comment on GitHub is found: the key with its session."""
    return f"{session}/{key}"


# -- actions on a program --------------------------------------------------------------------------

#: The kinds of actions that end a run's program.
ENDINGS: Final = frozenset({KeyKind.STOP, KeyKind.PARK, KeyKind.RELEASE})


def start(cause: StartCause, run: int, command: str = "") -> Key:
    """`command`: the key of the command that asks for it."""
    return Key(KeyKind.START, (cause, command) if command else (cause,), run)


@lru_cache(maxsize=_REMEMBERED)
def park(cause: ParkCause, run: int) -> Key:
    return Key(KeyKind.PARK, (cause,), run)


def stop(run: int) -> Key:
    return Key(KeyKind.STOP, (), run)


def release(run: int) -> Key:
    return Key(KeyKind.RELEASE, (), run)


# -- messages to the agent: causes, to which `of_run` adds the run ---------------------------------

#: The kinds of messages to the agent.
MESSAGES: Final = frozenset(
    {
        KeyKind.FIX_CI,
        KeyKind.RESOLVE_CONFLICT,
        KeyKind.MERGE_BRANCH,
        KeyKind.ADDRESS_REVIEW,
        KeyKind.FORWARD,
        KeyKind.COMMIT_WORK,
        KeyKind.REWORD,
        KeyKind.SELF_REVIEW,
    }
)


def fix_ci(head: str, failed: Iterable[str]) -> Key:
    """`failed`: the ids of the failed checks."""
    return Key(KeyKind.FIX_CI, (head, fingerprint(failed)))


def resolve_conflict(base: str, head: str) -> Key:
    return Key(KeyKind.RESOLVE_CONFLICT, (base, head))


def merge_branch(head: str) -> Key:
    return Key(KeyKind.MERGE_BRANCH, (head,))


def address_review(remarks: Iterable[str]) -> Key:
    """`remarks`: the ids of the review comments and other comments to address."""
    return Key(KeyKind.ADDRESS_REVIEW, (fingerprint(remarks),))


def forward(command: str) -> Key:
    return Key(KeyKind.FORWARD, (command,))


def commit_work(requests: int) -> Key:
    return Key(KeyKind.COMMIT_WORK, (str(requests),))


def reword(head: str) -> Key:
    return Key(KeyKind.REWORD, (head,))


def self_review(head: str) -> Key:
    return Key(KeyKind.SELF_REVIEW, (head,))


def remark(id: str) -> Key:
    return Key(KeyKind.REMARK, (id,))


# -- commits and pull requests ---------------------------------------------------------------------


def push(head: str) -> Key:
    return Key(KeyKind.PUSH, (head,))


def merge_remote(head: str) -> Key:
    return Key(KeyKind.MERGE_REMOTE, (head,))


def update_branch(base: str, head: str) -> Key:
    return Key(KeyKind.UPDATE_BRANCH, (base, head))


def update_on_command(command: str, head: str) -> Key:
    return Key(KeyKind.UPDATE_ON_COMMAND, (command, head))


def rerun(head: str) -> Key:
    return Key(KeyKind.RERUN, (head,))


def open_pull(branch: str) -> Key:
    return Key(KeyKind.OPEN_PULL, (branch,))


def make_ready(number: int) -> Key:
    return Key(KeyKind.MAKE_READY, (str(number),))


def request_review(number: int) -> Key:
    return Key(KeyKind.REQUEST_REVIEW, (str(number),))


def merge(head: str, dequeued_at: datetime | None = None) -> Key:
    """`dequeued_at`: when the merge queue last removed the pull request; the head may be new."""
    return Key(KeyKind.MERGE, (head, dequeued_at.isoformat()) if dequeued_at else (head,))


def dequeue(queued: Key) -> Key:
    """`queued`: the key by which it was added to the merge queue."""
    return Key(KeyKind.DEQUEUE, queued.cause)


def delete_branch(branch: str) -> Key:
    return Key(KeyKind.DELETE_BRANCH, (branch,))


def close_issue() -> Key:
    return Key(KeyKind.CLOSE_ISSUE)


# -- reports: a place, to which `edit` adds how often it was edited and what it says ---------------

#: The kinds of actions that keep a place up to date.
REPORTS: Final = (KeyKind.REPORT, KeyKind.REPORT_CHECK, KeyKind.SHOW_STATUS)


@lru_cache(maxsize=_REMEMBERED)
def report(number: int) -> Key:
    return Key(KeyKind.REPORT, (str(number),))


@lru_cache(maxsize=_REMEMBERED)
def report_check(head: str) -> Key:
    return Key(KeyKind.REPORT_CHECK, (head,))


def show_status(number: int) -> Key:
    return Key(KeyKind.SHOW_STATUS, (str(number),))


def edit(place: Key, before: int, content: str) -> Key:
    """One edit of a report. `content`: a fingerprint of the new text."""
    return Key(place.kind, (place.cause[0], str(before), content))


def place_of(edit: Key) -> Key:
    """Return the report that was edited."""
    return Key(edit.kind, edit.cause[:1])


def content_of(edit: Key) -> str:
    """Return the fingerprint of the report's text after the edit."""
    return edit.cause[2]


def edits_before(edit: Key) -> int:
    """Return how often the report was edited before."""
    return int(edit.cause[1])


# -- comments, reactions and labels ----------------------------------------------------------------


def notice(finding: Key) -> Key:
    return _about(KeyKind.NOTICE, finding)


def warning(finding: Key) -> Key:
    return _about(KeyKind.WARNING, finding)


def command_applied(command: str) -> Key:
    return Key(KeyKind.COMMAND_APPLIED, (command,))


def command_refused(command: str) -> Key:
    return Key(KeyKind.COMMAND_REFUSED, (command,))


def answer_refused(command: str) -> Key:
    return Key(KeyKind.ANSWER_REFUSED, (command,))


def review_result(command: str) -> Key:
    return Key(KeyKind.REVIEW_RESULT, (command,))


def handed_to_human(sha: str) -> Key:
    return Key(KeyKind.HANDED_TO_HUMAN, (sha,))


def ready_to_merge(head: str) -> Key:
    return Key(KeyKind.READY_TO_MERGE, (head,))


def outcome(status: str, reason: str, run: int) -> Key:
    return Key(KeyKind.OUTCOME, (status, reason), run)


def summary(at: datetime) -> Key:
    return Key(KeyKind.SUMMARY, (at.isoformat(),))


def reply(remarks: Iterable[str]) -> Key:
    """`remarks`: the ids of the last remarks of the threads."""
    return Key(KeyKind.REPLY, (fingerprint(remarks),))


def reply_without_session(topic: str, command: str) -> Key:
    return Key(KeyKind.REPLY_WITHOUT_SESSION, (topic, command))


def outsider(issue: str | int, login: str) -> Key:
    return Key(KeyKind.OUTSIDER, (str(issue), login))


def report_configuration(head: str, blob: str) -> Key:
    return Key(KeyKind.REPORT_CONFIGURATION, (head, blob))


def reaction(command: str) -> Key:
    return Key(KeyKind.REACTION, (command,))


def attention_label(before: int) -> Key:
    return Key(KeyKind.ATTENTION_LABEL, (str(before),))


# -- findings --------------------------------------------------------------------------------------


def action_failed(action: Key) -> Key:
    return _about(KeyKind.ACTION_FAILED, action)


def no_result(message: Key) -> Key:
    """A message after which the agent ended its turn without a commit."""
    return _about(KeyKind.NO_RESULT, message)


def question(since: datetime | None, run: int) -> Key:
    return Key(KeyKind.QUESTION, (_time(since),), run)


def stuck(reason: str, since: datetime | None, run: int = 0) -> Key:
    return Key(KeyKind.STUCK, (reason, _time(since)), run)


def protected_paths(head: str) -> Key:
    return Key(KeyKind.PROTECTED_PATHS, (head,))


def pushes_used_up(since: datetime) -> Key:
    return Key(KeyKind.PUSHES_USED_UP, (_time(since),))


def dequeued(head: str, at: datetime) -> Key:
    return Key(KeyKind.DEQUEUED, (head, _time(at)))


def repairs_exhausted(head: str) -> Key:
    return Key(KeyKind.REPAIRS_EXHAUSTED, (head,))


def rounds_exhausted(rounds: int) -> Key:
    return Key(KeyKind.ROUNDS_EXHAUSTED, (str(rounds),))


def base_red(head: str, failed: Iterable[str]) -> Key:
    return Key(KeyKind.BASE_RED, (head, fingerprint(failed)))


def checks_held(head: str, held: Iterable[str]) -> Key:
    return Key(KeyKind.CHECKS_HELD, (head, fingerprint(held)))


def nothing_to_show(run: int) -> Key:
    return Key(KeyKind.NOTHING_TO_SHOW, (), run)


def usage_limit(until: datetime, run: int) -> Key:
    return Key(KeyKind.USAGE_LIMIT, (_time(until),), run)


def budget(name: str, limit: float, since: str) -> Key:
    """`since`: the day, or the time of the last restore; empty: the whole session."""
    return Key(KeyKind.BUDGET, (name, f"{limit:g}", since))


def issues_in_circle(issues: Iterable[str]) -> Key:
    return Key(KeyKind.ISSUES_IN_CIRCLE, (fingerprint(issues),))


def _about(kind: KeyKind, other: Key) -> Key:
    return Key(kind, (other.kind, *other.cause), other.run)


def _time(at: datetime | None) -> str:
    return at.isoformat() if at else ""
