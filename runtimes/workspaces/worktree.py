"""A session's workspace: a worktree on a bare repository of this session alone.

Where an agent may have worked, git runs only in a sandbox; see `runtimes.workspaces.session_git`.

    ROOT/SESSION/checkout         where the agent works (`path`)
    ROOT/SESSION/repository.git   the agent's repository; borrows objects of the project's mirror
    ROOT/SESSION/origin.git       only for a clone: a copy of the mirror, used in the mirror's place
    ROOT/SESSION/bot.git          the repository of the bot's sandboxed git; its files are untrusted
    ROOT/SESSION/made             marks the workspace as complete
    ROOT/SESSION/making           exists while the workspace is being made and holds no work yet
    ROOT/SESSION/moving           the commits from and to which `move` is moving the branch
    ROOT/SESSION/steering         see `runtimes.workspaces.steering`
    ROOT/.SESSION.gone            a workspace whose removal has begun

A workspace that is neither complete nor being made is spoiled: its work is preserved before a new
workspace is made.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lifecycle.model.facts import OffBranch
from runtimes.host import CLONE, USUAL, WorkspaceOptions
from runtimes.isolation.base import Isolation
from runtimes.workspaces import (
    clone,
    lfs_checkout,
    off_branch,
    packs,
    refs,
    repositories,
    snapshots,
)
from runtimes.workspaces.changes import Patch, WorkspaceChanges, commits_between, patch_between
from runtimes.workspaces.git import GitFailure, readable
from runtimes.workspaces.session_git import SessionGit
from runtimes.workspaces.steering import Steering

_BY_HAND = "look at the session's workspace by hand"


class Worktree:
    """One session's workspace, in which an agent may have left hostile files.

    Every method may raise `GitFailure`.
    """

    def __init__(
        self,
        root: Path,
        session: str,
        branch: str,
        origin: Path,
        isolation: Callable[[], Isolation],
        options: WorkspaceOptions = USUAL,
    ) -> None:
        """`origin` is the project's mirror. `isolation` returns how the session is isolated."""
        self._mirror = origin
        self.session = refs.check_session(session)
        self.branch = refs.check_branch(branch)
        self._options = options
        self.path = repositories.checkout_of(root, session)
        self.place = self.path.parent
        self.repository = self.place / "repository.git"
        self._tip = refs.Tip(self.repository, f"refs/heads/{branch}")
        self._own_origin = self.place / "origin.git"
        self._view = self.place / "bot.git"
        self._git = SessionGit(
            view=self._view,
            checkout=self.path,
            repository=self.repository,
            origin=origin,
            isolation=isolation,
            excluded=options.excluded,
        )
        self._marker = self.place / "made"
        self._making = self.place / "making"
        self._moving = self.place / "moving"
        self._steering = Steering(self.place / "steering", self._git)
        self.made_at = ""  #: The commit whose files, and no others, `create` wrote; or empty.

    @property
    def origin(self) -> Path:
        """The repository that the agent fetches from; its sandbox can only read it."""
        return self._own_origin if self._is_clone else self._mirror

    @property
    def _is_clone(self) -> bool:
        """Whether the workspace is or will be a clone; a clone stays one until it is made again."""
        return self._options.kind == CLONE or self._own_origin.is_dir()

    @property
    def exists(self) -> bool:
        """Whether any part of the workspace exists."""
        return self.place.exists()

    @property
    def made(self) -> bool:
        """Whether the workspace was made completely, so that an agent may have worked in it."""
        return self._marker.is_file() and self._view.is_dir()

    @property
    def completed(self) -> int:
        """When the workspace was completed, in nanoseconds since 1970; 0 if it is not complete."""
        return refs.modified(self._marker)

    @property
    def spoiled(self) -> bool:
        """Whether the workspace is neither complete nor being made, but its folder contains files.

        The files may be an agent's work. A folder that a killed `create` left empty does not count.
        """
        recorded = self.made or self._making.exists()
        return self.place.is_dir() and not recorded and any(self.place.iterdir())

    @property
    def whole(self) -> bool:
        """Whether the workspace's checkout and branch can be used as they are."""
        usable = self.made and self.head() is not None and self.path.is_dir()
        return usable and (self._own_origin.is_dir() or not self._is_clone)

    def base(self) -> str:
        """Return the commit at which the work begins; empty if it is unknown."""
        return self._marker.read_text() if self.made else ""

    def head(self) -> str | None:
        """Return the branch's commit, read without running git; None if it cannot be read."""
        return self._tip.commit()

    def commits(self) -> list[str]:
        """Return the commits that branches, HEAD and stashes point to; at most 200, without git."""
        return refs.commits(self.repository, self.path.name)

    def repair(self) -> None:
        """If `spoiled`, recreate the bot's repository, and mark the workspace as complete."""
        if self.spoiled:
            repositories.remove_tree(self._view)
            self._make_view()
            self.set_base("")

    def create(
        self, start: str, files: str | None, base: str, may_make: Callable[[], bool] = lambda: True
    ) -> bool:
        """Make the workspace with its branch at the commit `start`; remove an existing workspace.

        `files` is a commit whose files are written over the checkout, uncommitted. `base`, the
        commit at which the work begins, is recorded. Returns False if `may_make` is False before
        the removal or the completion, or if another bot has completed the workspace meanwhile.
        """
        before = self.completed
        if not may_make() or not self.remove(before):
            return False
        self.place.mkdir(parents=True, mode=0o700)
        self._making.touch()
        if self._is_clone:
            commits = tuple(filter(None, (base, start)))
            clone.update(self._own_origin, self._mirror, commits, self._options.depth)
        repositories.make_repository(
            self.repository, self.path, self.origin, self.branch, start, self._options
        )
        self._make_view()
        if not may_make():
            return False
        if files:
            snapshots.restore(self._git, start, files)
        self.set_base(base)
        self.made_at = "" if files else start
        return True

    def update_origin(self, *commits: str) -> None:
        """Fetch `commits` and their merge bases with `base()` into `origin`, if this is a clone."""
        if self._own_origin.is_dir() and self.made:
            commits = tuple(filter(None, (self.base(), *commits)))
            with self._locked():
                clone.update(self._own_origin, self._mirror, commits, self._options.depth)
                repositories.share_boundary(self._own_origin, self.repository)

    def set_base(self, base: str) -> None:
        """Record the commit the work begins at, which marks the workspace as complete."""
        unsure = self._marker.with_suffix(".new")
        unsure.write_text(base)
        unsure.rename(self._marker)
        self._making.unlink(missing_ok=True)

    def dirty(self) -> bool:
        """Whether files are changed, or untracked and not ignored. Submodules do not count.

        Changes of an interrupted `move`, which is to be repeated, do not count either.
        """
        with self._locked():
            if self._moving.is_file() and self._moving.read_text().startswith(f"{self.head()} "):
                return False
            return bool(self._status())

    def changes(self, base: str) -> WorkspaceChanges:
        """Return the commits after `base` up to the checked-out one, and uncommitted changes."""
        with self._locked():
            head, entries = self._checked_out(), tuple(map(readable, self._status()))
            lines = tuple(commits_between(self._git, base, head))
            return WorkspaceChanges(commits=lines, uncommitted=entries)

    def patch(self, base: str, head: str, most: int) -> Patch:
        """Return what `head` changes since its merge base with `base`; see `patch_between`."""
        with self._locked():
            return patch_between(self._git, base, head, most)

    def pack(self, commit: str, have: Collection[str], into: Path, most: int) -> None:
        """Write the objects of a commit to a file as a thin pack of at most `most` bytes.

        Objects of the commits `have`, which the caller has, are omitted. The pack is hostile input:
        the importer must check its objects.
        """
        with self._locked():
            packs.write_pack(self._git, commit, have, into, most)

    def move(self, old: str, new: str) -> None:
        """Move the branch and the files from one commit to another, which the mirror has.

        The branch must be checked out at `old`, without uncommitted changes. Call it only while the
        agent is at rest. If the branch is at `new` already, moves nothing.
        """
        self.update_origin(new)
        with self._locked():
            if self.head() == new:
                return
            here = refs.checked_out(self.repository, self.path.name)
            if self.head() != old or here.commit != old:
                words = f"{self.branch} is not checked out, or not at {old}"
                raise GitFailure("read-tree", str(self.path), words, _BY_HAND)
            moving = self._moving
            if not moving.is_file() or moving.read_text() != f"{old} {new}":
                if self._status():
                    remedy = "have the agent commit them, or discard them by hand"
                    words = "there are files that are not committed"
                    raise GitFailure("read-tree", str(self.path), words, remedy)
                moving.write_text(f"{old} {new}")
            self._git.on_files("read-tree", "--reset", "-u", new)
            self._git("update-ref", "--no-deref", "HEAD", new)
            index = f"worktrees/{self.path.name}/index"
            refs.replace_file(self.repository, index, self._git.index()[0])
            self._attach()
            refs.replace_file(self.repository, f"refs/heads/{self.branch}", f"{new}\n".encode())
            moving.unlink()

    def off_branch(self, known: str) -> OffBranch | None:
        """Find commits of the agent that are neither on the session's branch nor on GitHub.

        If something other than the session's branch is checked out, looks only there. Otherwise, if
        the session's branch has no commits of its own, looks at the other branches and chooses the
        one with the newest commit. Returns None if there are no such commits. `known` is the last
        known commit of the session's branch, which the agent may have renamed or removed.
        """
        with self._locked():
            tip, base = self.head() or known, self._marker.read_text()
            return off_branch.find(self._git, self.branch, tip, base)

    def adopt(self, old: str, new: str, at: str = "") -> bool:
        """Move the session's branch from `old` to `new`, and attach HEAD to the branch.

        The commit `at` must be checked out and have the same files as `new`; by default, it is
        `new`, and a repeated call has no effect. Call this only while the agent rests. Returns
        False if another commit is checked out, or if the branch is at neither `old` nor `new`.
        """
        with self._locked():
            here = refs.checked_out(self.repository, self.path.name)
            if here.commit != (at or new) or self.head() not in (old, new, None):
                return False
            refs.replace_file(self.repository, f"refs/heads/{self.branch}", f"{new}\n".encode())
            self._attach()
            return True

    def _attach(self) -> None:
        """Have HEAD point to the session's branch."""
        here = refs.checked_out(self.repository, self.path.name)
        if here.branch != self.branch:
            name = f"worktrees/{self.path.name}/HEAD"
            refs.replace_file(self.repository, name, f"ref: refs/heads/{self.branch}\n".encode())

    def hold(self, commit: str, patterns: Sequence[str]) -> bool:
        """Have `put_back` restore the files that match `patterns` to their versions in `commit`.

        Returns True if some of these files have uncommitted changes, which `put_back` would lose.
        """
        with self._locked():
            self._status()  # It brings the view to the branch's commit.
            return self._steering.hold(commit, patterns)

    def put_back(self, head: str) -> list[str]:
        """Restore the steering files (see `hold`); return those that `head` has changed."""
        with self._locked():
            return [readable(name) for name in self._steering.put_back(head)]

    def fill(self, folder: str, repository: Path, commit: str, steering: Sequence[str]) -> bool:
        """Write the files of a commit of `repository` into a folder; see `SessionGit.fill`."""
        with self._locked():
            return self._git.fill(folder, repository, commit, steering)

    @property
    def has_lfs(self) -> bool:
        """Whether this workspace supports Git LFS, even if it has no such files."""
        return repositories.has_lfs(self._view)

    @property
    def lfs_stores(self) -> Sequence[Path]:
        """The folders of this session's LFS files, the agent's and the bot's: hostile contents."""
        return [place / "lfs" / "objects" for place in (self.repository, self._view)]

    def in_checkout(self, names: Collection[str]) -> Collection[str]:
        """Return the given files that the checkout, which may be sparse, should have."""
        return self._git.shown(names)

    def write_lfs_files(self, names: Collection[str]) -> None:
        """Replace pointers in the checkout by their LFS files, where the content is available."""
        with self._locked():
            lfs_checkout.write_files(self._git, names, self._status)

    def remove(self, completed: int | None = None) -> bool:
        """Remove the whole workspace. Idempotent.

        With `completed`, remove only the workspace that was made at that time, or return False.
        """
        gone = self.place.with_name(f".{self.session}.gone")
        repositories.remove_tree(gone)
        with suppress(FileNotFoundError):
            self.place.rename(gone)  # First: a workspace that is half removed would look spoiled.
            if completed is not None and refs.modified(gone / self._marker.name) != completed:
                gone.rename(self.place)
                return False
        repositories.remove_tree(gone)
        return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the workspace's `bot.git`. Raises `GitFailure` if the workspace is incomplete."""
        if not self.made:
            raise GitFailure("status", str(self.place), "it is incomplete", "restart the session")
        with (self.place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            repositories.remove_locks(self._view)
            yield

    def snapshot(
        self, message: str, unpublished: Sequence[str], earlier: str | None, known: str
    ) -> str | None:
        """Commit all files as they are, without moving the branch, and return the commit.

        Ignored files are left out. The first parent is the branch's commit or, if that cannot be
        read, the result of `_anchor(known)`. The commits `unpublished` and `earlier` become further
        parents. None if `unpublished` is empty and no file differs from the first parent.
        """
        with self._locked():
            anchor = self._anchor(known)
            parents = list(dict.fromkeys([anchor, *unpublished, *filter(None, [earlier])]))
            tree = None
            if os.path.lexists(self.path) and (status := self._status("all", anchor)):
                tree = snapshots.write_tree(self._git, status)
            elif unpublished:
                tree = f"{anchor}^{{tree}}"
            if tree is None:
                return None
            over = [word for parent in parents for word in ("-p", parent)]
            return self._git("commit-tree", tree, *over, "-m", message).strip()

    def _anchor(self, known: str = "") -> str:
        """Return the branch's commit, else one from `commits()`, else `known`, else the base."""
        found = self.head() or next(iter(self.commits()), known) or self._marker.read_text()
        if not found:
            words = f"no readable branch {self.branch}"
            raise GitFailure("status", str(self.repository), words, _BY_HAND)
        return found

    def _checked_out(self) -> str:
        """Return the commit that is checked out, whether or not on the session's branch."""
        here = refs.checked_out(self.repository, self.path.name)
        if here.branch != self.branch and here.commit:
            kind = self._git("cat-file", "--batch-check", stdin=f"{here.commit}\n")
            if kind.split()[1] == "commit":
                return here.commit
        return self._anchor()

    def _status(self, untracked: str = "normal", anchor: str = "") -> list[str]:
        """Return the files' status relative to `anchor` or, if empty, to the checked-out commit."""
        head = anchor or self._checked_out()
        if refs.commit_at(self._view, "HEAD") != head:
            # With `-i`, because the files may be newer than the index.
            self._git.on_files("read-tree", "-i", "-m", head)
            self._git.leave_out()
            self._git("update-ref", "--no-deref", "HEAD", head)
        return self._steering.status(untracked)

    def _make_view(self) -> None:
        """Make the repository in which the bot runs git on the checkout."""
        self._git.make(self._options.sparse, lfs=self._options.lfs_max_mb > 0)
        if self._making.exists():
            # So that the first status need not read every file. With its time: `copied_index`.
            shutil.copy2(self.repository / "worktrees/checkout/index", self._view / "index")
