"""Finds reasons to have a person review commits before they are pushed.

Every function except `removed_commits` examines the commits that a push publishes, which are those
on no branch of GitHub.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from runtimes.workspaces.commit_log import Commit, read_log
from runtimes.workspaces.git import git
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.push_checks import finds_in, published_patches

_MEGABYTE = 1_000_000
#: A longer line is examined in pieces of this size, each with the end of the one before.
_PIECE_BYTES = 1_000_000
_OVERLAP_BYTES = 1_000
#: The header of a file's new state, whose name git quotes if it contains unusual characters.
_FILES = (b"+++ b/", b'+++ "b/')


class LargeFile(NamedTuple):
    """A file that is larger than allowed."""

    path: str
    size: int  #: In bytes.


class ForeignCommit(NamedTuple):
    """A commit whose author or committer is neither the bot nor in `policy.commit-authors`."""

    sha: str
    name: str  #: Of the foreign author or committer.
    email: str


class SuspiciousPlace(NamedTuple):
    """A place in a commit that looks like a secret."""

    sha: str
    path: str  #: If empty, the commit's message.


def large_files(mirror: Mirror, head: str, megabytes: int) -> list[LargeFile]:
    """Return the files that a push of `head` publishes and that are too large, the largest first.

    These are files of more than `megabytes` (of 1,000,000 bytes).
    """
    listed = git(mirror.path, "rev-list", "--objects", head, "--not", "--branches")
    shown = "--batch-check=%(objecttype) %(objectsize) %(rest)"
    found = []
    for line in _lines(git(mirror.path, "cat-file", shown, stdin=listed)):
        kind, size, *path = line.split(" ", 2)
        if kind == "blob" and int(size) > megabytes * _MEGABYTE:
            found.append(LargeFile(path[0] if path else "a file", int(size)))
    return sorted(found, key=lambda one: -one.size)


def foreign_commits(
    commits: Sequence[Commit], is_ours: Callable[[str], bool], committer: str = ""
) -> list[ForeignCommit]:
    """Return the commits whose author or committer has an email that `is_ours` rejects.

    `committer` is an email that is accepted for a committer, but not for an author. The newest
    commit comes first.
    """
    return [
        ForeignCommit(one.sha, *(one.committer if is_ours(one.by.email) else one.by))
        for one in reversed(commits)
        if not is_ours(one.by.email)
        or (one.committer.email != committer and not is_ours(one.committer.email))
    ]


def removed_commits(
    mirror: Mirror,
    there: str,
    head: str,
    base: str,
    is_ours: Callable[[str], bool],
    committer: str = "",
) -> list[ForeignCommit]:
    """Return others' commits in `there` but not in `head`, which a push would remove.

    `there` is the commit of GitHub's branch. Merges, commits of `base` and the agent's own commits,
    which it may rebase, are ignored; `is_ours` and `committer` are as in `foreign_commits`.
    """
    removed = read_log(mirror.path, there, "--no-merges", "--not", head, base)
    return foreign_commits(removed, is_ours, committer)


def suspicious_places(
    mirror: Mirror, commits: Sequence[Commit], suspects: Callable[[str], bool]
) -> list[SuspiciousPlace]:
    """Return the places where `suspects` matches an added line or a line of a commit's message.

    Each place is returned once: a file in a commit, or the message of a commit.
    """
    # Without context they are smaller than the patches whose size `push_checks.holds` has limited.
    names = ("--src-prefix=a/", "--dst-prefix=b/", "--unified=0")
    form = "--format=commit %H%n%w(0,4,4)%B"
    with published_patches(mirror, commits, *names, form) as files:
        return list(dict.fromkeys(place for file in files for place in _suspicious(file, suspects)))


def _suspicious(lines: BinaryIO, suspects: Callable[[str], bool]) -> Iterator[SuspiciousPlace]:
    sha = path = ""
    added, before = False, b""  # Of a line that is longer than a piece.
    header = False  # An added line may look like one of a file's header.
    while piece := lines.readline(_PIECE_BYTES):
        if before:
            pass
        elif piece.startswith(b"commit "):
            sha, path, added = piece.split()[1].decode(), "", False
        elif piece.startswith((b"diff ", b"@@ ")):
            header, added = piece.startswith(b"diff "), False
        elif header and piece.startswith(_FILES):
            path, added = _path(piece), False
        else:
            added = piece.startswith((b"+", b"    "))
        if added and finds_in((before + piece).decode(errors="replace"), suspects):
            yield SuspiciousPlace(sha, path)
        before = b"" if piece.endswith(b"\n") else piece[-_OVERLAP_BYTES:]


def _path(header: bytes) -> str:
    """Return the path in the header of a file's new state.

    Quoted names are explained at https://git-scm.com/docs/git-config ("core.quotePath").
    """
    name = header.removeprefix(b"+++ ").rstrip(b"\t\n")  # A tab follows a name with spaces.
    if name.startswith(b'"'):
        # A name that is longer than a piece may be cut within a quoted character.
        name = name[1:-1].decode("unicode_escape", "replace").encode("latin-1", "replace")
    return name.removeprefix(b"b/").decode(errors="replace")


def _lines(text: str) -> list[str]:
    """Return the lines of git's output. `str.splitlines` would split within some names."""
    return text.removesuffix("\n").split("\n") if text else []
