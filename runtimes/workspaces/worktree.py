"""A session's workspace: a worktree on a bare repository of this session alone.

Beside them stands a bare repository of the bot that borrows the session's objects. Git is run there
only, so nothing an agent writes into its own repository (hooks, filters, fsmonitor, addresses) is
ever read: measured, one poisoned configuration runs code in whoever calls git on it.

    ROOT/SESSION/checkout         where the agent works (`path`)
    ROOT/SESSION/repository.git   its repository; `origin` is the mirror, for reading
    ROOT/SESSION/bot.git          the bot's view; `made` in it says that all three are whole
"""

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from runtimes.workspaces.git import NETWORK_SECONDS, GitFailure, git, init
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.refs import check_branch, check_session, commit_at, commits, is_sha

_NO_PUSH = "/dev/null/Mergewright pushes this branch by itself: commit, and leave the rest to it"
_BY_HAND = "look at the session's workspace by hand"


class Worktree:
    """One session's workspace. Every method may raise `GitFailure`."""

    def __init__(
        self,
        mirror: Mirror,
        root: Path,
        session: str,
        branch: str,
        *,
        name: str = "Mergewright",
        email: str = "mergewright@localhost",
    ) -> None:
        """`name` and `email` are whose commits the agent makes."""
        self.mirror = mirror
        self.session = check_session(session)
        self.branch = check_branch(branch)
        self.name, self.email = name, email
        self.place = Path(os.path.realpath(root)) / session
        self.path = self.place / "checkout"
        self.repository = self.place / "repository.git"
        self._view = self.place / "bot.git"
        self._marker = self._view / "made"

    @property
    def made(self) -> bool:
        """Whether it is whole. One that is not has never been shown to a program."""
        return self._marker.is_file()

    def make(self, base: str) -> str:
        """Check the session's branch out, at `base` (a branch of GitHub, or a commit).

        Where work of this session is known already (pushed, fetched or preserved) it goes on from
        there. Safe to repeat: what was made whole is left as it is, anything else is made again.
        Returns the commit the work is based on.
        """
        if self.made and self.head():
            if self.path.is_dir():
                return self._marker.read_text()
            self.mirror.take(self)  # The checkout was removed; its commits are not lost with it.
        at = base if is_sha(base) else self.mirror.head_of(base)
        if at is None:
            remedy = "name a branch that exists on GitHub and has a commit"
            raise GitFailure("worktree add", str(self.place), f"no branch {base}", remedy)
        start, files = self.mirror.known_work(self.session, self.branch) or (at, None)
        based_on = self.mirror.merge_base(at, start)

        self.remove()
        self._make_repository(start)
        self._make_view()
        if files:  # What was not committed when the workspace was removed is so again.
            self._in_checkout("restore", f"--source={files}", "--worktree", "--", ".")
        unsure = self._marker.with_suffix(".new")
        unsure.write_text(based_on)
        unsure.rename(self._marker)
        return based_on

    def head(self) -> str | None:
        """The branch's commit, read from files alone; None where it cannot be told."""
        return commit_at(self.repository, f"refs/heads/{self.branch}")

    def commits(self) -> list[str]:
        """Every commit a branch or HEAD of the session is at, read from files alone."""
        return commits(self.repository, self.path.name)

    def dirty(self) -> bool:
        """Whether something is not committed: changed, or untracked and not ignored.

        The files are compared with the branch's commit; submodules are left out.
        """
        with self.view():
            return bool(self._status())

    def remove(self) -> None:
        """Remove everything of this workspace. What is gone already is fine."""
        self._marker.unlink(missing_ok=True)  # First: what is half removed is not whole.
        try:
            shutil.rmtree(self.place)
        except FileNotFoundError:
            return
        except PermissionError:
            _make_writable(self.place)  # Tools write-protect folders, e.g. caches of modules.
            shutil.rmtree(self.place)

    @contextmanager
    def view(self) -> Iterator[Path]:
        """The bot's repository with the session's objects, for this caller alone."""
        if not self.made:
            raise GitFailure("status", str(self.place), "the workspace is not made", "make it")
        with (self._view / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (self._view / "index.lock").unlink(missing_ok=True)  # Of a git that was killed.
            yield self._view

    def commit_files(self, message: str, parents: list[str]) -> str | None:
        """Commit every file as it stands into the view; None where all of it is committed.

        The caller holds the view. The session's repository is not touched.
        """
        if not os.path.lexists(self.path) or not self._status():
            return None
        index = self._view / "index.files"
        shutil.copyfile(self._view / "index", index)
        env = {"GIT_INDEX_FILE": str(index)}
        self._in_checkout("add", "--all", "--", ".", env=env)
        tree = git(self._view, "write-tree", env=env).strip()
        over = [word for parent in parents for word in ("-p", parent)]
        return git(self._view, "commit-tree", tree, *over, "-m", message).strip()

    def _status(self) -> str:
        """What differs from the branch's commit; nothing where nothing does."""
        head = self.head() or next(iter(self.commits()), None)
        if head is None:
            words = f"no readable branch {self.branch}"
            raise GitFailure("status", str(self.repository), words, _BY_HAND)
        if (self._view / "HEAD").read_text().strip() != head:
            self._in_checkout("read-tree", "-i", "-m", head)  # The checkout is ahead of the index.
            git(self._view, "update-ref", "--no-deref", "HEAD", head)
        return self._in_checkout(
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=normal",
            "--ignore-submodules=all",
        )

    def _in_checkout(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        # A link in its place would make everything it leads to look like the agent's work.
        if self.path.is_symlink() or not self.path.is_dir():
            words = "the checkout was removed or replaced"
            raise GitFailure(args[0], str(self.path), words, _BY_HAND)
        env = {"GIT_WORK_TREE": str(self.path), **(env or {})}
        return git(self._view, *args, env=env, seconds=NETWORK_SECONDS)

    def _make_repository(self, start: str) -> None:
        """The session's own repository and checkout: its branch at `start`."""
        self.place.mkdir(parents=True, mode=0o700)
        init(self.repository, borrow=(self.mirror.path,))
        with (self.repository / "config").open("a") as config:
            config.write(
                f'[remote "origin"]\n'
                f"url = {_quoted(str(self.mirror.path))}\n"
                f"pushurl = {_quoted(_NO_PUSH)}\n"
                f"fetch = +refs/heads/*:refs/remotes/origin/*\n"
                f"[user]\n"
                f"name = {_quoted(self.name)}\n"
                f"email = {_quoted(self.email)}\n"
                f"[gc]\n"
                f"auto = 0\n"
            )
        git(self.repository, "fetch", "--quiet", "--no-tags", "origin", protocol="file")
        add = ("worktree", "add", "--quiet", "-b", self.branch, str(self.path), start)
        git(self.repository, *add, seconds=NETWORK_SECONDS)

    def _make_view(self) -> None:
        """The bot's repository: no settings but ours, the session's objects borrowed."""
        init(self._view, borrow=(self.repository, self.mirror.path))
        # The fresh checkout's own, so that the first look need not read every file again.
        index = self.repository / "worktrees" / self.path.name / "index"
        shutil.copyfile(index, self._view / "index")


def _quoted(value: str) -> str:
    """A value as a file of git's configuration has it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _make_writable(folder: Path) -> None:
    for place, names, _ in os.walk(folder):
        for path in (Path(place, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
