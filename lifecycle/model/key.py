"""The keys of actions: values derived from a cause, so that no cause leads to an action twice.

A key is text only where text is stored or shown: `str(key)` writes it and `parse` reads it back
exactly, whatever characters its cause contains.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct


class KeyKind(StrEnum):
    """The kind of action, report or finding that a key names; `#:` lists the parts of its cause."""

    # Actions on a run's program; the key carries the run.
    START = "start"  #: `StartCause`, and the command's key where a person asked for it.
    PARK = "park"  #: `ParkCause`.
    STOP = "stop"
    RELEASE = "release"
    PRESS_KEYS = "press_keys"  #: The idempotency key of a person's request.
    # Messages to the agent.
    FIX_CI = "fix_ci"  #: Head, fingerprint of the failed checks' ids.
    RESOLVE_CONFLICT = "resolve_conflict"  #: Base, head.
    MERGE_BRANCH = "merge_branch"  #: Head with other people's commits.
    ADDRESS_REVIEW = "address_review"  #: Fingerprint of the remarks' ids.
    FORWARD = "forward"  #: The command's key.
    COMMIT_WORK = "commit_work"  #: How many requests and failed or lost runs came before it.
    REWORD = "reword"  #: Head.
    MOVE_COMMITS = "move_commits"  #: The newest commit that is not on the session's branch.
    SELF_REVIEW = "self_review"  #: Head.
    REMARK = "remark"  #: The remark's id: it was part of a message that was sent.
    # Actions on commits and pull requests.
    PUSH = "push"  #: Head.
    ADOPT = "adopt"  #: The commit checked out.
    MERGE_REMOTE = "merge_remote"  #: Head on GitHub.
    UPDATE_BRANCH = "update_branch"  #: Base, head.
    UPDATE_ON_COMMAND = "update_on_command"  #: The command's key, head.
    RERUN = "rerun"  #: Head.
    OPEN_PULL = "open_pull"  #: Branch.
    MAKE_READY = "make_ready"  #: Number of the pull request.
    REQUEST_REVIEW = "request_review"  #: Number of the pull request.
    MERGE = "merge"  #: Head, and when the merge queue last removed the pull request, if it did.
    DEQUEUE = "dequeue"  #: The same as for `MERGE`.
    DELETE_BRANCH = "delete_branch"  #: Branch.
    CLOSE_ISSUE = "close_issue"
    # Reports that are edited in place.
    REPORT = "report"  #: Number of the issue or pull request, edits before, fingerprint.
    REPORT_CHECK = "report_check"  #: Head, edits before, fingerprint.
    REPORT_CONFIGURATION = "report_configuration"  #: Head, blob of the file.
    SHOW_STATUS = "show_status"  #: Number of the issue, edits before, fingerprint.
    # Comments, reactions and labels.
    NOTICE = "notice"  #: Kind and cause of the finding it reports.
    WARNING = "warning"  #: Kind and cause of what it warns of.
    COMMAND_APPLIED = "command_applied"  #: The command's key.
    COMMAND_REFUSED = "command_refused"  #: The command's key.
    ANSWER_REFUSED = "answer_refused"  #: The command's key.
    REVIEW_RESULT = "review_result"  #: The command's key.
    HANDED_TO_HUMAN = "handed_to_human"  #: The person's commit.
    READY_TO_MERGE = "ready_to_merge"  #: Head.
    OUTCOME = "outcome"  #: Status, reason.
    SUMMARY = "summary"  #: When the last session of the project ended.
    REPLY = "reply"  #: Fingerprint of the ids of each thread's last remark.
    REPLY_WITHOUT_SESSION = "reply_without_session"  #: Topic, the command's key.
    OUTSIDER = "outsider"  #: Id of the issue, login.
    REACTION = "reaction"  #: The command's key, or the remark's id.
    ATTENTION_LABEL = "attention_label"  #: How often it was added or removed before.
    # Findings, which people are notified of.
    ACTION_FAILED = "action_failed"  #: Kind and cause of the action.
    QUESTION = "question"  #: When it was asked.
    PROTECTED_PATHS = "protected_paths"  #: Head.
    OFF_BRANCH = "off_branch"  #: How often the agent was asked to move its commits.
    PUSHES_USED_UP = "pushes_used_up"  #: When the first push of the hour was made.
    DEQUEUED = "dequeued"  #: Head, when it was removed from the queue.
    REPAIRS_EXHAUSTED = "repairs_exhausted"  #: Head.
    ROUNDS_EXHAUSTED = "rounds_exhausted"  #: How many rounds there were.
    NO_RESULT = "no_result"  #: Kind and cause of a message that led to no commit.
    BASE_RED = "base_red"  #: Head, fingerprint of the failed checks' ids.
    CHECKS_HELD = "checks_held"  #: Head, fingerprint of the checks' ids.
    CHECKS_DISPUTED = "checks_disputed"  #: Head, how often people were notified before.
    OVERDUE = "overdue"  #: Since when, how often people were notified before.
    CHECKS_MISSING = "checks_missing"  #: Head, how often people were notified before.
    NOTHING_TO_SHOW = "nothing_to_show"
    STUCK = "stuck"  #: Reason, since when.
    USAGE_LIMIT = "usage_limit"  #: When it resets.
    DISK_LIMIT = "disk_limit"  #: Since when it is exceeded.
    BUDGET = "budget"  #: Name, limit, since when.
    ISSUES_IN_CIRCLE = "issues_in_circle"  #: Fingerprint of the issues.


class StartCause(StrEnum):
    """The cause of the start of a run."""

    FIRST = "first"
    CRASH = "crash"  #: The run before it failed by itself.
    LOST = "lost"  #: The run before it was lost with its machine or runtime.
    #: The bot stopped the run before it during a turn, or the program of a chat ended, or a person
    #: commanded `resume`.
    RESUME = "resume"
    MESSAGE = "message"  #: The program has ended, and there is a message for the agent.
    RESTART = "restart"  #: A person's command.
    AGENT = "agent"  #: A person's command that names another agent.


class ParkCause(StrEnum):
    """What the agent was doing when its program was stopped to be resumed later."""

    #: Nothing: its turn had ended, or it waited for a person. In a chat: it was in no turn.
    AT_REST = "rest"
    INTERRUPTED = "work"  #: It was in a turn, or its turn is not known to have ended.


class Key(Struct, frozen=True, cache_hash=True, array_like=True):
    """The identity of one action or finding."""

    kind: KeyKind
    cause: tuple[str, ...] = ()
    run: int = 0  #: If 0, it does not concern a run.

    def of_run(self, run: int) -> "Key":
        """Return the key of the same kind and cause for the run with the number `run`."""
        return Key(self.kind, self.cause, run)

    @property
    def without_run(self) -> "Key":
        """The key of the cause alone, for any run."""
        return Key(self.kind, self.cause) if self.run else self

    def __str__(self) -> str:
        """Return the text that `parse` reads: `kind:part:part#run`; `#run` is omitted if 0."""
        text = ":".join((self.kind, *map(_escaped, self.cause)))
        return f"{text}#{self.run}" if self.run else text


# These separate the parts of a text, or begin an escape.
_SPECIAL: Final = re.compile("[%:#]")
_ESCAPE: Final = re.compile("%(..)")


def _escaped(part: str) -> str:
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", part)


def _unescaped(part: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), part)


@lru_cache(maxsize=16_384)
def parse(text: str) -> Key:
    """Return the key that `str` wrote as this text. Raises `ValueError` for any other text."""
    cause, _, run = text.partition("#")
    kind, *parts = cause.split(":")
    key = Key(KeyKind(kind), tuple(map(_unescaped, parts)), int(run or 0))
    if str(key) != text:
        raise ValueError(f"{text!r} is not the key of an action or a finding")
    return key
