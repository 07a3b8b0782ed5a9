"""Puts the operator's files, such as `.env`, into a workspace, where git ignores them.

The bot's own git ignores them too, whatever the agent changes in the settings of its repository, so
preserved work never contains them. If an agent commits such a file nevertheless, the commit is not
pushed, because the values in the file are known secrets (`config.load`).
"""

import os
from collections.abc import Mapping

from runtimes.files import write_private
from runtimes.workspaces.repositories import exclude
from runtimes.workspaces.worktree import Worktree


def place_env_files(workspace: Worktree, files: Mapping[str, str]) -> None:
    """Write the contents in `files` to their paths in the checkout, except to existing paths.

    Links and files that an agent put there are neither followed nor replaced. Raises `OSError`.
    """
    if not files:
        return
    exclude(workspace.repository, files)
    for name, text in files.items():
        if not os.path.lexists(workspace.path / name):
            write_private(workspace.path / name, text)
