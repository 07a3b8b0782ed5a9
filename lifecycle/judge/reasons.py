"""Maps reasons to what people can do about them, and how urgently; normal work has no advice."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from lifecycle.model.names import NAME
from lifecycle.model.status import TERMINAL, Reason, Status


class Priority(StrEnum):
    """How urgently a person is needed."""

    URGENT = "urgent"  #: The problem costs money or time every minute.
    ACTION = "action"  #: The session waits until somebody acts.
    WARNING = "warning"  #: The session has ended, or continues with a problem.
    INFO = "info"  #: Nobody has to act.


class Advice(NamedTuple):
    """A remedy in words, its urgency, and the command that may help even without the remedy."""

    remedy: str
    priority: Priority = Priority.ACTION
    again: str = ""  #: That command's name, such as `retry`; empty if there is none.

    @property
    def text(self) -> str:
        """`remedy`, followed by a hint at the command in `again` unless `remedy` names it."""
        command = f"`/{NAME} {self.again}`"
        mention = self.again and command not in self.remedy
        return f"{self.remedy} {command} may also help." if mention else self.remedy


_URGENT, _WARNING, _INFO = Priority.URGENT, Priority.WARNING, Priority.INFO

# Where people find a session's terminal, changes and workspace.
_TERMINAL: Final = "the agent's terminal (the tab Terminal of the session's page)"
_IN_TERMINAL: Final = "in the agent's terminal (on the server: `mergewright attach SESSION`)"
_CHANGES: Final = "these changes in the tab Changes of the session's page"
_WORKSPACE: Final = "in the session's workspace on the server (its path is on the session's page)"

ADVICE: Final[Mapping[str, Advice]] = {
    Reason.PROVIDER_EXIT: Advice(
        "On the server, run `mergewright logs SESSION` and fix the problem that the last lines "
        "show, then write `/mergewright start`.",
        _WARNING,
        again="start",
    ),
    Reason.SPAWN_FAILED: Advice(
        "Fix the cause of the error (on the server, `mergewright doctor` looks for faults), then "
        "write `/mergewright start`.",
        _WARNING,
        again="start",
    ),
    Reason.SETUP_FAILED: Advice(
        "Read the output of the set-up (the tab Set-up of the session's page, or on the server "
        "`mergewright logs SESSION --step setup`), fix the setting `setup` under `[projects.NAME]` "
        "or what its commands need, run `mergewright reload` if you changed the setting, then "
        "write `/mergewright start`.",
        _WARNING,
        again="start",
    ),
    Reason.BRANCH_GONE: Advice(
        "Push the branch to GitHub again and write `/mergewright start`, or open a new issue.",
        _WARNING,
    ),
    Reason.AUTH_FAILED: Advice(
        "On the server, give the agent a valid key or login, then write `/mergewright restart`. If "
        "the key is in `mergewright.env`, restart the server first."
    ),
    Reason.USAGE_LIMIT: Advice(
        "The session resumes by itself when the limit is reset. If you raise the limit, write "
        "`/mergewright restart`.",
        _INFO,
    ),
    Reason.RUNTIME_LOST: Advice(
        "Write `/mergewright start`; the branch and its commits are kept.", _WARNING, again="start"
    ),
    Reason.DISK_LIMIT: Advice(
        "On the server, remove what the session does not need from its workspace and home folder, "
        "or make the unreadable folder readable. If the message names `disk-mb`, you can raise "
        "this setting instead and run `mergewright reload`. The session then resumes by itself; if "
        "it exceeded `disk-mb`, its files must first take up less than 90 % of that limit.",
        _WARNING,
    ),
    Reason.REPOSITORY_ARCHIVED: Advice(
        "Unarchive the repository; the session then resumes by itself.", _INFO
    ),
    Reason.PROJECT_REMOVED: Advice(
        "Put `[projects.NAME]` back into the configuration and run `mergewright reload`, or "
        "install the App on the repository again; the session then resumes by itself.",
        _INFO,
    ),
    Reason.ISSUE_BLOCKED: Advice(
        "Close the issues that block this one, or remove them from its dependencies.", _INFO
    ),
    Reason.ISSUES_IN_CIRCLE: Advice(
        "Close one of these issues, or remove it from the dependencies of another."
    ),
    Reason.MANUALLY_KILLED: Advice("Write `/mergewright start` to continue.", _INFO),
    Reason.PR_CLOSED: Advice("Reopen the pull request to continue; its branch is kept.", _INFO),
    Reason.ISSUE_CLOSED: Advice("Reopen the issue to continue, or open a new one.", _INFO),
    Reason.LABEL_REMOVED: Advice("Add the label or assignment again to continue.", _INFO),
    Reason.BUDGET_EXHAUSTED: Advice(
        "Write `/mergewright budget +5`: for this session only, it raises every budget in dollars "
        "by 5, and those in hours and tokens in proportion. Or raise the budget in the "
        "configuration and run `mergewright reload`."
    ),
    Reason.TIMEOUT: Advice(
        "On the server, run `mergewright doctor` and read the server's log to see what took so "
        "long; once that is fixed, write `/mergewright start`.",
        _WARNING,
        again="start",
    ),
    Reason.REPAIRS_EXHAUSTED: Advice(
        "Push a fix yourself, or write `/mergewright tell TEXT` to tell the agent what to do."
    ),
    Reason.CHECKS_HELD: Advice(
        "Run the checks again on GitHub, or approve those that need approval."
    ),
    Reason.CHECKS_DISPUTED: Advice(
        "Merge the pull request on GitHub if the check is not needed; otherwise start the check "
        "again."
    ),
    Reason.WAITED_TOO_LONG: Advice(
        "Resolve what the session waits for, write `/mergewright tell TEXT` to have the agent "
        "continue, or end the session with `/mergewright stop`. If only checks that GitHub does "
        "not require are pending, you can also merge without them: write `/mergewright merge`, or "
        "merge on GitHub if the bot may not merge."
    ),
    Reason.CHECKS_MISSING: Advice(
        "Start the checks on GitHub, or merge without them: write `/mergewright merge`, or merge "
        "on GitHub if the bot may not merge."
    ),
    Reason.BASE_RED: Advice(
        "Fix the base branch and update this branch on GitHub, or write `/mergewright tell TEXT` "
        "to have the agent repair the failing checks in this pull request."
    ),
    Reason.PROBE_FAILURE: Advice(
        f"On the server, run `mergewright doctor`. Look at {_TERMINAL}.", _URGENT, again="restart"
    ),
    Reason.PUSHES_USED_UP: Advice(
        "Check why the branch is pushed so often; pushing resumes by itself at that time."
    ),
    Reason.PUSH_REFUSED: Advice(
        "Fix the cause of the error, then write `/mergewright retry`; the commits are kept.",
        again="retry",
    ),
    # The finding names the command that allows the push.
    Reason.PROTECTED_PATHS: Advice(
        f"Review {_CHANGES}; then allow the push, or write `/mergewright tell TEXT` to have the "
        "agent revert them."
    ),
    Reason.COMMITS_HELD: Advice(
        f"Review {_CHANGES}; then allow the push, or write `/mergewright tell TEXT` to have the "
        "agent change them. If you allow a commit with a secret, revoke the secret."
    ),
    Reason.COMMIT_MESSAGES: Advice(
        "Write `/mergewright tell TEXT` to have the agent reword the commit message, or reword it "
        f"{_WORKSPACE}."
    ),
    Reason.OFF_BRANCH: Advice(
        "Write `/mergewright tell TEXT` to have the agent move the commits to the session's "
        f"branch, or move them {_WORKSPACE}."
    ),
    Reason.DEQUEUED: Advice(
        "Fix what the queue reports, then write `/mergewright merge` to queue the pull request "
        "again.",
        again="merge",
    ),
    Reason.ACTION_FAILED: Advice(
        "Fix the cause of the error, then write `/mergewright retry`.", again="retry"
    ),
    Reason.AWAITS_MERGE: Advice("Write `/mergewright merge`, or merge the pull request on GitHub."),
    Reason.AWAITS_MANUAL_MERGE: Advice("Merge the pull request on GitHub."),
    Reason.MERGE_BARRED: Advice(
        "Merge the pull request on GitHub, or have an administrator lift the rule for the bot; "
        "then `/mergewright merge` works too."
    ),
    Reason.AGENT_QUESTION: Advice(f"Write `/mergewright answer TEXT`, or answer {_IN_TERMINAL}."),
    Reason.AGENT_BLOCKED: Advice(
        f"Look at {_TERMINAL}, and resolve what blocks the agent.", _URGENT, again="restart"
    ),
    Reason.NO_PROGRESS: Advice(
        f"Look at {_TERMINAL}, or end the session with `/mergewright stop`.",
        _URGENT,
        again="restart",
    ),
    Reason.NOTHING_TO_SHOW: Advice(
        "Add details to the issue (the agent gets them) or close it; without an issue, write "
        "`/mergewright tell TEXT`, or end the session with `/mergewright stop`."
    ),
    Reason.UNCOMMITTED_WORK: Advice(
        "Write `/mergewright tell TEXT` to have the agent commit or discard the changes, or do it "
        f"{_IN_TERMINAL}."
    ),
    Reason.WORKSPACE_UNREADABLE: Advice(
        "Fix the cause of the error, or write `/mergewright restart`, which recreates the "
        "workspace, provided that all work in it can be preserved.",
        again="restart",
    ),
    Reason.CHAT_PAUSED: Advice(
        "Write `/mergewright resume` or a message to continue the conversation, "
        "`/mergewright pull-request` to turn its work into a pull request, or "
        "`/mergewright stop` to end it.",
        _INFO,
    ),
    Reason.PAUSED_BY_PERSON: Advice("Write `/mergewright resume` to continue.", _INFO),
    Reason.PERSON_PUSHED: Advice(
        "Somebody other than Mergewright pushed to the branch, so the agent gets no more work for "
        "now. To give it work again, write `/mergewright resume`, or `/mergewright tell TEXT` with "
        "what to do.",
        _INFO,
    ),
    Reason.NO_SLOT: Advice(
        "The session starts by itself when another session's program is stopped; an administrator "
        "can raise the limits (`[limits]`, `max-parallel`) and run `mergewright reload`.",
        _INFO,
    ),
    Reason.NO_MEMORY: Advice(
        "Free memory on the machine; the session then starts by itself.", _INFO
    ),
}


#: Statuses in which a person is to look at a session, whatever the reason but `CHAT_PAUSED`.
_CALLS: Final = (Status.NEEDS_INPUT, Status.STUCK, Status.PAUSED, Status.ERRORED)
_ACTS: Final = (Priority.URGENT, Priority.ACTION)


def needs_person(status: Status, reason: str) -> bool:
    """Whether a person is to look at a session, by its status or by the advice on its reason.

    Except for a chat at rest, every paused session counts, even if it resumes by itself.
    """
    if reason == Reason.CHAT_PAUSED:
        return False  # It rests until the person has something to say.
    if status in _CALLS or status in TERMINAL:
        return status in _CALLS
    advice = ADVICE.get(reason)
    return advice is not None and advice.priority in _ACTS


def advice_on(reason: str) -> str:
    """Return the remedy for a reason; empty if there is none, such as for normal work."""
    advice = ADVICE.get(reason)
    return advice.text if advice else ""
