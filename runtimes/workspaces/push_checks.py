"""Checks commits before they are pushed: protected paths, encodings, skipped CI, secrets."""

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from runtimes.workspaces.commit_log import Commit
from runtimes.workspaces.git import GitFailure, git, pathspecs
from runtimes.workspaces.mirror import Mirror

#: GitHub runs no workflow for a push whose head commit has one of these words.
#: https://docs.github.com/en/actions/managing-workflow-runs/skipping-workflow-runs
_SKIPS = re.compile(
    r"\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\]|^skip-checks: *true *$",
    re.IGNORECASE | re.MULTILINE,
)

_UTF8 = ("utf-8", "utf8")
_ENCODING_CHARACTERS = 40
#: Options of `git log` for the patches of merge commits. The log has the merged commits themselves,
#: so only changes made by hand are needed. For a merge of more than two commits git does not show
#: these (measured with 2.39), so such a merge gets the whole patch to its first parent.
_MERGES = ("--max-parents=2", "--remerge-diff")
_OCTOPUS_MERGES = ("--min-parents=3", "--diff-merges=first-parent")
#: Patches of more bytes are not searched, and so not pushed.
_PATCH_BYTES = 256 * 1024**2
#: A patch is searched in parts of this size. They overlap by more than the length of any secret.
_PART_BYTES, _OVERLAP_BYTES = 4 * 1024**2, 256 * 1024


class PatchTooLarge(Exception):
    """The patches of the commits are larger than `megabytes` (MiB), and so not checked."""

    def __init__(self, megabytes: int) -> None:
        self.megabytes = megabytes
        super().__init__(f"more than {megabytes} MB")


def touched(mirror: Mirror, base: str, there: str, head: str, paths: Iterable[str]) -> list[str]:
    """Return the files matching `paths` that `head` changes from its merge base with `base`.

    `base` is a commit of the base branch. `there` is the commit of the session's branch on GitHub,
    empty if the branch was not pushed. Files that `head` and `there` have alike are omitted: their
    changes were pushed by a person or allowed before.
    """
    specs = pathspecs(paths)
    if not specs:
        return []
    changed = _differing(mirror, mirror.merge_base(base, head), head, specs)
    if there and changed:
        changed &= _differing(mirror, there, head, specs)
    return sorted(changed)


def foreign_encoding(commits: Iterable[Commit]) -> str:
    """Return a text about the first commit that names an encoding other than UTF-8.

    The text names the commit and its encoding; it is empty if there is no such commit. Git converts
    a message from the encoding that its commit names, but GitHub does not. So with `IBM037` or
    `UTF-16`, the other checks would read another message than GitHub shows. See "Discussion" in
    https://git-scm.com/docs/git-commit
    """
    for one in commits:
        if one.encoding and one.encoding.lower() not in _UTF8:
            named = one.encoding[:_ENCODING_CHARACTERS]
            return f"commit {one.sha[:7]} declares the message encoding {named}"
    return ""


def skips_checks(mirror: Mirror, head: str) -> str:
    """Return the words in the message of `head` that make GitHub skip checks, if any."""
    found = _SKIPS.search(git(mirror.path, "log", "-1", "--format=%B", head))
    return found[0].strip() if found else ""


def holds(mirror: Mirror, commits: Sequence[Commit], finds: Callable[[str], bool]) -> bool:
    """Whether `finds` is true for any part of the messages and patches of these commits.

    The patches are searched in overlapping parts, to save memory. Raises `PatchTooLarge` if one of
    the files of `published_patches` has more than 256 MiB.
    """
    try:
        with published_patches(mirror, commits, "--format=raw", most=_PATCH_BYTES) as files:
            return any(finds_in(part, finds) for file in files for part in parts(file))
    except GitFailure as failure:
        if failure.too_much:
            raise PatchTooLarge(_PATCH_BYTES // 1024**2) from None
        raise


@contextmanager
def published_patches(
    mirror: Mirror, commits: Sequence[Commit], *options: str, most: int = 0
) -> Iterator[tuple[BinaryIO, ...]]:
    """Open files with the log and the patches of `commits`, which are all that a push publishes.

    `Mirror.commits` returns such commits. `options` are further options of `git log`. `most` limits
    each file in bytes; 0 means no limit. Raises `GitFailure`.
    """
    kinds = [_MERGES] if commits else []
    if any(one.parents > 2 for one in commits):
        kinds.append(_OCTOPUS_MERGES)
    # `--text` includes files that git takes for binary.
    show = ("log", "--patch", "--text", "--no-ext-diff", "--no-textconv", *options)
    with (
        tempfile.TemporaryDirectory(dir=mirror.path, prefix="tmp_") as folder,
        ExitStack() as files,
    ):
        opened = list[BinaryIO]()
        for number, merges in enumerate(kinds):
            patches = Path(folder, str(number))
            git(
                mirror.path,
                *(*show, *merges, commits[-1].sha, "--not", "--branches", "--"),
                into=patches,
                most=most,
            )
            opened.append(files.enter_context(patches.open("rb")))
        yield tuple(opened)


def parts(file: BinaryIO) -> Iterator[str]:
    """Yield the text of a file in parts, each beginning with the end of the part before it."""
    before = b""
    while data := file.read(_PART_BYTES):
        yield (before + data).decode(errors="replace")
        before = data[-_OVERLAP_BYTES:]


def finds_in(text: str, finds: Callable[[str], bool]) -> bool:
    """Whether `finds` is true for a text, or for the text without NULs, which UTF-16 contains."""
    return finds(text) or ("\0" in text and finds(text.replace("\0", "")))


def _differing(mirror: Mirror, one: str, other: str, specs: list[str]) -> set[str]:
    names = git(mirror.path, "diff", "--name-only", "--no-renames", "-z", one, other, "--", *specs)
    return set(filter(None, names.split("\0")))
