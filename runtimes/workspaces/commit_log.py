"""Reads the log of commits, which may be hostile, in one call of git."""

from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from runtimes.workspaces.git import git

#: What git prints of a commit. NULs separate these fields, because none of them contains a NUL.
_FIELDS = ("%H", "%P", "%e", "%an", "%ae", "%cn", "%ce", "%s", "%b")


class Identity(NamedTuple):
    """The author or the committer of a commit."""

    name: str
    email: str


class Commit(Struct, frozen=True, kw_only=True):
    """A commit without its files."""

    sha: str
    subject: str
    body: str = ""
    by: Identity = Identity("", "")  #: The author.
    committer: Identity = Identity("", "")
    parents: int = 1  #: The number of its parents.
    encoding: str = ""  #: The message's encoding, as the commit names it; empty if it names none.

    @property
    def author(self) -> str:
        """The author as `NAME <EMAIL>`, in one line."""
        return f"{self.by.name} <{self.by.email}>".replace("\r", " ")


def read_log(repository: Path, *revisions: str) -> tuple[Commit, ...]:
    """Return the commits that `git log` shows for these revisions and options, oldest first.

    Raises `GitFailure`, also for more than 64 MiB of messages.
    """
    form = "--format=" + "%x00".join(_FIELDS)
    text = git(repository, "log", "-z", "--reverse", form, *revisions, "--")
    fields = iter(text.split("\0")[:-1])
    records = zip(*[fields] * len(_FIELDS), strict=True)
    return tuple(
        Commit(
            sha=sha,
            # A subject may have a carriage return, which people see as the end of a line.
            subject=subject.replace("\r", " "),
            body=body.replace("\r", "\n").strip(),
            by=Identity(*author),
            committer=Identity(*committer),
            parents=len(parents.split()),
            encoding=encoding,
        )
        for sha, parents, encoding, *people, subject, body in records
        for author, committer in [(people[:2], people[2:])]
    )
