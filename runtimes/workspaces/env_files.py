"""Puts files of the operator's into a workspace, such as `.env`, which git there ignores.

The bot's own git never sees them, whatever the agent does to the settings of its repository, so no
work that is preserved contains one. A commit that an agent forces is not pushed, because their
values are known secrets (`config.load`).
"""

import os
from collections.abc import Mapping

from runtimes.files import write_private
from runtimes.workspaces.repositories import exclude
from runtimes.workspaces.worktree import Worktree


def place_env_files(workspace: Worktree, files: Mapping[str, str]) -> None:
    """Write these files, by their paths in the checkout, unless there is something in their place.

    Nothing is followed or replaced that an agent put there. Raises `OSError`.
    """
    if not files:
        return
    exclude(workspace.repository, files)
    for name, text in files.items():
        if not os.path.lexists(workspace.path / name):
            write_private(workspace.path / name, text)
