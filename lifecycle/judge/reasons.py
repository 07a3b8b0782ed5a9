"""What people can do about a reason, and whether trying again can help."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from lifecycle.model.status import Reason


class Priority(StrEnum):
    """How soon people have to look."""

    URGENT = "urgent"  #: It costs something every minute.
    ACTION = "action"  #: Nothing goes on until somebody does something.
    WARNING = "warning"  #: It ended, or goes on worse than it should.
    INFO = "info"  #: It goes on by itself, or as somebody commanded.


class Advice(NamedTuple):
    """A remedy in one sentence, whether a retry may work without it, and how soon to look."""

    remedy: str
    retryable: bool
    priority: Priority = Priority.ACTION

    @property
    def text(self) -> str:
        """The remedy, and that a retry may help, where one can be asked for and may."""
        asked_for = self.retryable and self.priority is not Priority.INFO
        return f"{self.remedy} A retry may help without that." if asked_for else self.remedy


ADVICE: Final[Mapping[str, Advice]] = {
    Reason.PROVIDER_EXIT: Advice(
        "Read the agent's last words in its log, mend what they name, and put the label on again.",
        True,
        Priority.WARNING,
    ),
    Reason.SPAWN_FAILED: Advice(
        "Mend what the message names (`mergewright doctor` checks the machine), then put the "
        "label on again.",
        True,
        Priority.WARNING,
    ),
    Reason.BRANCH_GONE: Advice(
        "Push the branch to GitHub again and put the label on again, or open an issue for another "
        "try.",
        False,
        Priority.WARNING,
    ),
    Reason.AUTH_FAILED: Advice("Give the agent a valid key or login, then restart it.", False),
    Reason.USAGE_LIMIT: Advice("Wait for the limit to reset, or raise it.", True, Priority.INFO),
    Reason.RUNTIME_LOST: Advice(
        "Put the label on again; its branch and commits are kept.", True, Priority.WARNING
    ),
    Reason.REPOSITORY_ARCHIVED: Advice(
        "Unarchive the repository; it goes on by itself.", False, Priority.INFO
    ),
    Reason.ISSUE_BLOCKED: Advice(
        "Close the issues it waits for, or take them off its dependencies.", False, Priority.INFO
    ),
    Reason.ISSUES_IN_CIRCLE: Advice(
        "Take one of these issues off the dependencies of another, or close it.", False
    ),
    Reason.MANUALLY_KILLED: Advice("Put the label on again to go on.", False, Priority.INFO),
    Reason.PR_CLOSED: Advice("Its branch is kept; reopen it to go on.", False, Priority.INFO),
    Reason.ISSUE_CLOSED: Advice("Reopen the issue to go on.", False, Priority.INFO),
    Reason.LABEL_REMOVED: Advice("Put the label on again to go on.", False, Priority.INFO),
    Reason.BUDGET_EXHAUSTED: Advice(
        "Write `/mergewright budget +5` for five dollars more, or raise it in the configuration.",
        False,
    ),
    Reason.TIMEOUT: Advice("Look at its log, then put the label on again.", True, Priority.WARNING),
    Reason.REPAIRS_EXHAUSTED: Advice(
        "Push a fix yourself, or tell the agent what to do in a comment on the pull request.",
        False,
    ),
    Reason.CHECKS_HELD: Advice(
        "Run the checks again on GitHub, or approve what asks for it there.", False
    ),
    Reason.BASE_RED: Advice(
        "Mend the base branch and bring it in with GitHub's button, or tell the agent to mend it.",
        False,
    ),
    Reason.PROBE_FAILURE: Advice(
        "Run `mergewright doctor` and look at its terminal.", True, Priority.URGENT
    ),
    Reason.PUSHES_USED_UP: Advice(
        "Look at what the agent goes round about; it goes on by itself when the hour is over.", True
    ),
    Reason.PUSH_REFUSED: Advice(
        "Mend what GitHub names, then write `/mergewright retry`; the commits are kept.", False
    ),
    Reason.PROTECTED_PATHS: Advice(
        "Look at these changes in its workspace; allow them, or write `/mergewright tell TEXT` to "
        "have the agent take them back.",
        False,
    ),
    Reason.COMMIT_MESSAGES: Advice(
        "Write `/mergewright tell TEXT` to have the agent reword it, or do so in its workspace.",
        False,
    ),
    Reason.DEQUEUED: Advice(
        "Mend what it names, then write `/mergewright merge` to have it queued again.", True
    ),
    Reason.ACTION_FAILED: Advice(
        "Mend what the message names, then write `/mergewright retry`.", True
    ),
    Reason.AGENT_QUESTION: Advice(
        "Write `/mergewright answer TEXT`, or answer at its terminal.", False
    ),
    Reason.AGENT_BLOCKED: Advice(
        "Look at its terminal and clear what blocks it.", True, Priority.URGENT
    ),
    Reason.NO_PROGRESS: Advice(
        "Look at its terminal; tell it how to go on, or stop it.", True, Priority.URGENT
    ),
    Reason.NOTHING_TO_SHOW: Advice(
        "Say more in the issue and start again, or close the issue.", False
    ),
    Reason.UNCOMMITTED_WORK: Advice(
        "Write `/mergewright tell TEXT` to say what to do with it, or commit it at its terminal.",
        False,
    ),
    Reason.PAUSED_BY_PERSON: Advice("Write `/mergewright resume` to go on.", False, Priority.INFO),
    Reason.PERSON_PUSHED: Advice(
        "Write `/mergewright resume`, or tell the agent what to do next.", False, Priority.INFO
    ),
    Reason.NO_MEMORY: Advice(
        "Free memory on the machine; it starts by itself once there is room.", True, Priority.INFO
    ),
}


def advice_on(reason: str) -> str:
    """What people are told to do about a reason; empty: nothing is wrong."""
    advice = ADVICE.get(reason)
    return advice.text if advice else ""
