"""What is looked at before commits go to GitHub, where a push alone may set much in motion."""

import re
from collections.abc import Callable, Iterable

from runtimes.workspaces.git import git
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.pathspecs import pathspecs

#: GitHub runs no workflow for a push whose newest commit says one of these, in any case.
_SKIPS = re.compile(
    r"\[(?:skip ci|ci skip|no ci|skip actions|actions skip)\]|^skip-checks: *true *$",
    re.IGNORECASE | re.MULTILINE,
)


def touched(mirror: Mirror, base: str, there: str, head: str, paths: Iterable[str]) -> list[str]:
    """Those of `paths` in which `head` differs from its base, and from what GitHub has.

    `base` is a commit of the base branch; `there` is the commit of the pushed branch, empty where
    there is none: what a person pushed or let pass before is not asked for again.
    """
    specs = pathspecs(paths)
    if not specs:
        return []
    changed = _differing(mirror, mirror.merge_base(base, head), head, specs)
    if there and changed:
        changed &= _differing(mirror, there, head, specs)
    return sorted(changed)


def skips_checks(mirror: Mirror, head: str) -> str:
    """The words by which a commit keeps GitHub from running checks; empty: there are none."""
    found = _SKIPS.search(git(mirror.path, "log", "-1", "--format=%B", head))
    return found[0].strip() if found else ""


def holds(mirror: Mirror, head: str, finds: Callable[[str], bool]) -> bool:
    """Whether what a push makes public, every commit of it, has something that must not be."""
    # Of a merge what was changed by hand; what came with it is told by its own commits. What git
    # takes for no text is looked through all the same.
    show = ("log", "--patch", "--remerge-diff", "--text", "--no-ext-diff", "--no-textconv")
    return finds(git(mirror.path, *show, "--format=raw", head, "--not", "--branches", "--"))


def _differing(mirror: Mirror, one: str, other: str, specs: list[str]) -> set[str]:
    names = git(mirror.path, "diff", "--name-only", "--no-renames", "-z", one, other, "--", *specs)
    return set(filter(None, names.split("\0")))
