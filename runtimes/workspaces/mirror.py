"""The bot's private repository of one project: the only place it fetches into and pushes from.

refs/heads/*                             GitHub's branches, as last fetched
refs/mergewright/sessions/SESSION        a session's commits, as last taken or joined with others'
refs/mergewright/pushed/BRANCH           what was last pushed to a branch, whatever became of it
refs/mergewright/preserved/SESSION/RUN   work that removing a workspace would have lost
"""

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from runtimes.host import Workspace
from runtimes.workspaces.git import NETWORK_SECONDS, GitFailure, git, init, redact
from runtimes.workspaces.refs import check_branch, commit_at, is_sha

_OURS = "refs/mergewright"
_TEMPLATE = "pull_request_template.md"
_FILES = "Keep files that were not committed"
_UPDATES = 20  #: More updates of a branch in a row than this are not looked through.
_NEWEST = 50  #: So many of GitHub's branches are named to a host that makes a pack.
_FEW_OBJECTS = 100  #: `fetch.unpackLimit` of git.
_COMMITS = 250  #: Of a branch, no more commits than this are told of.


class PushRefused(Exception):
    """The remote does not take the push: its rules say no, or the branch is not where it was."""

    def __init__(self, reason: str, *, moved: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.moved = moved  #: Whether the branch was not at the commit expected.


class Commit(Struct, frozen=True, kw_only=True):
    """What a commit says."""

    sha: str
    subject: str
    body: str = ""


class Preserved(Struct, frozen=True, kw_only=True):
    """Work that was kept when a workspace was removed."""

    session: str
    run: int
    ref: str
    sha: str  #: Its first parent is the branch's commit, its files are those of the checkout.
    at: datetime  #: When it was kept.


class Fork(Struct, frozen=True, kw_only=True):
    """Where the bot's own branches are, if not beside the others."""

    url: str
    header: Callable[[], str]  #: As that of a mirror.
    branches: str  #: How the bot's branches begin; nothing else is fetched from there.


class Mirror:
    """One project's mirror. Methods raise `GitFailure` and may be called from any thread."""

    def __init__(
        self, path: Path, url: str, header: Callable[[], str] = str, fork: Fork | None = None
    ) -> None:
        """`header` gives the line that authorises a request to `url`, or nothing.

        `fork`: where the bot's branches are pushed to and fetched from.
        """
        self.path = path.absolute()
        self.url = url
        self.header = header
        self.fork = fork
        self._lock = threading.RLock()  # Two fetches at once stand in each other's way.

    def refresh(self) -> None:
        """Fetch every branch, drop those that are gone; make the mirror where there is none."""
        with self._lock:
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
        """The commit GitHub's branch was at, as last fetched or pushed."""
        return commit_at(self.path, f"refs/heads/{check_branch(branch)}")

    def contains(self, sha: str) -> bool:
        """Whether the commit is here."""
        line = git(self.path, "cat-file", "--batch-check", stdin=f"{_sha(sha)}^{{commit}}\n")
        return not line.endswith(" missing\n")

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether `newer` builds on `older`; a commit builds on itself."""
        try:
            git(self.path, "merge-base", "--is-ancestor", _sha(older), _sha(newer))
        except GitFailure as failure:
            if failure.code == 1:
                return False
            raise
        return True

    def merge_base(self, base: str, sha: str) -> str:
        """The last commit both have; `base` where they have none."""
        try:
            return git(self.path, "merge-base", _sha(base), _sha(sha)).strip()
        except GitFailure as failure:
            if failure.code == 1:
                return base
            raise

    def pull_template(self, sha: str) -> str:
        """What the repository wants pull requests to say, where GitHub looks for it; or nothing."""
        folders = [f"{folder}/" for folder in (".github", "docs")]
        tree = git(self.path, "ls-tree", "--name-only", "-z", _sha(sha), "--", ".", *folders)
        found = [n for n in tree.split("\0") if n.lower().rpartition("/")[2] == _TEMPLATE]
        # As on GitHub: first the one in .github, then that of the root, then that in docs.
        found.sort(key=lambda name: (".github/" not in name, "/" in name))
        return git(self.path, "show", f"{sha}:{found[0]}") if found else ""

    def subject(self, sha: str) -> str:
        """The first line of a commit's message."""
        return git(self.path, "log", "-1", "--format=%s", _sha(sha)).strip()

    def subjects(self, base: str, sha: str) -> tuple[Commit, ...]:
        """What the commits of `sha` that are not in `base` say, oldest first; at most 250."""
        return self._said_by(f"{_sha(base)}..{_sha(sha)}")

    def unpushed(self, sha: str) -> tuple[Commit, ...]:
        """The same of those that are on no branch of GitHub's."""
        return self._said_by(_sha(sha), "--not", "--branches")

    def _said_by(self, *commits: str) -> tuple[Commit, ...]:
        shown = ("-z", "--reverse", f"--max-count={_COMMITS}", "--format=%H%n%s%n%b")
        text = git(self.path, "log", *shown, *commits, "--")
        told = [record.split("\n", 2) for record in text.split("\0") if record]
        return tuple(Commit(sha=s, subject=t, body=b.strip()) for s, t, b in told)

    def take(self, workspace: Workspace) -> str:
        """Import the commits of the workspace's branch, as hostile input, and return its head."""
        head = workspace.status().head
        if head is None:
            words = f"no readable branch {workspace.branch}"
            raise GitFailure("fetch", workspace.session, words, "look at the workspace by hand")
        self._import(workspace, head, f"{_OURS}/sessions/{workspace.session}")
        return head

    def preserve(self, workspace: Workspace, run: int) -> str | None:
        """Keep what removing the workspace would lose, and return the commit that holds it.

        That is: commits GitHub never had, on any local branch, stashed or on none, and files
        changed or untracked and not ignored. None: nothing would be lost. What was kept of the
        same run before is kept with it.
        """
        status = workspace.repair()
        if not status.made:
            return None
        ref = f"{_OURS}/preserved/{workspace.session}/{run}"
        unpublished = [sha for sha in status.commits if not self._published(sha)]
        work = None if status.commits else self.known_work(workspace.session, workspace.branch)
        known = work[0] if work else ""
        earlier = commit_at(self.path, ref)
        kept = workspace.snapshot(_FILES, unpublished, earlier, known)
        if kept is not None:
            self._import(workspace, kept, ref)
        return kept

    def preserved(self, session: str = "") -> list[Preserved]:
        """What was kept of one session, or of all, oldest run first."""
        folder = f"{_OURS}/preserved/"
        fields = "--format=%(refname) %(objectname) %(committerdate:unix)"
        lines = git(self.path, "for-each-ref", fields, f"{folder}{session}").splitlines()
        found = []
        for ref, sha, at in (line.split(" ") for line in lines):
            name, _, run = ref.removeprefix(folder).partition("/")
            when = datetime.fromtimestamp(int(at), UTC)
            found.append(Preserved(session=name, run=int(run), ref=ref, sha=sha, at=when))
        return sorted(found, key=lambda kept: (kept.session, kept.run))

    def size_of(self, kept: Preserved) -> int:
        """How many bytes of objects nothing but this keeps."""
        others = ("--not", "--branches", f"--glob={_OURS}/sessions", f"--glob={_OURS}/pushed")
        rest = [other.ref for other in self.preserved() if other.ref != kept.ref]
        return int(
            git(self.path, "rev-list", "--objects", "--disk-usage", kept.sha, *others, *rest)
        )

    def forget(self, kept: Preserved) -> None:
        """Let go of what was kept, unless something else was kept there meanwhile."""
        git(self.path, "update-ref", "-d", kept.ref, kept.sha)

    def known_work(self, session: str, branch: str) -> tuple[str, str | None] | None:
        """Where a session's work stands: its newest commit, and a commit with files on top of it.

        GitHub's branch counts; what was taken or preserved counts where it builds on that.
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
        """The commit that has both a session's work and what others put on its branch.

        Where the session has nothing that GitHub never had, theirs is taken as it is, whatever it
        threw away. None: they do not go together by themselves.
        """
        if self.is_ancestor(theirs, ours) and not self._took_off(branch, theirs):
            return ours
        joined: str | None = theirs
        if not self.is_ancestor(ours, theirs) and not self._published(ours):
            joined = self._merge(branch, ours, theirs)
        if joined is not None:
            git(self.path, "update-ref", f"{_OURS}/sessions/{session}", joined)
        return joined

    def is_update(self, old: str, new: str, base: str) -> bool:
        """Whether all that came between two commits is the base branch, merged as git merges it.

        A merge in which somebody changed anything by hand is none.
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
        """A merge of two commits; None where it has conflicts, or theirs threw our pushes away."""
        pushed = self.pushed(branch)
        if pushed is not None and not self.is_ancestor(pushed, theirs):
            return None
        tree = self._merged_tree(ours, theirs)
        if tree is None:
            return None
        message = f"Merge what was pushed to {branch}"
        return git(self.path, "commit-tree", tree, "-p", ours, "-p", theirs, "-m", message).strip()

    def pushed(self, branch: str) -> str | None:
        """What we pushed to a branch last."""
        return commit_at(self.path, f"{_OURS}/pushed/{check_branch(branch)}")

    def _took_off(self, branch: str, theirs: str) -> bool:
        """Whether others only took commits off a branch that we had pushed."""
        pushed = self.pushed(branch)
        return pushed is not None and pushed != theirs and self.is_ancestor(theirs, pushed)

    def _merged_tree(self, ours: str, theirs: str) -> str | None:
        """The files of both; None where they conflict."""
        try:
            return git(self.path, "merge-tree", "--write-tree", _sha(ours), _sha(theirs)).strip()
        except GitFailure as failure:
            if failure.code == 1:
                return None
            raise

    def push(self, sha: str, branch: str, expected: str) -> None:
        """Bring GitHub's branch from `expected` (empty: no such branch) to `sha`, or not at all.

        Safe to repeat: a branch that is at `sha` already is fine. Raises `PushRefused`.
        """
        ref = f"refs/heads/{check_branch(branch)}"
        lease = f"--force-with-lease={ref}:{expected and _sha(expected)}"
        with self._lock:
            try:
                home, moves = self.fork or self, f"{_sha(sha)}:{ref}"
                self._remote(self.path, home, "push", "--porcelain", lease, home.url, moves)
            except GitFailure as failure:
                if refusal := re.search(r"^!\t\S+\t(.*)$", failure.out, re.MULTILINE):
                    raise _refused(branch, refusal[1], failure.words) from None
                raise
            git(self.path, "update-ref", ref, sha)
            git(self.path, "update-ref", f"{_OURS}/pushed/{branch}", sha)

    def _remote(self, repository: Path, home: "Mirror | Fork", *args: str) -> str:
        header = home.header()
        settings = {f"http.{home.url}.extraHeader": header} if header else {}
        scheme = urlsplit(home.url).scheme
        # `user@host:path` is how git writes an address of ssh.
        protocol = scheme or ("ssh" if re.match(r"[^/]+:", home.url) else "file")
        try:
            return git(
                repository, *args, settings=settings, protocol=protocol, seconds=NETWORK_SECONDS
            )
        except GitFailure as failure:
            raise GitFailure(
                f"{failure.command} {redact(home.url)}",
                failure.place,
                failure.words,
                failure.remedy,
                code=failure.code,
                out=failure.out,
            ) from None

    def _fetch_branches(self, repository: Path) -> None:
        options = ("--quiet", "--prune", "--no-tags", "--no-write-fetch-head")
        everything = ["+refs/heads/*:refs/heads/*"]
        if self.fork is not None:
            # A branch of the same name in the repository itself is somebody else's.
            ours = f"refs/heads/{self.fork.branches}*"
            everything.append(f"^{ours}")
            self._remote(repository, self.fork, "fetch", *options, self.fork.url, f"+{ours}:{ours}")
        self._remote(repository, self, "fetch", *options, self.url, *everything)

    def _import(self, workspace: Workspace, sha: str, ref: str) -> None:
        """Take a commit over from a workspace; every new object is checked as `fetch` would."""
        if not self.contains(sha):
            with tempfile.NamedTemporaryFile(dir=self.path / "objects", prefix="tmp_") as file:
                pack = Path(file.name)
                workspace.pack(sha, self._newest(workspace.session), pack)
                with self._lock:
                    git(self.path, *_unpacking(pack), stdin=pack, seconds=NETWORK_SECONDS)
            if not self.contains(sha):
                words = f"the pack of {workspace.session} does not hold {sha}"
                raise GitFailure("fetch", str(self.path), words, "look at the workspace by hand")
        git(self.path, "update-ref", ref, sha)

    def _newest(self, session: str) -> list[str]:
        """Commits that are here and that a session's work most likely builds on."""
        shown = ("--sort=-committerdate", f"--count={_NEWEST}", "--format=%(objectname)")
        ours = (f"{_OURS}/sessions/{session}", f"{_OURS}/preserved/{session}")
        own = git(self.path, "for-each-ref", "--format=%(objectname)", *ours).splitlines()
        return own + git(self.path, "for-each-ref", *shown, "refs/heads").splitlines()

    def _published(self, sha: str) -> bool:
        """Whether GitHub has this commit, or had it once by a push of ours."""
        if not self.contains(sha):
            return False
        refs = ("refs/heads", f"{_OURS}/pushed")
        return bool(git(self.path, "for-each-ref", "--count=1", "--contains", sha, *refs))

    def _drop_old_locks(self) -> bool:
        """Remove locks older than any git call of ours can be: those of a machine that crashed."""
        old = time.time() - NETWORK_SECONDS
        locks = [lock for lock in self.path.rglob("*.lock") if lock.stat().st_mtime < old]
        for lock in locks:
            lock.unlink(missing_ok=True)
        return bool(locks)


def _unpacking(pack: Path) -> Sequence[str]:
    """The command that imports a pack: few objects as files of their own, as `git fetch` does.

    `--strict` checks every object, and that what it refers to is there.
    """
    with pack.open("rb") as file:
        count = int.from_bytes(file.read(12)[8:])
    if count < _FEW_OBJECTS:
        return "unpack-objects", "-q", "--strict"
    return "index-pack", "--stdin", "--fix-thin", "--strict"


def _refused(branch: str, summary: str, words: str) -> PushRefused:
    said = [
        line.removeprefix("remote:").strip() for line in words.splitlines() if "remote:" in line
    ]
    reason = " ".join([f"{branch}: {summary}", *said])[:1000]
    return PushRefused(reason, moved="stale info" in summary or "cannot lock ref" in summary)


def _sha(text: str) -> str:
    if not is_sha(text):
        raise ValueError(f"{text!r} is no commit")
    return text
