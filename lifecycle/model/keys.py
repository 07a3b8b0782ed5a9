"""Makes the keys of actions and findings, with one function for each kind.

The comment beside each member of `KeyKind` says what its keys are made of.
"""

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import lru_cache
from typing import Final

from lifecycle.model.key import Key, KeyKind, ParkCause, StartCause

#: Caches the keys of one kind that nearly every decision needs.
_remembered: Final = lru_cache(maxsize=1024)
#: The kinds of actions that end a run's program.
ENDINGS: Final = frozenset({KeyKind.STOP, KeyKind.PARK, KeyKind.RELEASE})
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
        KeyKind.MOVE_COMMITS,
        KeyKind.SELF_REVIEW,
    }
)
#: The kinds of actions that update a report: status comments, check runs and status labels.
REPORTS: Final = (KeyKind.REPORT, KeyKind.REPORT_CHECK, KeyKind.SHOW_STATUS)


def fingerprint(parts: Iterable[str]) -> str:
    """Return a hash of these texts as 12 hexadecimal digits; their order does not matter."""
    return hashlib.sha256("\n".join(sorted(parts)).encode(errors="replace")).hexdigest()[:12]


def visible(session: str, key: Key) -> str:
    """Return the short text, such as `mw-0123456789`, that marks a message to the agent.

    The message contains this text, so that it can be found in the agent's transcript.
    """
    return "mw-" + hashlib.sha256(f"{session}/{key}".encode(errors="replace")).hexdigest()[:10]


def marker(session: str, key: Key) -> str:
    """Return the text, `SESSION/KEY`, that the hidden marker of an action's comment contains."""
    return f"{session}/{key}"


def _of_text(kind: KeyKind) -> Callable[[str], Key]:
    return lambda text: Key(kind, (text,))


def _of_texts(kind: KeyKind) -> Callable[[str, str], Key]:
    return lambda one, other: Key(kind, (one, other))


def _of_number(kind: KeyKind) -> Callable[[int], Key]:
    return lambda number: Key(kind, (str(number),))


def _of_run(kind: KeyKind) -> Callable[[int], Key]:
    return lambda run: Key(kind, (), run)


def _of_set(kind: KeyKind) -> Callable[[Iterable[str]], Key]:
    return lambda parts: Key(kind, (fingerprint(parts),))


def _of_head_and_set(kind: KeyKind) -> Callable[[str, Iterable[str]], Key]:
    return lambda head, parts: Key(kind, (head, fingerprint(parts)))


def _of_key(kind: KeyKind) -> Callable[[Key], Key]:
    return lambda other: Key(kind, (other.kind, *other.cause), other.run)


# -- actions on a program --------------------------------------------------------------------------


def start(cause: StartCause, run: int, command: str = "") -> Key:
    """Return the key of a start. `command`: the key of the command that asks for it, if any."""
    return Key(KeyKind.START, (cause, command) if command else (cause,), run)


@_remembered
def park(cause: ParkCause, run: int) -> Key:
    return Key(KeyKind.PARK, (cause,), run)


stop = _of_run(KeyKind.STOP)
release = _of_run(KeyKind.RELEASE)


def press_keys(request: str, run: int) -> Key:
    """Return the key of a `PressKeys` action. `request` identifies the person's request to type."""
    return Key(KeyKind.PRESS_KEYS, (request,), run)


# -- messages to the agent: causes, to which `of_run` adds the run ---------------------------------

fix_ci = _of_head_and_set(KeyKind.FIX_CI)
resolve_conflict = _of_texts(KeyKind.RESOLVE_CONFLICT)
merge_branch = _of_text(KeyKind.MERGE_BRANCH)
address_review = _of_set(KeyKind.ADDRESS_REVIEW)
forward = _of_text(KeyKind.FORWARD)
commit_work = _of_number(KeyKind.COMMIT_WORK)
reword = _of_text(KeyKind.REWORD)
move_commits = _of_text(KeyKind.MOVE_COMMITS)
self_review = _of_text(KeyKind.SELF_REVIEW)
remark = _of_text(KeyKind.REMARK)

# -- commits and pull requests ---------------------------------------------------------------------

push = _of_text(KeyKind.PUSH)
adopt = _of_text(KeyKind.ADOPT)
merge_remote = _of_text(KeyKind.MERGE_REMOTE)
update_branch = _of_texts(KeyKind.UPDATE_BRANCH)
update_on_command = _of_texts(KeyKind.UPDATE_ON_COMMAND)
rerun = _of_text(KeyKind.RERUN)
open_pull = _of_text(KeyKind.OPEN_PULL)
make_ready = _of_number(KeyKind.MAKE_READY)
request_review = _of_number(KeyKind.REQUEST_REVIEW)
delete_branch = _of_text(KeyKind.DELETE_BRANCH)


def merge(head: str, dequeued_at: datetime | None = None) -> Key:
    """Return the key of a merge.

    `dequeued_at`: when the merge queue last removed the pull request, or None.
    """
    return Key(KeyKind.MERGE, (head, dequeued_at.isoformat()) if dequeued_at else (head,))


