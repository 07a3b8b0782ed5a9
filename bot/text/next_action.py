"""The texts of the next action for a session: sentences, and labels of buttons and links."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from lifecycle.model.names import MAKES_PULL
from lifecycle.model.status import Status


class ButtonWords(NamedTuple):
    """The label of a command's button, and the effect that a person has to confirm."""

    label: str
    confirm: str = ""  #: What the command does that cannot be undone; if empty, no confirmation.


#: The buttons of commands, by name.
BUTTONS: Final[Mapping[str, ButtonWords]] = {
    "allow": ButtonWords(
        "Allow the push", "This pushes these commits to GitHub, where others can read them."
    ),
    "answer": ButtonWords("Answer"),
    "budget": ButtonWords("Raise the budget by $5"),
    "freeze": ButtonWords("Freeze"),
    "merge": ButtonWords(
        "Merge",
        "This merges the pull request as soon as nothing blocks it, which cannot be undone.",
    ),
    "pause": ButtonWords("Pause"),
    MAKES_PULL: ButtonWords(
        "Make a pull request",
        "The agent is asked to commit its work, which is then pushed to GitHub, where others can"
        " read it. The session cannot become a chat again.",
    ),
    "restart": ButtonWords(
        "Restart",
        "This ends the agent's program, and what it is doing is lost; commits and files stay.",
    ),
    "resume": ButtonWords("Resume"),
    "retry": ButtonWords("Retry failed actions"),
    "start": ButtonWords("Start again"),
    "stop": ButtonWords(
        "Stop",
        "This ends the session and the agent's program. Commits and the pull request stay; what the"
        " agent is doing now is lost.",
    ),
    "tell": ButtonWords("Send message"),
    "unfreeze": ButtonWords("Unfreeze"),
}
ANSWER: Final = "Answer the question"
MESSAGE: Final = "Write to the agent"
TALK: Final = "Open the terminal"
LOOK: Final = "Look at the terminal"

#: The next step of a chat whose agent waits for no answer.
IN_CHAT: Final = (
    "No action is required. To talk to the agent, open its terminal or send it a message."
)
#: The next step of a frozen session.
FROZEN: Final = "Nothing happens here until the freeze is undone."
#: The next step of a session whose project is only observed.
OBSERVED: Final = 'Nothing: the bot only observes this project (`policy.mode = "observe"`).'
#: The next step of a session that waits for no person, by its status.
BY_ITSELF: Final[Mapping[str, str]] = {
    Status.QUEUED: "The session starts by itself once the reason for its wait is gone.",
    Status.SPAWNING: "Nothing to do: the agent is being started.",
    Status.WORKING: "Nothing to do: the session continues by itself.",
    Status.PR_OPEN: "See what blocks the merge: it may need a person.",
    Status.CI_FAILED: "Nothing to do: the agent fixes the failed checks.",
    Status.CHANGES_REQUESTED: "The agent addresses the review; after its push, the reviewers review"
    " again on GitHub.",
    Status.REVIEW_PENDING: "Review the pull request on GitHub.",
    Status.APPROVED: "See what blocks the merge: it may need a person.",
    Status.MERGEABLE: "Nothing to do: Mergewright merges the pull request.",
    Status.CLEANUP: "Nothing to do: the session is ending.",
    Status.MERGED: "Done: the pull request is merged.",
    Status.DONE: "Done: nothing more happens here.",
}


def allow(head: str) -> str:
    """Return the label of the button that allows the push of the held commit `head`."""
    return f"Allow the push of {head[:7]}"


def open_pull(number: int) -> str:
    """Return the label of a link to a pull request."""
    return f"Open pull request #{number}"
