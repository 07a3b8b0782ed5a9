"""Checks commits before they are pushed: protected paths, skipped CI, secrets."""

import re
from collections.abc import Callable, Iterable

from runtimes.workspaces.git import git, pathspecs
from runtimes.workspaces.mirror import Mirror

#: GitHub runs no workflow for a push whose head commit has one of these words.
#: https://docs.github.com/en/actions/managing-workflow-runs/skipping-workflow-runs
_SKIPS = re.compile(
    r"\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\]|^skip-checks: *true *$",
    re.IGNORECASE | re.MULTILINE,
)


def touched(mirror: Mirror, base: str, there: str, head: str, paths: Iterable[str]) -> list[str]:
    """The files matching `paths` in which `head` differs from its base and from GitHub's branch.

    `base` is a commit of the base branch. `there` is the commit of the pushed branch, or empty:
    a change that a person pushed or allowed before is not reported again.
    """
    specs = pathspecs(paths)
    if not specs:
        return []
    changed = _differing(mirror, mirror.merge_base(base, head), head, specs)
    if there and changed:
        changed &= _differing(mirror, there, head, specs)
    return sorted(changed)


def skips_checks(mirror: Mirror, head: str) -> str:
    """Return the words in a commit message that make GitHub skip checks; empty if none do."""
    found = _SKIPS.search(git(mirror.path, "log", "-1", "--format=%B", head))
    return found[0].strip() if found else ""


def holds(mirror: Mirror, head: str, finds: Callable[[str], bool]) -> bool:
    """Whether `finds` matches in any commit that a push of `head` publishes."""
    # Of a merge commit only changes made by hand; the merged commits are in the log themselves.
    # `--text` includes files that git takes for binary.
    show = ("log", "--patch", "--remerge-diff", "--text", "--no-ext-diff", "--no-textconv")
    return finds(git(mirror.path, *show, "--format=raw", head, "--not", "--branches", "--"))


def _differing(mirror: Mirror, one: str, other: str, specs: list[str]) -> set[str]:
    names = git(mirror.path, "diff", "--name-only", "--no-renames", "-z", one, other, "--", *specs)
    return set(filter(None, names.split("\0")))
