"""Defines what is taken from a delivery: the subjects that may have changed, and any new text."""

from datetime import datetime
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

#: A GitHub login never has a colon, unlike the bot's names for local users (`cli:ann`).
Login = Annotated[str, Meta(pattern=r"^[^:]*$")]


class RepositoryPayload(Struct, frozen=True):
    """A repository, which keeps its id when it is renamed."""

    id: Annotated[int, Meta(ge=0, le=2**63 - 1)]  #: If 0, unknown.
    full_name: str  #: `owner/name`.

    def changed(
        self,
        kind: str,
        name: int | str,
        written: "NewText | None" = None,
        branch: str | None = None,
        labels: frozenset[str] | None = None,
    ) -> "ParsedEvent":
        """Return an event with one possibly changed subject, `KIND:NAME`, and perhaps a text.

        `branch` and `labels` are as in `ChangedSubject`.
        """
        subject = self.subject(kind, name, branch, labels)
        return ParsedEvent(changed=(subject,), written=written)

    def subject(
        self,
        kind: str,
        name: int | str = "",
        branch: str | None = None,
        labels: frozenset[str] | None = None,
    ) -> "ChangedSubject":
        return ChangedSubject(self, f"{kind}:{name}", branch, labels)


class ChangedSubject(NamedTuple):
    """An issue, pull request, branch, commit or whole repository that may have changed."""

    repository: RepositoryPayload
    subject: str  #: `issue:12`, `pull:34`, `branch:NAME`, `sha:HEX` or `repository:`.
    # From the next two fields, `Relevance` sees that a subject concerns no session. None means that
    # the payload lacks the field.
    branch: str | None = None  #: The branch of a pull request.
    #: The labels of an issue, and its assignees as `@login`, in lower case.
    labels: frozenset[str] | None = None


class NewText(Struct, frozen=True, kw_only=True):
    """A text that a person or a bot has written, which may contain commands."""

    kind: str  #: `comment`, `review`, `line` (a comment on a line) or `issue` (its description).
    id: int  #: Unique at GitHub for this kind; for an `issue`, only its number.
    repository: RepositoryPayload
    number: int  #: The number of the issue or pull request.
    author: str
    author_type: str  #: GitHub's type of the account: `User`, `Bot`, ...
    body: str
    at: datetime


class ParsedEvent(Struct, frozen=True, kw_only=True):
    """Everything taken from one delivery."""

    changed: tuple[ChangedSubject, ...] = ()
    written: NewText | None = None
    edited: NewText | None = None  #: A comment that its author has edited.
    access_changed: bool = False  #: Whether the bot's permissions or repositories may have changed.
