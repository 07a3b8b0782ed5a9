"""A session's workspace: a worktree on a bare repository of this session alone.

Beside them stands a bare repository of the bot that borrows the session's objects. Git is run there
only, so nothing an agent writes into its own repository (hooks, filters, fsmonitor, addresses) is
ever read: measured, one poisoned configuration runs code in whoever calls git on it.

    ROOT/SESSION/checkout         where the agent works (`path`)
    ROOT/SESSION/repository.git   its repository; `origin` is the mirror, for reading
    ROOT/SESSION/bot.git          the bot's view; `made` in it says that all three are whole
    ROOT/SESSION/making           there while they are made: nothing in them is anybody's work
    ROOT/.SESSION.gone            what is being removed

What is there and neither whole nor being made was spoiled by somebody: its work is kept first.
"""

import fcntl
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from runtimes.host import WorkspaceChanges, WorkspaceStatus
from runtimes.workspaces.git import NETWORK_SECONDS, GitFailure, git, init
from runtimes.workspaces.refs import (
    Tip,
    check_branch,
    check_session,
    commits,
    on,
    put,
)
from runtimes.workspaces.steering import Steering

_NO_PUSH = "/dev/null/Mergewright pushes this branch by itself: commit, and leave the rest to it"
#: Run by the agent's git alone: the bot's own runs no hooks.
_SIGNS_OFF = """#!/bin/sh
exec git -c trailer.ifexists=addIfDifferent interpret-trailers --in-place --trailer \\
    "Signed-off-by: $(git var GIT_COMMITTER_IDENT | sed 's/>.*/>/')" "$1"
"""
_COMMITS = 250  #: No more of a branch are told.
_BY_HAND = "look at the session's workspace by hand"


