"""What people can do about a reason, and whether trying again can help."""

from typing import Final, NamedTuple

from lifecycle.status import Reason


class Advice(NamedTuple):
    """A remedy in one sentence, and whether a retry may work without it."""

    remedy: str
    retryable: bool


ADVICE: Final = {
    Reason.PROVIDER_EXIT: Advice(
        "Read the agent's last words in its log, mend what they name, and put the label on again.",
        True,
    ),
    Reason.SPAWN_FAILED: Advice(
        "Mend what the message names (`mergewright doctor` checks the machine), then put the "
        "label on again.",
        True,
    ),
    Reason.BRANCH_GONE: Advice(
        "Push the branch to GitHub again and put the label on again, or open an issue for another "
        "try.",
        False,
    ),
    Reason.AUTH_FAILED: Advice("Give the agent a valid key or login, then restart it.", False),
    Reason.USAGE_LIMIT: Advice("Wait for the limit to reset, or raise it.", True),
    Reason.RUNTIME_LOST: Advice("Put the label on again; its branch and commits are kept.", True),
    Reason.MANUALLY_KILLED: Advice("Put the label on again to go on.", False),
    Reason.PR_CLOSED: Advice("Its branch is kept; open an issue for another try.", False),
    Reason.ISSUE_CLOSED: Advice("Reopen the issue and put the label on again to go on.", False),
    Reason.LABEL_REMOVED: Advice("Put the label on again to go on.", False),
    Reason.BUDGET_EXHAUSTED: Advice("Raise the budget, then resume the session.", False),
    Reason.TIMEOUT: Advice("Look at its terminal, then restart it.", True),
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
    Reason.PROBE_FAILURE: Advice("Run `mergewright doctor` and look at its terminal.", True),
    Reason.PUSH_REFUSED: Advice(
        "Mend what GitHub names, then write `/mergewright retry`; the commits are kept.", False
    ),
    Reason.ACTION_FAILED: Advice(
        "Mend what the message names, then write `/mergewright retry`.", True
    ),
    Reason.AGENT_QUESTION: Advice("Answer at its terminal.", False),
    Reason.AGENT_BLOCKED: Advice("Look at its terminal and clear what blocks it.", True),
    Reason.NO_PROGRESS: Advice("Look at its terminal; tell it how to go on, or stop it.", True),
    Reason.NOTHING_TO_SHOW: Advice(
        "Say more in the issue and start again, or close the issue.", False
    ),
    Reason.UNCOMMITTED_WORK: Advice(
        "Tell the agent what to do with its uncommitted work, or commit it at its terminal.", False
    ),
    Reason.PAUSED_BY_PERSON: Advice("Write `/mergewright resume` to go on.", False),
    Reason.PERSON_PUSHED: Advice(
        "Write `/mergewright resume`, or tell the agent what to do next.", False
    ),
    Reason.NO_MEMORY: Advice(
        "Free memory on the machine; it starts by itself once there is room.", True
    ),
}
