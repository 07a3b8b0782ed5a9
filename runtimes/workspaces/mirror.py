"""The bot's private repository of a project, into which it fetches and from which it pushes.

refs/heads/*                             GitHub's branches, as last fetched or pushed
refs/mergewright/sessions/SESSION        a session's commits, as last taken, merged or signed
refs/mergewright/pushed/BRANCH           the commit last pushed to a branch
refs/mergewright/allowed/BRANCH          the signed form of a commit that a person allowed
refs/mergewright/preserved/SESSION/RUN   work that was preserved from a workspace
"""

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from lifecycle.model.times import from_seconds
from runtimes.workspaces.commit_log import Commit, read_log
from runtimes.workspaces.git import NETWORK_SECONDS, GitFailure, ask, git, init
from runtimes.workspaces.packs import PACK_BYTES, import_pack
from runtimes.workspaces.refs import check_branch, commit_at, is_sha
from runtimes.workspaces.remotes import with_remote
from runtimes.workspaces.worktree import Worktree

_OURS = "refs/mergewright"
_TEMPLATE = "pull_request_template.md"
_FILES = "Keep files that were not committed"
_UPDATES = 20  #: The most updates of a branch in a row that are examined.
_NEWEST = 50  #: The most branches of GitHub whose objects a pack may omit.
#: Errors of a remote at which another push is changing the ref at the same time.
_IN_PROGRESS = r"cannot lock ref|failed to update ref|already exists|incorrect old value"


class PushRefused(Exception):
    """The remote refused the push by a rule, or because the branch is at another commit."""

    def __init__(self, branch: str, summary: str, words: str, *, moved: bool) -> None:
        """Compose the message from `branch`, `summary` and the remote's lines in `words`.

        `summary` is git's result for the branch; `words` is git's error output.
        """
        lines = [line for line in words.splitlines() if "remote:" in line]
        reasons = [line.removeprefix("remote:").strip() for line in lines]
        self.reason = " ".join([f"{branch}: {summary}", *reasons])[:1000]
        #: Whether the branch was at another commit than expected.
        self.moved = moved
        super().__init__(self.reason)


class Preserved(Struct, frozen=True, kw_only=True):
    """Work that was preserved from a workspace, mostly before its removal."""

    session: str
    run: int
    ref: str
    sha: str  #: Its first parent is the branch's commit, its files are those of the checkout.
    at: datetime  #: When it was preserved.


class Fork(Struct, frozen=True, kw_only=True):
    """The fork that has the bot's branches."""

    url: str
    password: Callable[[], str]  #: As in `Mirror`.
    branches: str  #: The prefix of the bot's branches; no others are fetched from the fork.


