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
        """Whether it is whole. One that is not has never been shown to a program."""
        ...

    def head(self) -> str | None:
        """The branch's commit, read from files alone; None where it cannot be told."""
        ...

    def commits(self) -> list[str]:
        """Every commit a branch or HEAD of the session is at, read from files alone."""
        ...

    def view(self) -> AbstractContextManager[Path]:
        """A repository of the bot's own that holds the session's objects, for this caller alone."""
        ...

    def commit_files(self, message: str, parents: list[str]) -> str | None:
        """Commit every file as it stands into the view; None where all of it is committed."""
        ...
