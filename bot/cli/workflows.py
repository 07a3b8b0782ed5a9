"""Which workflows of GitHub Actions hand secrets to whatever is pushed to a branch."""

import re
from typing import Final

#: Events that run a workflow for a branch which an agent's commits are on.
_EVENTS: Final = ("push", "pull_request", "pull_request_target", "create", "workflow_run")
_SECRET: Final = re.compile(r"\bsecrets\s*(?:\.\s*([A-Za-z_]\w*)|\[\s*['\"](\w+)['\"]\s*\])")
_ALL: Final = re.compile(r"^\s*secrets:\s*inherit\b", re.MULTILINE)
_COMMENT: Final = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)
#: `on` and what is indented below it; quoted by those who know that YAML reads it as true.
_TRIGGERS: Final = re.compile(
    r"^(['\"]?)on\1\s*:(.*\n?(?:(?:[ \t]+.*|[ \t]*)(?:\n|$))*)", re.MULTILINE
)
#: What is said of pushes, indented below.
_PUSH: Final = re.compile(r"^([ \t]+)push:[ \t]*\n((?:\1[ \t]+.*(?:\n|\Z))*)", re.MULTILINE)


def secrets_for_branches(workflow: str) -> list[str]:
    """The secrets that a workflow has when it runs for somebody's branch; `*` is all of them.

    What it cannot tell it takes for a yes. The token of the workflow's own run is none.
    """
    text = _COMMENT.sub("", workflow)
    triggers = _TRIGGERS.search(text)
    events = triggers[2] if triggers else ""
    push = _PUSH.search(events)
    if push and "branches:" in push[2] and "*" not in push[2]:
        events = events.replace(push[0], "")  # Only for branches that are listed by their names.
    if not re.search(rf"\b(?:{'|'.join(_EVENTS)})\b", events):
        return []
    named = {one or other for one, other in _SECRET.findall(text)} - {"GITHUB_TOKEN"}
    return sorted(named | ({"*"} if _ALL.search(text) else set()))
