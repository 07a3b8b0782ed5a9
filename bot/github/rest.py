"""The parts of REST responses that the reader uses."""

from datetime import datetime

from msgspec import Struct


class RepositoryPermissions(Struct, frozen=True):
    """What the authenticated account may do in a repository."""

    push: bool = False


class RepositoryResponse(Struct, frozen=True):
    """https://docs.github.com/rest/repos/repos#get-a-repository

    Only accounts that may push see the merge methods.
    """

    default_branch: str
    private: bool
    clone_url: str
    archived: bool = False
    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True


class BlockingIssue(Struct, frozen=True):
    """https://docs.github.com/rest/issues/issue-dependencies#list-dependencies-an-issue-is-blocked-by"""

    number: int
    state: str
    repository_url: str

    @property
    def repository(self) -> str:
        """`owner/name`."""
        return "/".join(self.repository_url.rsplit("/", 2)[1:])


class RepositoryIdResponse(Struct, frozen=True):
    """The part of a repository that identifies it."""

    id: int
    full_name: str
    archived: bool = False
    permissions: RepositoryPermissions | None = None


class PermissionResponse(Struct, frozen=True):
    """https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user"""

    permission: str


class CommentAuthor(Struct, frozen=True):
    """The author of a comment; the type is `User`, `Bot`, ..."""

    login: str
    type: str


class ListedComment(Struct, frozen=True):
    """https://docs.github.com/rest/issues/comments#list-issue-comments-for-a-repository"""

    id: int
    html_url: str
    issue_url: str
    created_at: datetime
    updated_at: datetime
    body: str | None = None
    user: CommentAuthor | None = None

    @property
    def number(self) -> int:
        """The issue or pull request it belongs to."""
        return int(self.issue_url.rpartition("/")[2])

    @property
    def on_pull(self) -> bool:
        """Whether it belongs to a pull request."""
        return f"/pull/{self.number}#" in self.html_url


class ListedIssue(Struct, frozen=True):
    """https://docs.github.com/rest/issues/issues#list-repository-issues"""

    id: int
    number: int
    created_at: datetime
    body: str | None = None
    user: CommentAuthor | None = None
    pull_request: object = None


class AppResponse(Struct, frozen=True):
    """https://docs.github.com/rest/apps/apps#get-the-authenticated-app"""

    slug: str
