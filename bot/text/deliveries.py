"""Describes the effects of a webhook delivery, or why it had none."""

from collections.abc import Mapping
from typing import Final

#: Why a delivery had no effect, by the values of `Ignored`.
_IGNORED: Final[Mapping[str, str]] = {
    "event": "the bot does not read this kind of event or action",
    "own": "the bot wrote this comment itself",
    "repository": "{repository} is not a project here: add it as a table `[projects.NAME]` or, for"
    " an App, to the setting `installation.repositories`",
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
    """Say why a delivery had no effect. `reason` is a value of `Ignored`.

    `repository` is empty if the delivery names no repository.
    """
    named = f"the repository {repository}" if repository else "its repository"
    return _IGNORED.get(reason, reason).replace("{repository}", named)


def refresh_words(repository: str, subject: str) -> str:
    """Say that the bot reads a subject, such as `issue:12`, again from GitHub."""
    return f"the bot reads {subject_words(subject)} of {repository} again"


def command_words(actor: str, command: str, subject: str) -> str:
    """Say who gave which command on which subject, such as `number:12`."""
    return f"@{actor} gave the command `{command}` on {subject_words(subject)}"


def subject_words(subject: str) -> str:
    """Return a subject in words: `issue #12` for `issue:12`."""
    kind, _, name = subject.partition(":")
    if kind == "sha":
        return f"commit {name[:7]}"
    return _SUBJECTS[kind].format(name=name) if kind in _SUBJECTS else subject
