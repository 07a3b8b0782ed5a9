"""Makes and removes the repositories and folders of a session's workspace."""

import os
import stat
import subprocess
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from runtimes.files import read_bytes, read_text, walk, write_private
from runtimes.host import WorkspaceOptions
from runtimes.workspaces.git import EMAIL, LOCAL_SECONDS, NETWORK_SECONDS, git, init
from runtimes.workspaces.refs import replace_file
from runtimes.workspaces.sparse import restrict

_NO_PUSH = "/dev/null/Mergewright pushes this branch by itself: commit, and leave the rest to it"
#: The agent's git runs this hook. The bot's git runs no hooks.
_SIGNS_OFF = """#!/bin/sh
exec git -c trailer.ifexists=addIfDifferent interpret-trailers --in-place --trailer \\
    "Signed-off-by: $(git var GIT_COMMITTER_IDENT | sed 's/>.*/>/')" "$1"
"""
_OBJECTS = "/repository.git/objects"
#: The author of the agent's commits.
_NAME = "Mergewright"
_EXCLUDE = "info/exclude"
#: The file that holds the boundary of a shallow repository: gitrepository-layout(5).
SHALLOW = "shallow"
#: The settings for Git LFS, which finds its files in `lfs/objects` of the repository whose objects
#: are borrowed.
_LFS = """[filter "lfs"]
clean = git-lfs clean -- %f
smudge = git-lfs smudgeOPTION -- %f
process = git-lfs filter-processOPTION
required = true
[lfs]
skipdownloaderrors = true
"""
_FILES = 10_000  #: The most files that are searched for locks.


def make_repository(
    repository: Path,
    checkout: Path,
    origin: Path,
    branch: str,
    start: str,
    options: WorkspaceOptions,
) -> None:
    """Make the agent's repository and checkout, with its branch at the commit `start`.

    `origin` is the project's mirror or, for a clone, the session's own copy of it. Raises
    `GitFailure` and `OSError`.
    """
    init(repository, borrow=(origin,))
    share_boundary(origin, repository)
    with (repository / "config").open("a") as config:
        config.write(
            f'[remote "origin"]\n'
            f"url = {_quoted(str(origin))}\n"
            f"pushurl = {_quoted(_NO_PUSH)}\n"
            f"fetch = +refs/heads/*:refs/remotes/origin/*\n"
            f"[user]\n"
            f"name = {_NAME}\n"
            f"email = {EMAIL}\n"
            f"[gc]\n"
            f"auto = 0\n"
        )
    if options.sign_off:
        hook = repository / "hooks" / "commit-msg"
        hook.parent.mkdir(mode=0o700)
        hook.write_text(_SIGNS_OFF)
        hook.chmod(0o700)
    _copy_branches(origin, repository)
    add = ("worktree", "add", "--quiet", "--no-checkout", "-b", branch, str(checkout), start)
    git(repository, *add)
    own = repository / "worktrees" / checkout.name
    restrict(repository, own, options.sparse)
    files = {"GIT_WORK_TREE": str(checkout)}
    git(own, "read-tree", "--reset", "-u", "HEAD", env=files, seconds=NETWORK_SECONDS)
    if options.lfs_max_mb:  # Not before: git would run its filters, outside of a sandbox.
        use_lfs(repository)


def _copy_branches(origin: Path, repository: Path) -> None:
    """Copy the branches of `origin` into an agent's new repository as remote-tracking branches.

    No objects are copied, because the new repository borrows those of `origin`. `git fetch` would
    have the same result, but write a file for each branch.
    """
    form = "--format=%(objectname) refs/remotes/origin/%(refname:lstrip=2)"
    # In order, and none of them is an annotated tag, so the header that git writes is true here.
    listed = git(origin, "for-each-ref", form, "refs/heads", errors="surrogateescape")
    text = f"# pack-refs with: peeled fully-peeled sorted \n{listed}"
    # As `git` decoded it, whatever the locale's encoding is.
    (repository / "packed-refs").write_text(text, encoding="utf-8", errors="surrogateescape")


