"""The interface to a session's workspace on its host; see `runtimes.host`."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct


class WorkspaceRef(Struct, frozen=True, kw_only=True):
    """Names a session's workspace."""

    session: str
    branch: str
    origin: str  #: Where the host gets the project's commits: an address `git fetch` understands.
    sign_off: bool = False  #: Whether the agent's commits get a `Signed-off-by` line.


class WorkspaceStatus(Struct, frozen=True, kw_only=True):
    """The state of a workspace, as far as it is known without running git."""

    exists: bool = False  #: Whether there is anything of it, whole or not.
    made: bool = False  #: Whether it was whole once, so that an agent may have worked in it.
    whole: bool = False  #: Whether its checkout and branch can be used as they are.
    location: str = ""  #: Where it is, for people.
    base: str = ""  #: The commit the work begins at; empty: it is not known any more.
    head: str | None = None  #: The branch's commit; None: unreadable.
    commits: tuple[str, ...] = ()  #: Those at branches, HEAD and stashes of the session.


class WorkspaceChanges(Struct, frozen=True, kw_only=True):
    """The work in a workspace, in words."""

    commits: tuple[str, ...]  #: A line for each, oldest first; at most 250.
    uncommitted: tuple[str, ...]  #: Entries of `git status --porcelain`.


class Workspace(Protocol):
    """A session's checkout, which an agent may have filled with traps.

    `Host.workspace` only names it. Every other method may raise `GitFailure`.
    """

    session: str
    branch: str

    def status(self) -> WorkspaceStatus:
        """The workspace's state, read from files alone."""
        ...

    def repair(self) -> WorkspaceStatus:
        """Recreate what is needed to read the work, if an agent has removed it."""
        ...

    def create(self, start: str, files: str | None, base: str) -> None:
        """Make the workspace with its branch at a commit; what is there already is removed.

        `files` is a commit whose files are laid over the checkout, uncommitted. `base` is the
        commit the work begins at; it is kept.
        """
        ...

    def set_base(self, base: str) -> None:
        """Keep the commit the work begins at."""
        ...

    def dirty(self) -> bool:
        """Whether files are changed, or untracked and not ignored; submodules do not count."""
        ...

    def changes(self, base: str) -> WorkspaceChanges:
        """The commits since `base`, and what is not committed."""
        ...

    def pack(self, commit: str, have: Collection[str], into: Path) -> None:
        """Write the objects of a commit into a file of the caller's, as a thin pack.

        Objects of commits that the caller has are omitted. A pack is hostile input: the importer
        must check its objects.
        """
        ...

    def snapshot(
        self, message: str, unpublished: Sequence[str], earlier: str | None, known: str
    ) -> str | None:
        """Commit all files as they are, beside the session's branch, and return the commit.

        Its parents are the branch's commit (`known` where none can be read), the commits that are
        published nowhere, and the earlier snapshot. None: all files are committed and published.
        """
        ...

    def move(self, old: str, new: str) -> None:
        """Bring branch and files from one commit to another, which `origin` has.

        Call it only while the agent is at rest. Does nothing if the branch is at `new` already.
        """
        ...

    def hold(self, commit: str, patterns: Sequence[str]) -> bool:
        """Begin to hold the files that match as they are in a commit.

        True: some of them hold work that is not committed, and `put_back` would lose it.
        """
        ...

    def put_back(self, head: str) -> Sequence[str]:
        """Restore the held files. Returns those of which `head` has another version."""
        ...

    def remove(self) -> None:
        """Remove the whole workspace. Idempotent."""
        ...
