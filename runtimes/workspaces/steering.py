"""Keeps files that steer agents (instructions, settings, tools) as they were at the merge base.

The merge base is the commit at which the session's branch left the base branch.

A run under the influence of a prompt injection could leave instructions for the next run in such
files. So they are restored before each run, and until the next run the restored state does not
count as a change.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from runtimes.workspaces.git import pathspecs
from runtimes.workspaces.session_git import SessionGit


class Steering:
    """The steering files of one checkout; the caller holds the lock of the bot's repository."""

    def __init__(self, note: Path, git: SessionGit) -> None:
        """`note` is the path of the file in which `hold` records its arguments.

        `git` runs commands on the checkout's files, in the bot's repository of the session.
        """
        self._git, self._leave_out = git.on_files, git.leave_out
        self._note = note
        self._index = git.view / "index.steering"
        self._env = {"GIT_INDEX_FILE": str(self._index)}

    def hold(self, commit: str, patterns: Iterable[str]) -> bool:
        """Have `put_back` restore the files that match `patterns` to their versions in `commit`.

        This class calls these files the held files. Returns True if a held file has uncommitted
        changes that `put_back` would lose.
        """
        self._git("read-tree", commit, env=self._env)
        self._leave_out(self._env)
        self._note.write_text("\n".join((commit, *patterns)))
        return bool(self._uncommitted())

    def put_back(self, head: str) -> list[str]:
        """Restore the held files to their versions in the commit that `hold` was given.

        Files in the way are removed; links are replaced, not followed. Returns the held files that
        differ between that commit and `head`. If there are none, no files are held any more.
        """
        commit, patterns = self._held()
        specs = pathspecs(patterns)
        if changed := self._changed():
            clean = ("clean", "--quiet", "-ffdx", "--", *changed)
            self._git(*clean, env=self._env, literal=True)
            known = self._git("ls-files", "-z", "--", *specs, env=self._env)
            self._git("checkout-index", "--force", "-z", "--stdin", env=self._env, stdin=known)
        changed_files = self._git(
            "diff", "--no-renames", "--name-only", "-z", commit, head, "--", *specs
        )
        if not changed_files:
            self._note.unlink()
            self._index.unlink()
        return _split(changed_files)

    def status(self, untracked: str) -> list[str]:
        """Return `git status` entries, except those of held files in their restored state.

        `untracked` is the value of `--untracked-files`.
        """
        _, patterns = self._held()
        others = pathspecs(patterns, "exclude")
        found = self._status(f"--untracked-files={untracked}", "--", ".", *others)
        return [*found, *self._uncommitted()] if patterns else found

    def _uncommitted(self) -> list[str]:
        """Return `git status` entries of steering files whose changes `put_back` would lose.

        Such a file differs from both HEAD and the commit given to `hold`.
        """
        _, patterns = self._held()
        own = self._status("--untracked-files=all", "--", *pathspecs(patterns))
        changed = set(self._changed()) if own else set()
        return [entry for entry in own if entry[3:] in changed]

    def _changed(self) -> list[str]:
        """Return the steering files in the checkout that differ from the commit given to `hold`."""
        _, patterns = self._held()
        shown = ("--untracked-files=all", "--ignored=matching")
        entries = self._status(*shown, "--", *pathspecs(patterns), env=self._env)
        # The first letter of an entry is about the branch's commit. An ignored folder is one entry,
        # even if only some of its files match.
        return [
            entry[3:]
            for entry in entries
            if entry[1] != " " and (not entry.endswith("/") or _means(patterns, entry[3:-1]))
        ]

    def _held(self) -> tuple[str, list[str]]:
        """Return the arguments of the last `hold`, commit and patterns; both empty if none."""
        if not self._note.is_file():
            return "", []
        commit, *patterns = self._note.read_text().split("\n")
        return commit, patterns

    def _status(self, *args: str, **more: Any) -> list[str]:
        shown = ("--porcelain", "-z", "--no-renames", "--ignore-submodules=all")
        return _split(self._git("status", *shown, *args, **more))


def _means(patterns: Iterable[str], folder: str) -> bool:
    """Whether one of the patterns matches a whole folder."""
    names = [pattern.removesuffix("/**").lower() for pattern in patterns]
    return any(fnmatchcase(folder.lower(), name) for name in names)


def _split(output: str) -> list[str]:
    return [entry for entry in output.split("\0") if entry]
