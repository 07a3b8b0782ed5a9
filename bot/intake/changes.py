"""What is taken from a delivery: the subjects that may have changed, and a new text."""

from datetime import datetime
from typing import NamedTuple

from msgspec import Struct


class RepositoryPayload(Struct, frozen=True):
    """A repository, which keeps its id when it is renamed."""

    id: int
    full_name: str  #: `owner/name`.

    def changed(
        self, kind: str, name: int | str, written: "NewText | None" = None
    ) -> "ParsedEvent":
        """An event that reports one possibly changed subject, and a new text."""
        return ParsedEvent(changed=(self.subject(kind, name),), written=written)

    def subject(self, kind: str, name: int | str = "") -> "ChangedSubject":
        return ChangedSubject(self, f"{kind}:{name}")


class ChangedSubject(NamedTuple):
    """A part of a repository that may have changed."""

    repository: RepositoryPayload
    subject: str  #: `issue:12`, `pull:34`, `branch:NAME`, `sha:HEX`; `repository:` for all.


class NewText(Struct, frozen=True, kw_only=True):
    """A text a person or a bot has written, which may hold commands."""

    kind: str  #: `comment`, `review`, `line` (a comment on a line) or `issue` (its description).
    id: int  #: Unique among texts of this kind.
    repository: RepositoryPayload
    number: int  #: The issue or pull request it belongs to.
    author: str
    author_type: str  #: GitHub's type of the account: `User`, `Bot`, ...
    body: str
    at: datetime


class ParsedEvent(Struct, frozen=True, kw_only=True):
    """Everything taken from one delivery."""

    changed: tuple[ChangedSubject, ...] = ()
    written: NewText | None = None
    edited: NewText | None = None  #: An existing comment its own author has changed.
    access_changed: bool = False  #: Whether the bot's permissions or repositories may differ.
