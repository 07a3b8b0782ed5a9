"""The parts of REST's answers that are read, and nothing else: as `shapes` has GraphQL's."""

from datetime import datetime

from msgspec import Struct


class RepositoryPermissions(Struct, frozen=True):
    """What the asking account may do in a repository."""

    push: bool = False


class RepositoryResponse(Struct, frozen=True):
    """GET repos/OWNER/NAME. The merge methods are shown to those who may push."""

    default_branch: str
    private: bool
    clone_url: str
    archived: bool = False
    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True


class BlockingIssue(Struct, frozen=True):
    """One entry of GET issues/NUMBER/dependencies/blocked_by."""

    number: int
    state: str
    repository_url: str

    @property
    def repository(self) -> str:
        """Where it is: `owner/name`."""
        return "/".join(self.repository_url.rsplit("/", 2)[1:])


class RepositoryIdResponse(Struct, frozen=True):
    """GET repos/OWNER/NAME or repositories/ID, as far as it says which repository it is."""

    id: int
    full_name: str
    archived: bool = False
    permissions: RepositoryPermissions | None = None


class PermissionResponse(Struct, frozen=True):
    """GET collaborators/LOGIN/permission."""

    permission: str


class CommentAuthor(Struct, frozen=True):
    """Who wrote a comment: its account, and GitHub's word for what that is."""

    login: str
    type: str


class ListedComment(Struct, frozen=True):
    """One entry of GET issues/comments: on an issue, or in a pull request's conversation."""

    id: int
    html_url: str
    issue_url: str
    created_at: datetime
    updated_at: datetime
    body: str | None = None
    user: CommentAuthor | None = None

    @property
    def number(self) -> int:
        """The issue or pull request it stands on."""
        return int(self.issue_url.rpartition("/")[2])

    @property
    def on_pull(self) -> bool:
        """Whether that is a pull request."""
        return f"/pull/{self.number}#" in self.html_url


class ListedIssue(Struct, frozen=True):
    """One entry of GET issues, with who wrote it and what."""

    id: int
    number: int
    created_at: datetime
    body: str | None = None
    user: CommentAuthor | None = None
    pull_request: object = None


class AppResponse(Struct, frozen=True):
    """GET app."""

    slug: str
