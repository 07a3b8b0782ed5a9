"""Defines the parts of REST responses that the bot uses; keeps repositories' current names."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from bot.github.shapes import AppSlug, Login
from lifecycle.model.policy import MergeMethod


class Identified(Struct, frozen=True):
    id: int


class CommitSha(Struct, frozen=True):
    sha: str


class SigningKeyEntry(Struct, frozen=True):
    line: str = field(name="key")  #: As in `authorized_keys`.


class _Permissions(Struct, frozen=True):
    push: bool = False


class RepositoryIdentity(Struct, frozen=True, kw_only=True):
    """A repository's id, which never changes, and its current name.

    https://docs.github.com/rest/repos/repos#get-a-repository
    """

    id: int
    name: str = field(name="full_name")  #: `owner/name`.
    archived: bool = False
    default_branch: str = ""  #: If empty, not read yet.
    permissions: _Permissions | None = None  #: Of the authenticated account.


class RepositoryAliases(dict[str, RepositoryIdentity]):
    """Maps configured names to identities, because repositories may be renamed. Thread-safe."""

    def name(self, repository: str) -> str:
        """Return a repository's current name, or the configured name if it was not read yet."""
        known = self.get(repository)
        return known.name if known else repository


class HookConfiguration(Struct, frozen=True):
    """The configuration of a webhook; `url` is the address to which GitHub sends events."""

    url: str = ""


class RepositoryWebhook(Struct, frozen=True, kw_only=True):
    """A webhook of one repository."""

    id: int
    active: bool
    events: tuple[str, ...]
    config: HookConfiguration


class RepositorySettings(Struct, frozen=True, kw_only=True):
    """A repository's settings that the bot uses.

    https://docs.github.com/rest/repos/repos#get-a-repository
    """

    default_branch: str
    private: bool
    clone_url: str
    archived: bool = False
    # GitHub returns these fields only to accounts that may push.
    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True

    @property
    def merge_methods(self) -> tuple[MergeMethod, ...]:
        """Return the merge methods that the repository allows."""
        allowed = {
            MergeMethod.MERGE: self.allow_merge_commit,
            MergeMethod.SQUASH: self.allow_squash_merge,
            MergeMethod.REBASE: self.allow_rebase_merge,
        }
        return tuple(method for method, is_allowed in allowed.items() if is_allowed)

    def merge_method(self, wanted: MergeMethod) -> MergeMethod:
        """Return the wanted merge method, or another one if only others are allowed."""
        allowed = self.merge_methods
        return wanted if wanted in allowed or not allowed else allowed[0]


class CollaboratorPermissions(Struct, frozen=True):
    """What an account may do in a repository. A custom role counts as the role that it extends."""

    triage: bool = False


class CollaboratorAccount(Struct, frozen=True):
    """An account with its permissions in a repository."""

    id: int = 0
    permissions: CollaboratorPermissions = CollaboratorPermissions()


class PermissionResponse(Struct, frozen=True):
    """The permission of an account in a repository.

    https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user
    """

    permission: str
    user: CollaboratorAccount = CollaboratorAccount()


class AppInstallation(Struct, frozen=True):
    """An installation of the App in an account.

    https://docs.github.com/rest/apps/apps#get-a-repository-installation-for-the-authenticated-app
    """

    id: int
    account: Login | None = None
    permissions: Mapping[str, str] = {}
    events: tuple[str, ...] = ()  #: Subscribed webhook events, except those that all Apps get.
    suspended_at: str | None = None


class InstalledRepository(Struct, frozen=True, kw_only=True):
    """A repository that an installation gives access to.

    https://docs.github.com/rest/apps/installations#list-repositories-accessible-to-the-app-installation
    """

    id: int
    full_name: str  #: `owner/name`.
    fork: bool = False
    archived: bool = False
    disabled: bool = False


class InstalledRepositories(Struct, frozen=True):
    repositories: tuple[InstalledRepository, ...]


