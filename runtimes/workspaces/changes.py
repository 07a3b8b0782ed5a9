"""Lists changes in a workspace or on a branch, for people to read."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.refs import is_sha

_COMMITS = 250  #: The most commits of a branch that are listed.
#: The time limit. A page waits for the result, and the bot's work in the workspace may wait, too.
_SECONDS = 10.0


class WorkspaceChanges(Struct, frozen=True, kw_only=True):
    """The work in a workspace, as lines of git's output."""

    commits: tuple[str, ...]  #: `HASH SUBJECT` of each, oldest first; at most 250.
    uncommitted: tuple[str, ...]  #: Entries of `git status --porcelain`.


class Patch(Struct, frozen=True):
    """A patch as git prints it: hostile text."""

    text: str
    complete: bool  #: Whether `text` is the whole patch. If False, the rest is cut off.


def commits_between(run: Callable[..., str], base: str, head: str) -> list[str]:
    """Return lines `HASH SUBJECT` of the last 250 commits of `head` that `base` lacks.

    The oldest of them comes first. `run` is as in `patch_between`.
    """
    shown = ("--reverse", f"--max-count={_COMMITS}", "--format=%h %s")
    return run("log", *shown, f"{base}..{head}", "--").splitlines()


def patch_between(run: Callable[..., object], base: str, head: str, most: int) -> Patch:
    """Return what `head` changes since its merge base with `base`, in at most `most` bytes.

    `run` runs git in the mirror, or in a session's sandbox. Raises `GitFailure`, and `ValueError`
    if `base` or `head` is no full SHA.
    """
    if not is_sha(base) or not is_sha(head):
        raise ValueError(f"{base!r} or {head!r} is no commit")
    # A driver for files of some kind would be a program that an agent chose.
    how = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-relative")
    names = ("--src-prefix=a/", "--dst-prefix=b/", "--find-renames")
    commits = ("--merge-base", base, head, "--")
    with tempfile.NamedTemporaryFile(prefix="mw-") as file:
        patch, complete = Path(file.name), True
        try:
            command = ("diff", *how, *names, *commits)
            run(*command, into=patch, most=most, seconds=_SECONDS)
        except GitFailure as failure:
            if not failure.too_much:
                raise
            complete = False
        return Patch(patch.read_bytes()[:most].decode(errors="replace"), complete)
