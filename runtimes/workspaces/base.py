"""What the mirror needs of a workspace, whichever kind it is."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Workspace(Protocol):
    """One session's checkout with its own repository, which an agent may have filled with traps."""

    session: str
    branch: str

    @property
    def made(self) -> bool:
        """Whether it is whole. One that is not was never shown to a program, or is spoiled."""
        ...

    def mend(self) -> None:
        """Make a spoiled workspace readable; nothing where it is not spoiled."""
        ...

    def head(self) -> str | None:
        """The branch's commit, read from files alone; None where it cannot be told."""
        ...

    def commits(self) -> list[str]:
        """Every commit a branch, HEAD or a stash of the session is at, read from files alone."""
        ...

    def anchor(self) -> str:
        """The commit its files are compared with: its branch's, or the newest that is known."""
        ...

    def view(self) -> AbstractContextManager[Path]:
        """A repository of the bot's own that holds the session's objects, for this caller alone."""
        ...

    def commit_files(self, message: str, parents: list[str]) -> str | None:
        """Commit every file as it stands into the view; None where all of it is committed."""
        ...