def dequeue(queued: Key) -> Key:
    """Return the key of a removal from the merge queue. `queued`: the key of the addition to it."""
    return Key(KeyKind.DEQUEUE, queued.cause)


def close_issue() -> Key:
    return Key(KeyKind.CLOSE_ISSUE)


# -- reports: a place, to which `edit` adds how often it was edited and what it says ---------------

report = _remembered(_of_number(KeyKind.REPORT))
report_check = _remembered(_of_text(KeyKind.REPORT_CHECK))
show_status = _of_number(KeyKind.SHOW_STATUS)


def edit(place: Key, before: int, content: str) -> Key:
    """Return the key of one edit of the report with the key `place`.

    `before`: how often it was edited before. `content`: a fingerprint of the new text.
    """
    return Key(place.kind, (place.cause[0], str(before), content))


def place_of(edit: Key) -> Key:
    """Return the key of the report that an edit changes. `edit`: the key of the edit."""
    return Key(edit.kind, edit.cause[:1])


def content_of(edit: Key) -> str:
    """Return the fingerprint of the report's text after the edit."""
    return edit.cause[2]


def edits_before(edit: Key) -> int:
    """Return how often the report was edited before this edit."""
    return int(edit.cause[1])


# -- comments, reactions and labels ----------------------------------------------------------------

notice = _of_key(KeyKind.NOTICE)
warning = _of_key(KeyKind.WARNING)
command_applied = _of_text(KeyKind.COMMAND_APPLIED)
command_refused = _of_text(KeyKind.COMMAND_REFUSED)
answer_refused = _of_text(KeyKind.ANSWER_REFUSED)
review_result = _of_text(KeyKind.REVIEW_RESULT)
handed_to_human = _of_text(KeyKind.HANDED_TO_HUMAN)
ready_to_merge = _of_text(KeyKind.READY_TO_MERGE)
reply = _of_set(KeyKind.REPLY)
reply_without_session = _of_texts(KeyKind.REPLY_WITHOUT_SESSION)
report_configuration = _of_texts(KeyKind.REPORT_CONFIGURATION)
reaction = _of_text(KeyKind.REACTION)
attention_label = _of_number(KeyKind.ATTENTION_LABEL)


def outcome(status: str, reason: str, run: int) -> Key:
    return Key(KeyKind.OUTCOME, (status, reason), run)


def summary(at: datetime) -> Key:
    return Key(KeyKind.SUMMARY, (at.isoformat(),))


def outsider(issue: str | int, login: str) -> Key:
    return Key(KeyKind.OUTSIDER, (str(issue), login))


# -- findings --------------------------------------------------------------------------------------

action_failed = _of_key(KeyKind.ACTION_FAILED)
no_result = _of_key(KeyKind.NO_RESULT)
protected_paths = _of_text(KeyKind.PROTECTED_PATHS)
repairs_exhausted = _of_text(KeyKind.REPAIRS_EXHAUSTED)
rounds_exhausted = _of_number(KeyKind.ROUNDS_EXHAUSTED)
off_branch = _of_number(KeyKind.OFF_BRANCH)
base_red = _of_head_and_set(KeyKind.BASE_RED)
checks_held = _of_head_and_set(KeyKind.CHECKS_HELD)
checks_disputed = _of_texts(KeyKind.CHECKS_DISPUTED)
checks_missing = _of_texts(KeyKind.CHECKS_MISSING)
nothing_to_show = _of_run(KeyKind.NOTHING_TO_SHOW)
issues_in_circle = _of_set(KeyKind.ISSUES_IN_CIRCLE)


def question(since: datetime | None, run: int) -> Key:
    return Key(KeyKind.QUESTION, (_time(since),), run)


def stuck(reason: str, since: datetime | None, run: int = 0) -> Key:
    return Key(KeyKind.STUCK, (reason, _time(since)), run)


def pushes_used_up(since: datetime) -> Key:
    return Key(KeyKind.PUSHES_USED_UP, (_time(since),))


def dequeued(head: str, at: datetime) -> Key:
    return Key(KeyKind.DEQUEUED, (head, _time(at)))


def overdue(since: datetime, before: int) -> Key:
    """Return the key of a wait that takes too long. `before`: how often people were notified."""
    return Key(KeyKind.OVERDUE, (_time(since), str(before)))


def usage_limit(until: datetime, run: int) -> Key:
    return Key(KeyKind.USAGE_LIMIT, (_time(until),), run)


def disk_limit(since: datetime) -> Key:
    return Key(KeyKind.DISK_LIMIT, (_time(since),))


def budget(name: str, limit: float, since: str) -> Key:
    """Return the key of a budget that is used up or nearly used up.

    `since`: the day of a daily budget, else the time of the last restore; empty if there was none.
    """
    return Key(KeyKind.BUDGET, (name, f"{limit:g}", since))


def _time(at: datetime | None) -> str:
    return at.isoformat() if at else ""
