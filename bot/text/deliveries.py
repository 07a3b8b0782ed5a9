"""Describes what followed from a webhook delivery, or why nothing did."""

from collections.abc import Mapping
from typing import Final

#: Why nothing followed from a delivery, by the values of `Ignored`.
_IGNORED: Final[Mapping[str, str]] = {
    "event": "the bot does not read this kind of event or action",
    "own": "the bot wrote this comment itself",
    "repository": "{repository} is not a configured project: add it to `[projects]`, or install the"
    " App there",
    "bot": "`policy.bots` does not list the bot that wrote this",
    "session": "no session works on what changed, and no label or assignee asks for one",
}
_SUBJECTS: Final[Mapping[str, str]] = {
    "issue": "issue #{name}",
    "pull": "pull request #{name}",
    "other": "pull request #{name}",
    "number": "#{name}",
    "session": "{name}",
    "branch": "branch {name}",
    "access": "people's permissions",
    "repository": "everything",
}


def why_ignored(reason: str, repository: str) -> str:
    """Return why nothing followed from a delivery; `reason` is a value of `Ignored`.

    `repository` is empty for a delivery that names none.
    """
    named = f"the repository {repository}" if repository else "its repository"
    return _IGNORED.get(reason, reason).replace("{repository}", named)


def refresh_words(repository: str, subject: str) -> str:
    """Return that the bot looks again at a subject, such as `issue:12`, on GitHub."""
    return f"look again at {subject_words(subject)} of {repository}"


def command_words(actor: str, command: str, subject: str) -> str:
    """Return who gave which command on which subject, such as `number:12`."""
    return f"@{actor} commands {command} on {subject_words(subject)}"


def subject_words(subject: str) -> str:
    """Return a subject in words: `issue #12` for `issue:12`."""
    kind, _, name = subject.partition(":")
    if kind == "sha":
        return f"commit {name[:7]}"
    return _SUBJECTS[kind].format(name=name) if kind in _SUBJECTS else subject
