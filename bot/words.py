"""Every sentence that is posted where people read it."""

import re
from collections.abc import Mapping
from typing import Final

_ZERO_WIDTH = "\u200b"

TOPICS: Final[Mapping[str, str]] = {
    "started": (
        "**{agent}** is at work on this, on the branch `{branch}` (session `{session}`). "
        "Take the label off or write `/mergewright stop` to end it."
    ),
    "ready": (
        "{sha} is green, reviewed and clean to merge. Write `/mergewright merge` to have it merged."
    ),
    "attention": "Session `{session}` needs a person: {because}.\n\n{remedy}",
    "ended": "Session `{session}` has ended as **{status}**: {because}.\n\n{remedy}",
    "done_in": "Done in {sha}.",
    "help": "{text}",
}


def say(topic: str, values: Mapping[str, str]) -> str:
    """The sentence of a topic. Values that others wrote can neither mention nor command."""
    return TOPICS[topic].format(**{name: harmless(text) for name, text in values.items()}).strip()


_COMMAND = re.compile(r"^(\s*)([/@])(mergewright\b)", re.IGNORECASE | re.MULTILINE)
_MENTION = re.compile(r"@(?=[A-Za-z0-9])")
_CLOSING = re.compile(
    r"\b(close[sd]?|fix(?:e[sd])?|resolve[sd]?)(:?\s+)"
    r"(?=(?:[\w.-]+/[\w.-]+)?#\d|gh-\d|https?://)",
    re.IGNORECASE,
)


def harmless(text: str) -> str:
    """Text an agent or a program wrote, so that GitHub does not act on it.

    Mentions, closing keywords and commands keep their looks and lose their effect; see GitHub's
    "Linking a pull request to an issue" for the keywords.
    """
    text = _COMMAND.sub(rf"\1\2{_ZERO_WIDTH}\3", text)
    text = _MENTION.sub(f"@{_ZERO_WIDTH}", text)
    return _CLOSING.sub(rf"\1{_ZERO_WIDTH}\2", text)


def pull_title(issue_title: str, subjects: list[str]) -> str:
    """The pull request's title: the one commit's subject, or the issue's title."""
    title = subjects[0] if len(subjects) == 1 and subjects[0] else issue_title
    return harmless(" ".join(title.split()))[:200] or "Work of an agent"


def pull_body(issue: int, agent: str, requester: str, summary: str, subjects: list[str]) -> str:
    """The pull request's text: what was done, for which issue, at whose request."""
    told = harmless(summary).strip() or "\n".join(f"- {harmless(line)}" for line in subjects)
    asked = f", asked for by {_ZERO_WIDTH}@{_ZERO_WIDTH}{requester}" if requester else ""
    return f"{told}\n\nCloses #{issue}\n\nWritten by the agent `{agent}`{asked}.".strip()


def merge_title(title: str, number: int) -> str:
    """The merge commit's first line."""
    return f"{harmless(' '.join(title.split()))[:200]} (#{number})"


def merge_message(issue: int, subjects: list[str]) -> str:
    """The merge commit's text: the commits it brings, and nothing GitHub would act on."""
    return "\n".join(f"* {harmless(line)}" for line in subjects) + f"\n\nCloses #{issue}"