class Worktree:
    """One session's workspace. Every method may raise `GitFailure`."""

    def __init__(
        self,
        root: Path,
        session: str,
        branch: str,
        origin: str,
        *,
        name: str = "Mergewright",
        email: str = "mergewright@localhost",
        sign_off: bool = False,
    ) -> None:
        """`origin` is the project's mirror, a folder of this machine.

        `name` and `email` are whose commits the agent makes; `sign_off`: and who signs them.
        """
        self.origin = Path(origin)
        self.session = check_session(session)
        self.branch = check_branch(branch)
        self.name, self.email = name, email
        self._sign_off = sign_off
        self.path = checkout(root, session)
        self.place = self.path.parent
        self.repository = self.place / "repository.git"
        self._tip = Tip(self.repository, f"refs/heads/{branch}")
        self._view = self.place / "bot.git"
        self._marker = self._view / "made"
        self._making = self.place / "making"
        self._steering = Steering(self._view, self._in_checkout)

    @property
    def made(self) -> bool:
        """Whether it is whole. One that is not was never shown to a program, or is spoiled."""
        return self._marker.is_file()

    @property
    def spoiled(self) -> bool:
        """Whether it was made, and somebody removed what says so."""
        return self.place.is_dir() and not self.made and not self._making.exists()

    def status(self) -> WorkspaceStatus:
        """See `Workspace.status`."""
        made, head = self.made, self.head()
        return WorkspaceStatus(
            exists=self.place.exists(),
            made=made,
            whole=made and head is not None and self.path.is_dir(),
            location=str(self.path),
            base=self._marker.read_text() if made else "",
            head=head,
            commits=tuple(commits(self.repository, self.path.name)),
        )

    def repair(self) -> WorkspaceStatus:
        """Make the bot's view of a spoiled workspace again; see `Workspace.repair`."""
        if self.spoiled:
            remove_tree(self._view)
            self._make_view()
            self.set_base("")
        return self.status()

    def create(self, start: str, files: str | None, base: str) -> None:
        """See `Workspace.create`."""
        self.remove()
        self._make_repository(start)
        self._make_view()
        if files:
            self._in_checkout("restore", f"--source={files}", "--worktree", "--", ".")
        self.set_base(base)

    def set_base(self, base: str) -> None:
        """Mark the workspace as whole; see `Workspace.set_base`."""
        unsure = self._marker.with_suffix(".new")
        unsure.write_text(base)
        unsure.rename(self._marker)
        self._making.unlink(missing_ok=True)

    def head(self) -> str | None:
        """The branch's commit, read from files alone; None where it cannot be told."""
        return self._tip.commit()

    def dirty(self) -> bool:
        """Whether something is not committed: changed, or untracked and not ignored.

        The files are compared with the branch's commit; submodules are left out. What a move that
        a crash cut short has changed is not the agent's: the move is to be repeated.
        """
        with self.view():
            moving = self._view / "moving"
            if moving.is_file() and moving.read_text().startswith(f"{self.head()} "):
                return False
            return bool(self._status())

    def changes(self, base: str) -> WorkspaceChanges:
        """See `Workspace.changes`."""
        with self.view():
            shown = ("--reverse", f"--max-count={_COMMITS}", "--format=%h %s")
            log = git(self._view, "log", *shown, f"{base}..{self._anchor()}", "--")
            return WorkspaceChanges(
                commits=tuple(log.splitlines()), uncommitted=tuple(self._status())
            )

    def pack(self, commit: str, have: Collection[str], into: Path) -> None:
        """See `Workspace.pack`."""
        with self.view():
            kinds = git(self._view, "cat-file", "--batch-check", stdin="\n".join((*have, "")))
            known = [line.split()[0] for line in kinds.splitlines() if " commit " in line]
            wanted = "".join(f"{line}\n" for line in (commit, *(f"^{sha}" for sha in known)))
            options = ("--revs", "--thin", "--stdout", "--delta-base-offset", "-q")
            command = ("pack-objects", *options)
            git(self._view, *command, stdin=wanted, into=into, seconds=NETWORK_SECONDS)

    def move(self, old: str, new: str) -> None:
        """Bring branch and files from one commit to another; for an agent at rest.

        Safe to repeat. Raises `GitFailure` where the branch is not at `old` on its own branch, or
        something is not committed. The commit is to be in the mirror.
        """
        with self.view():
            if self.head() == new:
                return
            self._check_movable(old)
            moving = self._view / "moving"
            if not moving.is_file() or moving.read_text() != f"{old} {new}":
                if self._status():
                    remedy = "have the agent commit it, or throw it away by hand"
                    words = "there are files that are not committed"
                    raise GitFailure("read-tree", str(self.path), words, remedy)
                moving.write_text(f"{old} {new}")
            self._in_checkout("read-tree", "--reset", "-u", new)
            git(self._view, "update-ref", "--no-deref", "HEAD", new)
            index = f"worktrees/{self.path.name}/index"
            put(self.repository, index, (self._view / "index").read_bytes())
            put(self.repository, f"refs/heads/{self.branch}", f"{new}\n".encode())
            moving.unlink()

    def hold(self, commit: str, patterns: Sequence[str]) -> bool:
        """See `Workspace.hold`."""
        with self.view():
            self._status()  # It brings the view to the branch's commit.
            return self._steering.hold(commit, patterns)

    def put_back(self, head: str) -> list[str]:
        """See `Workspace.put_back`."""
        with self.view():
            return self._steering.put_back(head)

    def _check_movable(self, old: str) -> None:
        on_branch = on(self.repository, self.path.name) == f"refs/heads/{self.branch}"
        if self.head() != old or not on_branch:
            words = f"{self.branch} is not checked out, or not at {old}"
            raise GitFailure("read-tree", str(self.path), words, _BY_HAND)

    def remove(self) -> None:
        """Remove everything of this workspace. What is gone already is fine."""
        gone = self.place.with_name(f".{self.session}.gone")
        remove_tree(gone)
        with suppress(FileNotFoundError):
            self.place.rename(gone)  # At once: what is half removed would look spoiled.
        remove_tree(gone)

    @contextmanager
    def view(self) -> Iterator[Path]:
        """The bot's repository with the session's objects, for this caller alone."""
        if not self.made:
            raise GitFailure("status", str(self.place), "the workspace is not made", "make it")
        with (self._view / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for left in self._view.glob("index*.lock"):
                left.unlink()  # Of a git that was killed.
            yield self._view

    def snapshot(
        self, message: str, unpublished: Sequence[str], earlier: str | None, known: str
    ) -> str | None:
        """Commit into the view; the session's repository is not touched. See `Workspace`."""
        with self.view():
            anchor = self._anchor(known)
            parents = list(dict.fromkeys([anchor, *unpublished, *filter(None, [earlier])]))
            tree = self._tree(anchor)
            if tree is None:
                if not unpublished:
                    return None
                tree = f"{anchor}^{{tree}}"
            over = [word for parent in parents for word in ("-p", parent)]
            return git(self._view, "commit-tree", tree, *over, "-m", message).strip()

    def _tree(self, anchor: str) -> str | None:
        """A tree of every file as it is; None where all of them are committed."""
        if not os.path.lexists(self.path) or not (status := self._status("all", anchor)):
            return None
        index = self._view / "index.files"
        # With its time: git reads a file again that is not older than the index which knows it.
        shutil.copy2(self._view / "index", index)
        env = {"GIT_INDEX_FILE": str(index)}
        nested = _nested(status)
        paths = "".join(f"{path}\0" for path in (".", *(f":(exclude,literal){n}" for n in nested)))
        from_stdin = ("--pathspec-from-file=-", "--pathspec-file-nul")
        self._in_checkout("add", "--all", *from_stdin, env=env, stdin=paths)
        if nested:
            self._add_nested(nested, env)
        return git(self._view, "write-tree", env=env).strip()

    def _add_nested(self, nested: list[str], env: Mapping[str, str]) -> None:
        """Add the files of repositories the agent made inside: git would only note their commit."""
        files = "".join(f"{file}\0" for folder in nested for file in _files(self.path, folder))
        try:
            ignored = self._in_checkout("check-ignore", "-z", "--stdin", env=env, stdin=files)
        except GitFailure as failure:
            if failure.code != 1:
                raise
            ignored = ""  # So it says that none is.
        left_out = set(ignored.split("\0"))
        kept = "".join(f"{file}\0" for file in files.split("\0") if file and file not in left_out)
        self._in_checkout("update-index", "--add", "-z", "--stdin", env=env, stdin=kept)

    def _anchor(self, known: str = "") -> str:
        """The commit the files are compared with: the branch's, or the newest that is known."""
        found = self.head() or next(iter(commits(self.repository, self.path.name)), None)
        found = found or known or self._marker.read_text()
        if not found:
            words = f"no readable branch {self.branch}"
            raise GitFailure("status", str(self.repository), words, _BY_HAND)
        return found

    def _status(self, untracked: str = "normal", anchor: str = "") -> list[str]:
        """What differs from the branch's commit, an entry of git's each."""
        head = anchor or self._anchor()
        if (self._view / "HEAD").read_text().strip() != head:
            self._in_checkout("read-tree", "-i", "-m", head)  # The checkout is ahead of the index.
            git(self._view, "update-ref", "--no-deref", "HEAD", head)
        return self._steering.status(untracked)

    def _in_checkout(
        self, *args: str, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> str:
        # A link in its place would make everything it leads to look like the agent's work.
        if self.path.is_symlink() or not self.path.is_dir():
            words = "the checkout was removed or replaced"
            raise GitFailure(args[0], str(self.path), words, _BY_HAND)
        env = {"GIT_WORK_TREE": str(self.path), **(env or {})}
        return git(self._view, *args, env=env, seconds=NETWORK_SECONDS, stdin=stdin)

    def _make_repository(self, start: str) -> None:
        """The session's own repository and checkout: its branch at `start`."""
        self.place.mkdir(parents=True, mode=0o700)
        self._making.touch()
        init(self.repository, borrow=(self.origin,))
        with (self.repository / "config").open("a") as config:
            config.write(
                f'[remote "origin"]\n'
                f"url = {_quoted(str(self.origin))}\n"
                f"pushurl = {_quoted(_NO_PUSH)}\n"
                f"fetch = +refs/heads/*:refs/remotes/origin/*\n"
                f"[user]\n"
                f"name = {_quoted(self.name)}\n"
                f"email = {_quoted(self.email)}\n"
                f"[gc]\n"
                f"auto = 0\n"
            )
        if self._sign_off:
            hook = self.repository / "hooks" / "commit-msg"
            hook.parent.mkdir(mode=0o700)
            hook.write_text(_SIGNS_OFF)
            hook.chmod(0o700)
        git(self.repository, "fetch", "--quiet", "--no-tags", "origin", protocol="file")
        add = ("worktree", "add", "--quiet", "-b", self.branch, str(self.path), start)
        git(self.repository, *add, seconds=NETWORK_SECONDS)

    def _make_view(self) -> None:
        """The bot's repository: no settings but ours, the session's objects borrowed."""
        init(self._view, borrow=(self.repository, self.origin))
        if self._making.exists():
            # The fresh checkout's own, so that the first look need not read every file again.
            index = self.repository / "worktrees" / self.path.name / "index"
            shutil.copy2(index, self._view / "index")  # With its time, as above.


def _quoted(value: str) -> str:
    """A value as a file of git's configuration has it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _nested(status: list[str]) -> list[str]:
    """Repositories inside the checkout: of what is untracked, all that is told as a folder."""
    told = (entry[3:] for entry in status if entry.startswith("?? "))
    return [path.removesuffix("/") for path in told if path.endswith("/")]


def _files(root: Path, folder: str) -> Iterator[str]:
    """Files and links below a folder, but what belongs to a repository itself."""
    for place, folders, names in os.walk(root / folder):
        if ".git" in folders:
            folders.remove(".git")
        for path in (Path(place, name) for name in (*folders, *names) if name != ".git"):
            if path.is_symlink() or path.is_file():
                yield str(path.relative_to(root))


def checkout(root: Path, session: str) -> Path:
    """Where the agent of a session works, made or not."""
    return Path(os.path.realpath(root)) / session / "checkout"


def remove_tree(folder: Path) -> None:
    """Remove a folder, also where some of it is write-protected. What is gone already is fine."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except PermissionError:
        _make_writable(folder)  # Tools write-protect folders, e.g. caches of modules.
        shutil.rmtree(folder)


def _make_writable(folder: Path) -> None:
    for place, names, _ in os.walk(folder):
        for path in (Path(place, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
