"""Values that describe a session: statuses, activities, reviews, reasons, merge blockers."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Status(StrEnum):
    """A session's status, derived from the facts at each decision."""

    QUEUED = "queued"
    SPAWNING = "spawning"
    WORKING = "working"
    PR_OPEN = "pr_open"
    CI_FAILED = "ci_failed"
    REVIEW_PENDING = "review_pending"
    CHANGES_REQUESTED = "changes_requested"
    APPROVED = "approved"
    MERGEABLE = "mergeable"
    MERGED = "merged"
    NEEDS_INPUT = "needs_input"
    STUCK = "stuck"
    PAUSED = "paused"
    ERRORED = "errored"
    KILLED = "killed"
    DONE = "done"
    TERMINATED = "terminated"
    CLEANUP = "cleanup"


#: Statuses that a session does not leave by itself, except that `cleanup` becomes the outcome once
#: the program has been stopped or, after a merge, the workspace removed.
TERMINAL = frozenset(
    {Status.MERGED, Status.ERRORED, Status.KILLED, Status.DONE, Status.TERMINATED, Status.CLEANUP}
)


#: The words for statuses whose names, which programs read, do not read as English.
_WORDS: Final[Mapping[str, str]] = {
    Status.SPAWNING: "starting",
    Status.PR_OPEN: "pull request open",
    Status.CI_FAILED: "checks failed",
    Status.ERRORED: "failed",
    Status.KILLED: "stopped",
    Status.TERMINATED: "closed or unlabelled",
    Status.CLEANUP: "ending",
}


def status_words(status: str) -> str:
    """Return a status in words, such as "needs input"."""
    return _WORDS.get(status, status.replace("_", " "))


class Origin(StrEnum):
    """What a session was opened for."""

    ISSUE = "issue"
    PROMPT = "prompt"  #: A free text, at the command line, on the page or in the API.
    PULL = "pull"  #: A person's pull request, by the command `adopt`.
    CHAT = "chat"  #: A conversation with a person, who may make it a pull request.


class Activity(StrEnum):
    """What the agent itself is doing, independent of the session's status."""

    NONE = "none"  #: Nothing was ever seen of this run.
    ACTIVE = "active"  #: Processing, or running a tool.
    READY = "ready"  #: Finished its turn, alive.
    IDLE = "idle"  #: Ready for longer than `Policy.idle_seconds`.
    WAITING_INPUT = "waiting_input"  #: A question or a permission prompt is open.
    BLOCKED = "blocked"  #: An error or a usage limit stops it.
    EXITED = "exited"  #: The program is gone.


class Probe(StrEnum):
    """The result of probing a process. A failed probe is `unknown`, never `dead`."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class CheckState(StrEnum):
    """The state of one check.

    https://docs.github.com/en/graphql/reference/enums#checkconclusionstate
    """

    PASSED = "passed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ACTION_REQUIRED = "action_required"
    PENDING = "pending"
    SKIPPED = "skipped"
    STALE = "stale"


class Review(StrEnum):
    """The combined result of all reviews.

    https://docs.github.com/en/graphql/reference/enums#pullrequestreviewdecision
    """

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    PENDING = "pending"  #: A required or requested review is missing.
    NONE = "none"  #: No review is required or requested.


class Merge(StrEnum):
    """Whether a pull request can be merged, as GitHub reports it.

    https://docs.github.com/en/graphql/reference/enums#mergestatestatus
    """

    CLEAN = "clean"  #: CLEAN, HAS_HOOKS or DRAFT, or UNSTABLE by checks that nobody requires.
    CONFLICT = "conflict"
    BEHIND = "behind"
    QUEUED = "queued"  #: GitHub's merge queue has it.
    PROTECTED = "protected"  #: A rule that GitHub does not name blocks the merge.
    UNKNOWN = "unknown"  #: GitHub has not computed it yet.


class Mover(StrEnum):
    """Who last moved a pull request's branch."""

    BOT = "bot"  #: A push of Mergewright.
    UPDATE = "update"  #: GitHub merged the base into it.
    PERSON = "person"


