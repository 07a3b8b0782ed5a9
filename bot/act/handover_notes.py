"""The message to a run that knows nothing of earlier runs: what they wrote, committed and left."""

from collections.abc import Iterable, Mapping, Sequence

from lifecycle.model.actions import Prompt
from runtimes.workspaces.base import WorkspaceChanges

#: The last so many characters of the progress file, commits and files are sent.
_MOST_OF_PROGRESS, _MOST_LINES = 8_000, 30


def notes(progress: str, changes: WorkspaceChanges, waiting: Iterable[Mapping[str, str]]) -> Prompt:
    """The prompt with the earlier agent's progress file, its commits and files, and open messages.

    `waiting` is as in `lifecycle.model.actions.Start`.
    """
    values = {
        "progress": progress[-_MOST_OF_PROGRESS:],
        "commits": _last(changes.commits),
        "uncommitted": _last(changes.uncommitted),
    }
    return Prompt(name="notes", values=values, items=tuple(waiting))


def _last(lines: Sequence[str]) -> str:
    left_out = len(lines) - _MOST_LINES
    more = [f"({left_out} more before these)"] if left_out > 0 else []
    return "\n".join([*more, *lines[-_MOST_LINES:]])