class BlockingIssue(Struct, frozen=True):
    """An issue that blocks another one.

    https://docs.github.com/rest/issues/issue-dependencies#list-dependencies-an-issue-is-blocked-by
    """

    number: int
    state: str
    repository_url: str

    @property
    def repository(self) -> str:
        """Return the repository of the blocking issue as `owner/name`."""
        return "/".join(self.repository_url.rsplit("/", 2)[1:])


class CommentAuthor(Struct, frozen=True):
    login: str
    type: str


class ListedText(Struct, frozen=True):
    """A comment of one issue or pull request, or of a review thread.

    https://docs.github.com/rest/issues/comments#list-issue-comments
    """

    id: int
    user: Login | None
    body: str | None = None


class ListedComment(Struct, frozen=True):
    """A comment in the list of a repository's comments.

    https://docs.github.com/rest/issues/comments#list-issue-comments-for-a-repository
    """

    id: int
    html_url: str
    issue_url: str
    created_at: datetime
    updated_at: datetime
    body: str | None = None
    user: CommentAuthor | None = None

    @property
    def number(self) -> int:
        """Return the number of the issue or pull request that has the comment."""
        return int(self.issue_url.rpartition("/")[2])

    @property
    def on_pull(self) -> bool:
        """Whether the comment is on a pull request."""
        return f"/pull/{self.number}#" in self.html_url


class IssueState(Struct, frozen=True):
    """The state of an issue, `open` or `closed`.

    https://docs.github.com/rest/issues/issues#get-an-issue
    """

    state: str


class ListedIssue(Struct, frozen=True):
    """An issue or pull request in the list of a repository's issues.

    https://docs.github.com/rest/issues/issues#list-repository-issues
    """

    id: int
    number: int
    created_at: datetime
    body: str | None = None
    user: CommentAuthor | None = None
    pull_request: object = None


class PullEnd(Struct, frozen=True):
    """`head` or `base` of a pull request. The repository is null if it was deleted."""

    sha: str
    repo: Identified | None


class PullResponse(Struct, frozen=True):
    """A pull request: https://docs.github.com/rest/pulls/pulls#get-a-pull-request"""

    number: int
    node_id: str
    state: str
    head: PullEnd
    base: PullEnd
    user: Login | None = None
    draft: bool = False
    merged: bool = False  #: Always False in lists.
    merge_commit_sha: str | None = None
    body: str | None = None


class BranchActivity(Struct, frozen=True):
    """A change of a branch: a push, a merge, its creation or deletion.

    https://docs.github.com/rest/repos/repos#list-repository-activities
    """

    after: str  #: The branch's head after the change.
    actor: Login | None


class CheckRunOutput(Struct, frozen=True):
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations_count: int = 0


class CheckRunResponse(Struct, frozen=True):
    """A check run with its output: https://docs.github.com/rest/checks/runs#get-a-check-run"""

    id: int
    output: CheckRunOutput
    app: AppSlug | None = None


class CheckRuns(Struct, frozen=True):
    """The check runs of a commit.

    https://docs.github.com/rest/checks/runs#list-check-runs-for-a-git-reference
    """

    check_runs: tuple[CheckRunResponse, ...]


class JobStep(Struct, frozen=True):
    conclusion: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


class JobResponse(Struct, frozen=True):
    """A job of GitHub Actions with its steps.

    https://docs.github.com/rest/actions/workflow-jobs#get-a-job-for-a-workflow-run
    """

    run_id: int
    run_attempt: int = 1
    steps: tuple[JobStep, ...] = ()


class Annotation(Struct, frozen=True):
    """A message of a check run about a line of a file.

    https://docs.github.com/rest/checks/runs#list-check-run-annotations
    """

    path: str
    start_line: int
    annotation_level: str | None = None
    title: str | None = None
    message: str | None = None


class MergeDetails(Struct, frozen=True):
    """The state or result of an asynchronous merge; `uuid` is empty unless it is pending."""

    message: str
    uuid: str = ""
    sha: str = ""


class MergeProgress(Struct, frozen=True):
    """The status of an asynchronous merge, such as `pending` or `merged`, with its details.

    https://docs.github.com/rest/pulls/pulls#get-the-result-of-an-asynchronous-merge
    """

    status: str
    details: MergeDetails