class PullState(StrEnum):
    """A pull request's state on GitHub."""

    OPEN = "open"
    CLOSED = "closed"
    MERGED = "merged"


class DiskLimit(StrEnum):
    """Which limit a session's files on disk exceed."""

    MEGABYTES = "megabytes"
    FILES = "files"
    LEVELS = "levels"  #: Of folders within each other.
    READABLE = "readable"  #: A folder that cannot be read cannot be measured.


class Reason(StrEnum):
    """Why a session has its status, for programs; people read `because`."""

    PROVIDER_EXIT = "provider_exit"
    SPAWN_FAILED = "spawn_failed"
    SETUP_FAILED = "setup_failed"
    BRANCH_GONE = "branch_gone"
    AUTH_FAILED = "auth_failed"
    USAGE_LIMIT = "usage_limit"
    RUNTIME_LOST = "runtime_lost"
    MANUALLY_KILLED = "manually_killed"
    PR_MERGED = "pr_merged"
    PR_CLOSED = "pr_closed"
    ISSUE_CLOSED = "issue_closed"
    LABEL_REMOVED = "label_removed"
    BUDGET_EXHAUSTED = "budget_exhausted"
    TIMEOUT = "timeout"
    REPAIRS_EXHAUSTED = "repairs_exhausted"
    CHECKS_HELD = "checks_held"
    CHECKS_DISPUTED = "checks_disputed"
    CHECKS_MISSING = "checks_missing"
    WAITED_TOO_LONG = "waited_too_long"
    BASE_RED = "base_red"
    PROBE_FAILURE = "probe_failure"
    PUSH_REFUSED = "push_refused"
    PROTECTED_PATHS = "protected_paths"
    COMMITS_HELD = "commits_held"
    COMMIT_MESSAGES = "commit_messages"
    PUSHES_USED_UP = "pushes_used_up"
    DEQUEUED = "dequeued"
    ACTION_FAILED = "action_failed"
    AGENT_QUESTION = "agent_question"
    AGENT_BLOCKED = "agent_blocked"
    NO_PROGRESS = "no_progress"
    NOTHING_TO_SHOW = "nothing_to_show"
    OFF_BRANCH = "off_branch"
    UNCOMMITTED_WORK = "uncommitted_work"
    WORKSPACE_UNREADABLE = "workspace_unreadable"
    PULL_REQUEST = "pull_request"  #: Read off the pull request: its checks, reviews, merge state.
    AWAITS_MERGE = "awaits_merge"  #: Mergeable, and a person has to command the merge.
    AWAITS_MANUAL_MERGE = "awaits_manual_merge"  #: Mergeable, and only people may merge.
    MERGE_BARRED = "merge_barred"  #: Mergeable, and a rule lets only others push to the base.
    AGENT_AT_WORK = "agent_at_work"
    IN_CHAT = "in_chat"  #: A chat: the agent works or waits for the person's next message.
    CHAT_PAUSED = "chat_paused"  #: A chat in which nobody writes, or whose program has ended.
    NO_SLOT = "no_slot"
    STARTING = "starting"
    RELEASING = "releasing"
    PAUSED_BY_PERSON = "paused_by_person"
    DISK_LIMIT = "disk_limit"
    REPOSITORY_ARCHIVED = "repository_archived"
    PROJECT_REMOVED = "project_removed"
    ISSUE_BLOCKED = "issue_blocked"
    ISSUES_IN_CIRCLE = "issues_in_circle"
    PERSON_PUSHED = "person_pushed"
    COMPLETED = "completed"
    NO_MEMORY = "no_memory"


class Blocker(Struct, frozen=True):
    """A condition that blocks a merge."""

    name: str  #: Fixed, for programs.
    sentence: str  #: For people.


#: The reasons for which a push waits for the command `allow`.
HELD: Final = frozenset({Reason.PROTECTED_PATHS, Reason.COMMITS_HELD})
