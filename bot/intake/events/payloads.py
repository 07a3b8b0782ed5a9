"""Parsed webhook events, and the payload parts that several events share."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

#: An identifier that fits the database's 64-bit integers.
Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class ChangedSubject(Struct, frozen=True, kw_only=True):
    """A part of a repository that may have changed."""

    repository: str  #: `owner/name` in GitHub's spelling.
    repository_id: int  #: Stays the same when the repository is renamed.
    subject: str  #: `issue:12`, `pull:34`, `branch:NAME`, `sha:HEX`; `repository:` for all.


class NewText(Struct, frozen=True, kw_only=True):
    """A text a person or a bot has written, which may hold commands."""

    kind: str  #: `comment`, `review`, `line` (a comment on a line) or `issue` (its description).
    id: int  #: Unique among texts of this kind.
    repository: str
    repository_id: int
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


class RepositoryPayload(Struct, frozen=True):
    """`repository`."""

    id: int
    full_name: str

    def changed(self, kind: str, name: int | str) -> ParsedEvent:
        """Return an event that reports one possibly changed subject and nothing else."""
        return ParsedEvent(changed=(self.subject(kind, name),))

    def subject(self, kind: str, name: int | str = "") -> ChangedSubject:
        """A subject of this repository."""
        return ChangedSubject(
            repository=self.full_name, repository_id=self.id, subject=f"{kind}:{name}"
        )


class NumberPayload(Struct, frozen=True):
    """`issue` or `pull_request`, where only the number is used."""

    number: Id


class UserPayload(Struct, frozen=True):
    """`user` or `sender`."""

    login: str
    type: str


class TextPayload(Struct, frozen=True, kw_only=True):
    """The fields that `issue`, `comment` and `review` share."""

    created_at: datetime | None = None
    submitted_at: datetime | None = None  #: A review has this in place of `created_at`.
    body: str | None = None
    user: UserPayload | None = None  #: null where the account was deleted.

    def text(
        self, kind: str, id: int, repository: RepositoryPayload, number: int
    ) -> NewText | None:
        """The text with its author and place; None where the author is unknown."""
        at = self.created_at or self.submitted_at
        if self.user is None or at is None:
            return None
        return NewText(
            kind=kind,
            id=id,
            repository=repository.full_name,
            repository_id=repository.id,
            number=number,
            author=self.user.login,
            author_type=self.user.type,
            body=self.body or "",
            at=at,
        )


class CommentPayload(TextPayload, frozen=True, kw_only=True):
    """`comment` or `review`."""

    id: Id
