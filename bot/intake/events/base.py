"""What an event may say: where to look again, and which comment a person wrote there."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

#: A number or an id that fits where it is kept.
Number = Annotated[int, Meta(ge=1, le=2**63 - 1)]


class RefreshRequest(Struct, frozen=True, kw_only=True):
    """Something about this subject of a repository may have changed."""

    repository: str  #: `owner/name`, spelled as GitHub spells it.
    repository_id: int  #: GitHub's number of it, which stays when it is renamed.
    subject: str  #: `issue:12`, `pull:34`, `branch:NAME`, `sha:HEX`; `repository:` is all.


class RawComment(Struct, frozen=True, kw_only=True):
    """A text that was just written, as a comment or where another stands; may hold commands."""

    kind: str  #: `comment`, `review`, `line` (a comment at a line) or `issue`: its own text.
    id: int  #: Its number among those of its kind.
    repository: str
    repository_id: int
    number: int  #: The issue or pull request it stands on.
    author: str
    author_type: str  #: GitHub's word for the account: `User`, `Bot`, ...
    body: str
    at: datetime


class Outcome(Struct, frozen=True, kw_only=True):
    """All that is taken from one delivery."""

    refreshes: tuple[RefreshRequest, ...] = ()
    command: RawComment | None = None
    edited: RawComment | None = None  #: What its own author has just written anew.
    rights: bool = False  #: Whether something may have changed in what we may do, or where.


class Repository(Struct, frozen=True):
    """The payloads' `repository`."""

    id: int
    full_name: str

    def refresh(self, kind: str, name: int | str) -> RefreshRequest:
        """The touch of a subject of this repository."""
        subject = f"{kind}:{name}"
        return RefreshRequest(repository=self.full_name, repository_id=self.id, subject=subject)

    def refresh_whole(self) -> RefreshRequest:
        """The touch of everything in this repository."""
        return self.refresh("repository", "")


class Numbered(Struct, frozen=True):
    """The payloads' `issue` or `pull_request`, where only its number is used."""

    number: Number


class User(Struct, frozen=True):
    """The payloads' `user`, who wrote something."""

    login: str
    type: str


class Text(Struct, frozen=True, kw_only=True):
    """The payloads' `issue`, `comment` or `review`: what somebody wrote."""

    created_at: datetime | None = None
    submitted_at: datetime | None = None  #: Of a review, in place of that.
    body: str | None = None
    user: User | None = None  #: null: the account was deleted.

    def said(self, kind: str, id: int, repository: Repository, number: int) -> RawComment | None:
        """What it says on an issue or pull request; None where nobody is known to say it."""
        at = self.created_at or self.submitted_at
        if self.user is None or at is None:
            return None
        return RawComment(
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


class Comment(Text, frozen=True, kw_only=True):
    """The payloads' `comment` or `review`."""

    id: Number


class _PullPayload(Struct, frozen=True):
    repository: Repository
    pull_request: Numbered


def read_pull(body: bytes) -> Outcome:
    """Read an event of the `pull_request` family: whatever happened, look at the pull request.

    Raises `msgspec.DecodeError` or `RecursionError` for a body that is not such an event.
    """
    payload = msgspec.json.decode(body, type=_PullPayload)
    return Outcome(refreshes=(payload.repository.refresh("pull", payload.pull_request.number),))


class _Base(Struct, frozen=True):
    repo: "_BaseRepository"


class _BaseRepository(Struct, frozen=True):
    id: int


class _ListedPull(Struct, frozen=True):
    number: Number
    base: _Base


class Checked(Struct, frozen=True):
    """The payloads' `check_run`, `check_suite` or `workflow_run`."""

    head_sha: str
    pull_requests: tuple[_ListedPull, ...] = ()

    def refreshes(self, repository: Repository) -> tuple[RefreshRequest, ...]:
        """The pull requests GitHub lists for the commit, else the commit itself.

        A fork's check lists pull requests of other repositories too; those are left out.
        """
        pulls = tuple(
            repository.refresh("pull", pull.number)
            for pull in self.pull_requests
            if pull.base.repo.id == repository.id
        )
        return pulls or (repository.refresh("sha", self.head_sha),)
