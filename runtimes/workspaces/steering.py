"""Files that steer agents (their instructions, settings, tools), held as the base branch has them.

A run that was talked into something could leave orders there for the next one. So they are put
back before each run, and until the next one what was put back counts as no change of the work.
"""

from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from runtimes.workspaces.pathspecs import pathspecs


class Steering:
    """The steering files of one checkout, for whoever holds its view."""

    def __init__(self, view: Path, git: Callable[..., str]) -> None:
        """`git` runs in the bot's repository `view`, on the files of the checkout."""
        self._git = git
        self._note = view / "steering"  #: The commit they are held at, then the patterns.
        self._index = view / "index.steering"
        self._env = {"GIT_INDEX_FILE": str(self._index)}

    def hold(self, commit: str, patterns: Iterable[str]) -> bool:
        """Say how they are to stand: as in a commit. Whether any of them is not committed."""
        self._git("read-tree", commit, env=self._env)
        self._note.write_text("\n".join((commit, *patterns)))
        return bool(self._uncommitted())

    def put_back(self, head: str) -> list[str]:
        """Have them stand as they are to. Returns those that are committed otherwise in `head`.

        What stands in the way is removed; links are replaced, never followed. Where nothing of it
        is committed otherwise, nothing has to be held any more.
        """
        commit, patterns = self._held()
        specs = pathspecs(patterns)
        if changed := self._changed():
            literal = {**self._env, "GIT_LITERAL_PATHSPECS": "1"}
            self._git("clean", "--quiet", "-ffdx", "--", *changed, env=literal)
            known = self._git("ls-files", "-z", "--", *specs, env=self._env)
            self._git("checkout-index", "--force", "-z", "--stdin", env=self._env, stdin=known)
        told = self._git("diff", "--no-renames", "--name-only", "-z", commit, head, "--", *specs)
        if not told:
            self._note.unlink()
            self._index.unlink()
        return _split(told)

    def status(self, untracked: str) -> list[str]:
        """What differs from the branch's commit, but for what stands as it is to be held."""
        _, patterns = self._held()
        others = pathspecs(patterns, "exclude")
        found = self._status(f"--untracked-files={untracked}", "--", ".", *others)
        return [*found, *self._uncommitted()] if patterns else found

    def _uncommitted(self) -> list[str]:
        """Of what is to be held, what stands neither so nor as it is committed."""
        _, patterns = self._held()
        own = self._status("--untracked-files=all", "--", *pathspecs(patterns))
        changed = set(self._changed()) if own else set()
        return [entry for entry in own if entry[3:] in changed]

    def _changed(self) -> list[str]:
        """Files that stand otherwise than they are to."""
        _, patterns = self._held()
        shown = ("--untracked-files=all", "--ignored=matching")
        told = self._status(*shown, "--", *pathspecs(patterns), env=self._env)
        # The first sign of an entry is about the branch's commit. What is ignored is shown as the
        # folder that is, also where something else of it may match.
        return [
            entry[3:]
            for entry in told
            if entry[1] != " " and (not entry.endswith("/") or _means(patterns, entry[3:-1]))
        ]

    def _held(self) -> tuple[str, list[str]]:
        """The commit and the patterns."""
        if not self._note.is_file():
            return "", []
        commit, *patterns = self._note.read_text().split("\n")
        return commit, patterns

    def _status(self, *args: str, **more: Any) -> list[str]:
        shown = ("--porcelain", "-z", "--no-renames", "--ignore-submodules=all")
        return _split(self._git("status", *shown, *args, **more))


def _means(patterns: Iterable[str], folder: str) -> bool:
    """Whether one of the patterns is about the whole of a folder."""
    names = [pattern.removesuffix("/**").lower() for pattern in patterns]
    return any(fnmatchcase(folder.lower(), name) for name in names)


def _split(told: str) -> list[str]:
    return [entry for entry in told.split("\0") if entry]
