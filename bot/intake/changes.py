"""What is taken from a delivery: the subjects that may have changed, and a new text."""

from datetime import datetime
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

#: No login of GitHub has a colon; the bot's own names for people of this machine do (`cli:ann`).
Login = Annotated[str, Meta(pattern=r"^[^:]*$")]


class RepositoryPayload(Struct, frozen=True):
    """A repository, which keeps its id when it is renamed."""

    id: Annotated[int, Meta(ge=0, le=2**63 - 1)]  #: 0: unknown.
    full_name: str  #: `owner/name`.

    def changed(
        self,
        kind: str,
        name: int | str,
        written: "NewText | None" = None,
        branch: str | None = None,
        labels: frozenset[str] | None = None,
    ) -> "ParsedEvent":
        """An event that reports one possibly changed subject, and a new text."""
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
    """A part of a repository that may have changed."""

    repository: RepositoryPayload
    subject: str  #: `issue:12`, `pull:34`, `branch:NAME`, `sha:HEX`; `repository:` for all.
    #: What the payload says about it, by which it may be recognised as no session's; None: nothing.
    branch: str | None = None  #: The branch of a pull request.
    #: The labels of an issue, and its assignees as `@login`, in lower case.
    labels: frozenset[str] | None = None


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
