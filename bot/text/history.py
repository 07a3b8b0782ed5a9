"""Describes actions and history events in words."""

from collections.abc import Mapping
from typing import Any, Final

from lifecycle.model import actions as do
from lifecycle.model.status import Origin
from lifecycle.model.text import counted

_EVENTS: Final[Mapping[str, str]] = {
    "created": "Issue #{issue} given to the agent {agent}: {title}",
    "command": "{kind} {text}",
    "observed": "{changes}",
    "slot": "The limits of concurrent sessions allow the agent to run now",
    "decision": "{because}",
    "done": "{action}: {result}",
    "failed": "{action}: {error}",
    "withdrawn": "{action}: no longer needed",
    "freeze": "Frozen: {scope}",
    "unfreeze": "Unfrozen: {scope}",
    "metadata": "Metadata set: {keys}",
    "keys": "{characters} typed into the terminal",
}

_ACTIONS: Final[Mapping[type, str]] = {
    do.Start: "Start the agent",
    do.SendMessage: "Send a message to the agent",
    do.PressKeys: "Type into the terminal",
    do.Publish: "Push commits",
    do.AdoptCommits: "Move the agent's commits to the session's branch",
    do.MergeRemote: "Merge remote commits into the workspace",
    do.UpdateBranch: "Update the branch from its base",
    do.Rerun: "Rerun checks",
    do.OpenPull: "Open the pull request",
    do.MakeReady: "Mark the pull request ready for review",
    do.RequestReview: "Request reviews",
    do.Comment: "Post a comment",
    do.Report: "Update the status comment",
    do.ReportCheck: "Update the check run",
    do.ReportConfiguration: "Report the problems of the repository's configuration file",
    do.ShowStatus: "Update the status label",
    do.Label: "Update the attention label",
    do.React: "React to a comment",
    do.Reply: "Reply to review threads",
    do.MergePull: "Merge the pull request",
    do.Enqueue: "Add to the merge queue",
    do.Dequeue: "Remove from the merge queue",
    do.CloseIssue: "Close the issue",
    do.DeleteBranch: "Delete the branch",
    do.Stop: "Stop the agent",
    do.Release: "Remove the workspace",
}


def describe_action(action: do.Action) -> str:
    """Return a short phrase for the kind of an action, such as "Merge the pull request"."""
    phrase = _ACTIONS[type(action)]
    if isinstance(action, do.Start) and action.permission_mode:
        return f"{phrase} with permission mode {action.permission_mode}"
    return phrase


def characters(count: int) -> str:
    """Return how much a person typed, in words; a key such as Enter counts as a character."""
    return counted(count, "character")


def describe_event(kind: str, data: Mapping[str, Any], actions: Mapping[str, str]) -> str:
    """Return the sentence for a row of the history, from the row's kind and data.

    `actions` maps action keys to phrases. A key without a phrase is shown unchanged.
    """
    values = dict(data)
    if kind == "observed":
        values["changes"] = "; ".join(data.get("changes", ()))
    if "count" in data:
        values["characters"] = characters(data["count"])
    if "dropped" in data:
        says = "What {by} typed ({characters}) may not have reached the terminal: {dropped}"
        return says.format_map(values)
    if "action" in data:
        values["action"] = actions.get(data["action"], data["action"])
    if "scope" in data:
        values["scope"] = data["scope"].replace(":", " ") or "everything"
    if "keys" in data:
        values["keys"] = ", ".join(data["keys"])
    if kind == "created" and not values["issue"]:
        if values.get("origin") == Origin.PULL:
            return "Pull request given to the agent {agent}: {title}".format_map(values)
        if values.get("origin") == Origin.CHAT:
            return "Chat with the agent {agent} opened: {title}".format_map(values)
        return "Prompt given to the agent {agent}: {title}".format_map(values)
    return _EVENTS[kind].format_map(values).rstrip(": ")
