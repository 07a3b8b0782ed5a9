"""What people can do about a reason, and whether a retry can help."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from lifecycle.model.status import Reason


class Priority(StrEnum):
    """How urgently a person is needed."""

    URGENT = "urgent"  #: The problem costs money or time every minute.
    ACTION = "action"  #: The session waits until somebody acts.
    WARNING = "warning"  #: The session has ended, or continues with a problem.
    INFO = "info"  #: Nobody has to act.


class Advice(NamedTuple):
    """A remedy in one sentence, whether a retry may help without it, and its urgency."""

    remedy: str
    retryable: bool
    priority: Priority = Priority.ACTION

    @property
    def text(self) -> str:
        """The remedy, with a hint to retry if a retry may help and a person has to act."""
        mention = self.retryable and self.priority is not Priority.INFO
        return f"{self.remedy} A retry may also help." if mention else self.remedy


_URGENT, _WARNING, _INFO = Priority.URGENT, Priority.WARNING, Priority.INFO

ADVICE: Final[Mapping[str, Advice]] = {
    Reason.PROVIDER_EXIT: Advice(
        "Read the end of the agent's log, fix what it names, and add the label again.",
        True,
        _WARNING,
    ),
    Reason.SPAWN_FAILED: Advice(
        "Fix what the message names (`mergewright doctor` checks the machine), then add the label "
        "again.",
        True,
        _WARNING,
    ),
    Reason.BRANCH_GONE: Advice(
        "Push the branch to GitHub again and add the label again, or open a new issue.",
        False,
        _WARNING,
    ),
    Reason.AUTH_FAILED: Advice("Give the agent a valid key or login, then restart it.", False),
    Reason.USAGE_LIMIT: Advice("Wait until the limit is reset, or raise it.", True, _INFO),
    Reason.RUNTIME_LOST: Advice(
        "Add the label again; the branch and its commits are kept.", True, _WARNING
    ),
    Reason.REPOSITORY_ARCHIVED: Advice(
        "Unarchive the repository; the session then resumes by itself.", False, _INFO
    ),
    Reason.ISSUE_BLOCKED: Advice(
        "Close the issues it waits for, or remove them from its dependencies.", False, _INFO
    ),
    Reason.ISSUES_IN_CIRCLE: Advice(
        "Remove one of these issues from the dependencies of another, or close it.", False
    ),
    Reason.MANUALLY_KILLED: Advice("Add the label again to continue.", False, _INFO),
    Reason.PR_CLOSED: Advice("The branch is kept; reopen it to continue.", False, _INFO),
    Reason.ISSUE_CLOSED: Advice("Reopen the issue to continue.", False, _INFO),
    Reason.LABEL_REMOVED: Advice("Add the label again to continue.", False, _INFO),
    Reason.BUDGET_EXHAUSTED: Advice(
        "Write `/mergewright budget +5` for five dollars more, or raise it in the configuration.",
        False,
    ),
    Reason.TIMEOUT: Advice("Read the log, then add the label again.", True, _WARNING),
    Reason.REPAIRS_EXHAUSTED: Advice(
        "Push a fix yourself, or comment on the pull request to tell the agent what to do.",
        False,
    ),
    Reason.CHECKS_HELD: Advice(
        "Run the checks again on GitHub, or approve those that need approval.", False
    ),
    Reason.BASE_RED: Advice(
        "Fix the base branch and update this branch on GitHub, or tell the agent to fix it.",
        False,
    ),
    Reason.PROBE_FAILURE: Advice(
        "Run `mergewright doctor` and look at the agent's terminal.", True, _URGENT
    ),
    Reason.PUSHES_USED_UP: Advice(
        "Check why the agent pushes so often; pushing resumes by itself after the hour.", True
    ),
    Reason.PUSH_REFUSED: Advice(
        "Fix what GitHub names, then write `/mergewright retry`; the commits are kept.", False
    ),
    Reason.PROTECTED_PATHS: Advice(
        "Review these changes in the workspace; allow them, or write `/mergewright tell TEXT` to "
        "have the agent revert them.",
        False,
    ),
    Reason.COMMIT_MESSAGES: Advice(
        "Write `/mergewright tell TEXT` to have the agent reword it, or reword it in the "
        "workspace.",
        False,
    ),
    Reason.DEQUEUED: Advice(
        "Fix the reason it gives, then write `/mergewright merge` to queue it again.", True
    ),
    Reason.ACTION_FAILED: Advice(
        "Fix what the message names, then write `/mergewright retry`.", True
    ),
    Reason.AGENT_QUESTION: Advice(
        "Write `/mergewright answer TEXT`, or answer in the agent's terminal.", False
    ),
    Reason.AGENT_BLOCKED: Advice(
        "Look at the agent's terminal and resolve what blocks it.", True, _URGENT
    ),
    Reason.NO_PROGRESS: Advice(
        "Look at the agent's terminal; tell it how to continue, or stop it.", True, _URGENT
    ),
    Reason.NOTHING_TO_SHOW: Advice(
        "Add details to the issue and start again, or close the issue.", False
    ),
    Reason.UNCOMMITTED_WORK: Advice(
        "Write `/mergewright tell TEXT` to say what to do with it, or commit it in the agent's "
        "terminal.",
        False,
    ),
    Reason.PAUSED_BY_PERSON: Advice("Write `/mergewright resume` to continue.", False, _INFO),
    Reason.PERSON_PUSHED: Advice(
        "Write `/mergewright resume`, or tell the agent what to do next.", False, _INFO
    ),
    Reason.NO_MEMORY: Advice(
        "Free memory on the machine; the session then starts by itself.", True, _INFO
    ),
}


def advice_on(reason: str) -> str:
    """Return the remedy for a reason; empty if nothing is wrong."""
    advice = ADVICE.get(reason)
    return advice.text if advice else ""