@dataclass(eq=False)
class Mirror:
    """One project's mirror. Methods raise `GitFailure` and may be called from any thread.

    They raise `ValueError` for a commit that is no full SHA, and for an invalid branch name.
    """

    path: Path  #: The absolute path of the bare repository.
    url: str  #: Of the repository at GitHub.
    password: Callable[[], str] = str  #: Returns the password for `url`; if empty, none.
    fork: Fork | None = None  #: Where the bot's branches are pushed to and fetched from, if set.

    def __post_init__(self) -> None:
        self._lock = threading.RLock()  # Concurrent fetches fail on each other's locks.
        self._begun = self._done = 0  #: The numbers of the last fetch begun and the last one done.
        self._template = "", ""  #: The commit whose template was read last, and its text.

    def refresh(self) -> None:
        """Fetch all branches and drop deleted ones; make the mirror if it does not exist.

        Calls that wait for a fetch in progress share the next one.
        """
        begun = self._begun
        with self._lock:
            if self._done > begun:
                return
            self._begun += 1
            self._refresh()
            self._done = self._begun

    def _refresh(self) -> None:
        if not self.path.is_dir():
            making = self.path.with_name(f"{self.path.name}.making")
            shutil.rmtree(making, ignore_errors=True)
            making.parent.mkdir(parents=True, exist_ok=True)
            init(making)
            self._fetch_branches(making)
            making.rename(self.path)
            return
        try:
            self._fetch_branches(self.path)
        except GitFailure as failure:
            if ".lock" not in failure.words or not self._drop_old_locks():
                raise
            self._fetch_branches(self.path)

    def head_of(self, branch: str) -> str | None:
        """Return the commit of GitHub's branch, as last fetched or pushed; None without one."""
        return commit_at(self.path, f"refs/heads/{check_branch(branch)}")

    def contains(self, sha: str) -> bool:
        """Whether the mirror has the commit."""
        line = git(self.path, "cat-file", "--batch-check", stdin=f"{_sha(sha)}^{{commit}}\n")
        return not line.endswith(" missing\n")

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `older` is an ancestor of `newer`; a commit is an ancestor of itself."""
        return ask(self.path, "merge-base", "--is-ancestor", _sha(older), _sha(newer)) is not None

    def merge_base(self, base: str, sha: str) -> str:
        """Return the best common ancestor of two commits, or `base` if they have none."""
        return (
            base
            if base == sha
            else (ask(self.path, "merge-base", _sha(base), _sha(sha)) or base).strip()
        )

    def tracked(self, sha: str, names: Collection[str]) -> Sequence[str]:
        """Return the files of a commit at or below the paths `names`; all if `names` is empty."""
        return git(self.path, "ls-tree", "-r", "--name-only", _sha(sha), "--", *names).splitlines()

    def pull_template(self, sha: str) -> str:
        """Return the pull request template in the commit `sha`; empty if there is none.

        https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests/about-issue-and-pull-request-templates
        """
        known, text = self._template
        if known != sha:
            text = self._read_template(sha)
            self._template = sha, text  # Most sessions begin at the newest commit of one branch.
        return text

    def _read_template(self, sha: str) -> str:
        folders = [f"{folder}/" for folder in (".github", "docs")]
        tree = git(self.path, "ls-tree", "--name-only", "-z", _sha(sha), "--", ".", *folders)
        found = [n for n in tree.split("\0") if n.lower().rpartition("/")[2] == _TEMPLATE]
        # GitHub's order: .github, then the root, then docs.
        found.sort(key=lambda name: (".github/" not in name, "/" in name))
        return git(self.path, "show", f"{sha}:{found[0]}") if found else ""

    def commits(self, sha: str, base: str = "") -> tuple[Commit, ...]:
        """Return all commits of `sha` that are not in `base`, oldest first.

        `base` is a commit. If it is empty, return the commits that are on no branch of GitHub.
        Raises `GitFailure` for more than 64 MiB of messages.
        """
        known = _sha(base) if base else "--branches"
        return read_log(self.path, _sha(sha), "--not", known)

    def take(self, workspace: Worktree) -> str:
        """Import the commits of the workspace's branch, as hostile input, and return its head."""
        head = workspace.head()
        if head is None:
            words = f"no readable branch {workspace.branch}"
            raise GitFailure("fetch", workspace.session, words, "look at the workspace by hand")
        self._import(workspace, head, f"{_OURS}/sessions/{workspace.session}")
        return head

    def preserve(self, workspace: Worktree, run: int) -> str | None:
        """Preserve what removing the workspace would lose; return the commit that holds it.

        Preserves unpublished commits on local branches, stashes and HEAD, and files that are
        changed, or untracked and not ignored. Returns None if nothing would be lost. Work of the
        same run that was preserved before is kept.
        """
        workspace.repair()
        if not workspace.made:
            return None
        ref = f"{_OURS}/preserved/{workspace.session}/{run}"
        commits = workspace.commits()
        unpublished = [sha for sha in commits if not self._published(sha)]
        work = None if commits else self.known_work(workspace.session, workspace.branch)
        known, earlier = work[0] if work else "", commit_at(self.path, ref)
        if kept := workspace.snapshot(_FILES, unpublished, earlier, known):
            self._import(workspace, kept, ref)
        return kept

    def preserved(self, session: str = "") -> list[Preserved]:
        """Return the preserved work of a session, or of all, ordered by session and run."""
        folder = f"{_OURS}/preserved/"
        fields = "--format=%(refname) %(objectname) %(committerdate:unix)"
        lines = git(self.path, "for-each-ref", fields, f"{folder}{session}").splitlines()
        found = []
        for ref, sha, at in (line.split(" ") for line in lines):
            name, _, run = ref.removeprefix(folder).partition("/")
            when = from_seconds(int(at))
            found.append(Preserved(session=name, run=int(run), ref=ref, sha=sha, at=when))
        return sorted(found, key=lambda kept: (kept.session, kept.run))

    def size_of(self, kept: Preserved) -> int:
        """Return the size in bytes, on disk, of objects that only this preserved work refers to."""
        others = ("--not", "--branches", f"--glob={_OURS}/sessions", f"--glob={_OURS}/pushed")
        rest = [other.ref for other in self.preserved() if other.ref != kept.ref]
        shown = ("--objects", "--disk-usage")
        return int(git(self.path, "rev-list", *shown, kept.sha, *others, *rest))

    def forget(self, kept: Preserved) -> None:
        """Drop preserved work. Raises `GitFailure` if its ref has changed since."""
        git(self.path, "update-ref", "-d", kept.ref, kept.sha)

    def known_work(self, session: str, branch: str) -> tuple[str, str | None] | None:
        """Return a session's newest commit, and the commit with the last preserved work.

        Candidates for the newest commit are, in this order: the head of GitHub's `branch`, the
        commit that the mirror records for the session, and the commit on which the last preserved
        work is based. A later candidate replaces the choice so far only if it descends from that
        choice. The second value is None if no work was preserved, or if the work is based on
        another commit than the newest. Returns None if there is no candidate.
        """
        kept = self.preserved(session)
        preserved = kept[-1].sha if kept else None
        below = git(self.path, "rev-parse", f"{preserved}^1").strip() if preserved else None
        start = self.head_of(branch)
        for sha in (commit_at(self.path, f"{_OURS}/sessions/{session}"), below):
            if sha and (start is None or self.is_ancestor(start, sha)):
                start = sha
        return None if start is None else (start, preserved if start == below else None)

    def join(self, session: str, branch: str, ours: str, theirs: str) -> str | None:
        """Combine the session's commit `ours` with `theirs`, the commit of its branch on GitHub.

        Returns the first of these that applies:

        * `ours`, if it builds on `theirs` and nobody has removed commits that the bot pushed;
        * `theirs`, if GitHub has `ours` already: a branch there or the bot's last push contains it;
        * None, if `theirs` lacks the bot's last push to the branch, or the two commits conflict;
        * a new merge of both.

        `theirs` or the merge is recorded as the session's commit.
        """
        if self.is_ancestor(theirs, ours) and not self._took_off(branch, theirs):
            return ours
        known = self.is_ancestor(ours, theirs) or self._published(ours)
        if joined := theirs if known else self._merge(branch, ours, theirs):
            git(self.path, "update-ref", f"{_OURS}/sessions/{session}", joined)
        return joined

    def is_update(self, old: str, new: str, base: str) -> bool:
        """Whether only merges of the branch `base`, as git makes them, lead from `old` to `new`.

        `old` and `new` are commits. GitHub's "Update branch" makes such merges; a merge with
        changes made by hand is not an update. More than 19 merges are not recognised.
        """
        tip = self.head_of(base)
        for _ in range(_UPDATES):
            if new == old:
                return True
            parents = git(self.path, "rev-parse", f"{_sha(new)}^@").split()
            if tip is None or len(parents) != 2 or not self.is_ancestor(parents[1], tip):
                return False
            tree = git(self.path, "rev-parse", f"{_sha(new)}^{{tree}}").strip()
            if self._merged_tree(*parents) != tree:
                return False
            new = parents[0]
        return False

    def _merge(self, branch: str, ours: str, theirs: str) -> str | None:
        """Merge two commits; None if they conflict or `theirs` lacks a commit the bot pushed."""
        if (pushed := self.pushed(branch)) and not self.is_ancestor(pushed, theirs):
            return None
        if (tree := self._merged_tree(ours, theirs)) is None:
            return None
        message = f"Merge what was pushed to {branch}"
        return git(self.path, "commit-tree", tree, "-p", ours, "-p", theirs, "-m", message).strip()

    def pushed(self, branch: str) -> str | None:
        """Return the commit that the bot last pushed to a branch, or None."""
        return commit_at(self.path, f"{_OURS}/pushed/{check_branch(branch)}")

    def allowed(self, branch: str) -> str | None:
        """Return the commit that `allow` has recorded for a branch, or None."""
        return commit_at(self.path, f"{_OURS}/allowed/{check_branch(branch)}")

    def allow(self, branch: str, sha: str) -> None:
        """Record the commit `sha`, which the bot signed, as one whose push a person has allowed."""
        git(self.path, "update-ref", f"{_OURS}/allowed/{check_branch(branch)}", _sha(sha))

    def _took_off(self, branch: str, theirs: str) -> bool:
        """Whether others only removed commits that the bot had pushed to the branch."""
        pushed = self.pushed(branch)
        return pushed is not None and pushed != theirs and self.is_ancestor(theirs, pushed)

    def _merged_tree(self, ours: str, theirs: str) -> str | None:
        """Return the tree with the changes of both commits, or None if they conflict."""
        tree = ask(self.path, "merge-tree", "--write-tree", _sha(ours), _sha(theirs))
        return None if tree is None else tree.strip()

    def push(self, sha: str, branch: str, expected: str) -> None:
        """Move GitHub's branch from `expected` (if empty, create it) to `sha`, atomically.

        Idempotent: does nothing if the branch is at `sha` already. After a failed push the remote
        is read, because an earlier push may have taken effect though its response was lost.

        Raises:
            PushRefused: a rule refuses the push, or the branch is not at `expected`.
            GitFailure: it is unknown whether the push took effect, or another push is in progress.
        """
        ref = f"refs/heads/{check_branch(branch)}"
        lease = f"--force-with-lease={ref}:{expected and _sha(expected)}"
        known = commit_at(self.path, ref)
        home, moves = self.fork or self, f"{_sha(sha)}:{ref}"
        try:
            self._remote(self.path, home, "push", "--porcelain", lease, home.url, moves)
        except GitFailure as failure:
            try:
                line = self._remote(self.path, home, "ls-remote", home.url, ref)
            except GitFailure:
                raise failure from None
            if (there := line.partition("\t")[0]) != sha:
                refusal = re.search(r"^!\t\S+\t(.*)$", failure.out, re.MULTILINE)
                moved = there != expected
                if refusal is None or (not moved and re.search(_IN_PROGRESS, refusal[1])):
                    raise
                raise PushRefused(branch, refusal[1], failure.words, moved=moved) from None
        git(self.path, "update-ref", f"{_OURS}/pushed/{branch}", sha)
        # Pushes of several branches need not wait for each other, only for a fetch, which drops
        # the branches that it did not find. What a fetch found meanwhile is newer, and counts.
        with self._lock:
            if commit_at(self.path, ref) == known:
                git(self.path, "update-ref", ref, sha)

    def _remote(self, repository: Path, home: "Mirror | Fork", *args: str) -> str:
        return with_remote(repository, home.url, home.password(), *args)

    def _fetch_branches(self, repository: Path) -> None:
        options = ("--quiet", "--prune", "--no-tags", "--no-write-fetch-head")
        everything = ["+refs/heads/*:refs/heads/*"]
        if self.fork is not None:
            # A branch of the same name in the repository itself belongs to somebody else.
            ours = f"refs/heads/{self.fork.branches}*"
            everything.append(f"^{ours}")
            self._remote(repository, self.fork, "fetch", *options, self.fork.url, f"+{ours}:{ours}")
        self._remote(repository, self, "fetch", *options, self.url, *everything)

    def _import(self, workspace: Worktree, sha: str, ref: str) -> None:
        """Import a commit from a workspace, checked by `import_pack`, and set `ref` to it."""
        if not self.contains(sha):
            with tempfile.NamedTemporaryFile(dir=self.path / "objects", prefix="tmp_") as file:
                pack = Path(file.name)
                workspace.pack(sha, self._newest(workspace.session), pack, PACK_BYTES)
                import_pack(self.path, pack)
            if not self.contains(sha):
                words = f"the pack of {workspace.session} does not hold {sha}"
                raise GitFailure("fetch", str(self.path), words, "look at the workspace by hand")
        git(self.path, "update-ref", ref, sha)

    def _newest(self, session: str) -> list[str]:
        """Return commits in the mirror that a session's work most likely builds on."""
        shown = ("--sort=-committerdate", f"--count={_NEWEST}", "--format=%(objectname)")
        ours = (f"{_OURS}/sessions/{session}", f"{_OURS}/preserved/{session}")
        own = git(self.path, "for-each-ref", "--format=%(objectname)", *ours).splitlines()
        return own + git(self.path, "for-each-ref", *shown, "refs/heads").splitlines()

    def _published(self, sha: str) -> bool:
        """Whether the commit is on a branch of GitHub, or in what the bot last pushed to one."""
        if not self.contains(sha):
            return False
        refs = ("refs/heads", f"{_OURS}/pushed")
        return bool(git(self.path, "for-each-ref", "--count=1", "--contains", sha, *refs))

    def _drop_old_locks(self) -> bool:
        """Remove locks older than git's longest time-out; return whether there were any.

        Such locks were left by a crash.
        """
        old = time.time() - NETWORK_SECONDS
        locks = [lock for lock in self.path.rglob("*.lock") if lock.stat().st_mtime < old]
        for lock in locks:
            lock.unlink(missing_ok=True)
        return bool(locks)


def _sha(text: str) -> str:
    if not is_sha(text):
        raise ValueError(f"{text!r} is not a commit")
    return text
