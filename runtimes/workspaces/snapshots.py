"""Saves a checkout's files, also uncommitted ones, as a git tree, and restores saved files."""

from collections.abc import Mapping, Sequence

from runtimes.workspaces import preservable, repositories
from runtimes.workspaces.git import GitFailure
from runtimes.workspaces.session_git import SessionGit

#: Options with which a command takes its pathspecs, each ended by a NUL, from its input.
_FROM_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


def write_tree(git: SessionGit, status: Sequence[str]) -> str:
    """Write a tree of all files that git does not ignore, and return the tree.

    `status` has the entries of `git status --porcelain --untracked-files=all`. The index of the
    bot's repository is not changed. Raises `GitFailure`.
    """
    env = {"GIT_INDEX_FILE": str(git.copied_index("index.files"))}
    nested, paths = preservable.what_to_add(git.checkout, status)
    git.on_files("add", "--all", "--sparse", *_FROM_STDIN, env=env, stdin=paths)
    if nested:
        _add_nested(git, nested, env)
    return git("write-tree", env=env).strip()


def restore(git: SessionGit, commit: str, files: str) -> None:
    """Replace the files in a checkout of `commit` with saved files.

    `files` is the commit that contains the saved files. Raises `GitFailure`.
    """
    shown = ("--name-only", "--no-renames", "-z")
    if changed := git("diff", *shown, commit, files, errors="surrogateescape"):
        how = (f"--source={files}", "--worktree", "--ignore-skip-worktree-bits")
        git.on_files("restore", *how, *_FROM_STDIN, literal=True, stdin=changed)


def _add_nested(git: SessionGit, nested: Sequence[str], env: Mapping[str, str]) -> None:
    """Add files of repositories nested in the checkout; git would add only their commits."""
    files = [file for folder in nested for file in repositories.files_below(git.checkout, folder)]
    preservable.check_sizes(git.checkout, files)
    command = ("check-ignore", "-z", "--stdin")
    try:
        ignored = git.on_files(*command, env=env, stdin="\0".join(files))
    except GitFailure as failure:
        if failure.code != 1:
            raise
        ignored = ""  # No file is ignored.
    left_out = set(ignored.split("\0"))
    kept = "".join(f"{file}\0" for file in files if file not in left_out)
    git.on_files("update-index", "--add", "-z", "--stdin", env=env, stdin=kept)
