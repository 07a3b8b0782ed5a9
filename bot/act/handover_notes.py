"""What a run is told that remembers nothing of those before it: all that was written down since."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from lifecycle.model.actions import Prompt
from runtimes.agents.shared.files import read_text
from runtimes.workspaces.worktree import Worktree

#: So many characters of the progress file are told, and so many commits and files, the last ones.
_MOST_OF_PROGRESS, _MOST_LINES = 8_000, 30


def notes(
    progress: Path, workspace: Worktree, base: str, waiting: Iterable[Mapping[str, str]]
) -> Prompt:
    """The prompt with what the agent before wrote, its commits, its files, what waits for it.

    `base` is the commit its work begins at; `waiting` is as in `lifecycle.model.actions.Start`.
    """
    changes = workspace.changes(base)
    values = {
        "progress": _written(progress),
        "commits": _last(changes.commits),
        "uncommitted": _last(changes.uncommitted),
    }
    return Prompt(name="notes", values=values, items=tuple(waiting))


def _written(progress: Path) -> str:
    if progress.parent.is_symlink():  # It may lead anywhere, out of a sandbox too.
        return ""
    return read_text(progress)[-_MOST_OF_PROGRESS:]


def _last(lines: Sequence[str]) -> str:
    left_out = len(lines) - _MOST_LINES
    more = [f"({left_out} more before these)"] if left_out > 0 else []
    return "\n".join([*more, *lines[-_MOST_LINES:]])