def share_boundary(origin: Path, repository: Path) -> None:
    """Make an agent's repository as shallow as `origin`.

    Copies the file `shallow` of `origin`, or deletes that of the repository if `origin` has none.
    Raises `OSError`.
    """
    if (origin / SHALLOW).is_file():
        replace_file(repository, SHALLOW, read_bytes(origin / SHALLOW))
    else:
        (repository / SHALLOW).unlink(missing_ok=True)


def use_lfs(repository: Path, option: str = "") -> None:
    """Make git run git-lfs for the LFS files of a repository.

    `option` is for the filters of git-lfs: with "--skip" they write only pointers.
    """
    with (repository / "config").open("a") as config:
        config.write(_LFS.replace("OPTION", f" {option}" if option else ""))


def has_lfs(repository: Path) -> bool:
    """Whether `use_lfs` was called for a repository that only the bot configures."""
    return _LFS[:15] in read_text(repository / "config")


def exclude(repository: Path, names: Iterable[str]) -> None:
    """Have git in a repository ignore these untracked files: gitignore(5). Raises `OSError`."""
    before = read_text(repository / _EXCLUDE).splitlines()
    missing = [line for name in names if (line := f"/{name}") not in before]
    if missing:
        write_private(repository / _EXCLUDE, "".join(f"{line}\n" for line in (*before, *missing)))


def _quoted(value: str) -> str:
    """Quote a value for a git configuration file."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def checkout_of(root: Path, session: str) -> Path:
    """Return the folder in which a session's agent works; `root` is that of all workspaces."""
    return Path(os.path.realpath(root)) / session / "checkout"


def remove_locks(repository: Path) -> None:
    """Remove the locks of refs, indexes and settings that a killed git left in a repository.

    An agent's git fails at them. Call it only while no git runs there. Raises `OSError`.
    """
    for path, _ in islice(walk(repository, without="objects"), _FILES):
        if path.suffix == ".lock":  # No branch has such a name: git-check-ref-format(1).
            path.unlink(missing_ok=True)


def remove_tree(folder: Path) -> None:
    """Remove a folder, even if it is write-protected. Idempotent. Raises `OSError`.

    Uses `rm`, because `shutil.rmtree` fails for folders that are nested very deeply.
    """
    if not os.path.lexists(folder):
        return
    if _ran("rm", "-rf", folder):
        _ran("chmod", "-R", "u+rwx", folder)  # Some tools write-protect folders.
        if words := _ran("rm", "-rf", folder):
            raise OSError(f"{folder} cannot be removed: {words[:1000]}")


def _ran(program: str, option: str, *words: str | Path) -> str:
    """Run a program whose last argument is a folder; return its errors, empty if it succeeded."""
    command = (program, option, *words[:-1], "--", words[-1])
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    return done.stderr.strip() or program if done.returncode else ""


def pipe_of_git(*places: Path) -> str:
    """Return the path of a named pipe in these folders at which git would wait; else empty.

    The path is relative to the parent of the first folder. Git reads a checkout's files named
    `.git*` and below `.git`, and all of a repository's objects. Raises `OSError`, and
    `subprocess.TimeoutExpired` if there are too many files.
    """
    names = ("-name", ".git*", "-o", "-path", "*/.git/*", "-o", "-path", f"*{_OBJECTS}/*")
    if not (found := [*filter(Path.is_dir, places)]):
        return ""  # Without a folder `find` would search the bot's working directory.
    done = subprocess.run(
        ("find", *found, "-type", "p", "(", *names, ")", "-print", "-quit"),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=LOCAL_SECONDS,
    )
    return done.stdout.removeprefix(f"{places[0].parent}/").removesuffix("\n")


def files_below(root: Path, folder: str) -> Iterator[str]:
    """Yield files and links below `folder`, relative to `root`, without those in `.git`."""
    for path, status in walk(root / folder, without=".git"):
        if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            yield str(path.relative_to(root))
