"""The parts of GraphQL's answers that are read, and nothing else: unknown fields are skipped.

A field that is missing or null where it must not be makes the whole answer unreadable, which is
`TryLater`: what is not there is never taken for "fine".
"""

from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")


class Shape(Struct, frozen=True, kw_only=True, rename="camel"):
    """GraphQL's spelling of names."""


class Page(Shape, frozen=True):
    """Where a list goes on."""

    has_next_page: bool
    end_cursor: str | None = None


class Nodes(Shape, Generic[T], frozen=True):
    """A list that is read in one go."""

    nodes: tuple[T, ...]


class Newest(Shape, Generic[T], frozen=True):
    """The end of a list, and how many there are in all."""

    total_count: int
    nodes: tuple[T, ...]


class Paged(Shape, Generic[T], frozen=True):
    """One page of a list."""

    page_info: Page
    nodes: tuple[T, ...]


class Count(Shape, frozen=True):
    """How many there are."""

    total_count: int


class Actor(Shape, frozen=True):
    """An account. GraphQL leaves away the `[bot]` with which REST names an App's account."""

    typename: str = field(name="__typename")
    login: str


class Named(Shape, frozen=True):
    """Something of which only the name matters."""

    name: str


class Commit(Shape, frozen=True):
    """A commit's name."""

    oid: str


class RepositoryName(Shape, frozen=True):
    """A repository's name, as `owner/name`."""

    name_with_owner: str


# issue.graphql


class Event(Shape, frozen=True):
    """A label or an assignee put on or taken off, a new title, or that it was reopened."""

    typename: str = field(name="__typename")
    created_at: datetime
    actor: Actor | None = None
    label: Named | None = None
    assignee: Actor | None = None


class Assignee(Shape, frozen=True):
    """Whom an issue is assigned to."""

    login: str


class IssueOrPull(Shape, frozen=True):
    """What has this number."""

    typename: str = field(name="__typename")
    number: int
    title: str
    body: str
    url: str
    closed: bool
    last_edited_at: datetime | None
    author: Actor | None
    editor: Actor | None
    labels: Nodes[Named]
    timeline_items: Nodes[Event]
    assignees: Nodes[Assignee] | None = None  #: Not asked for of a pull request.
    state_reason: str | None = None


class IssueRepository(Shape, frozen=True):
    """The repository around it."""

    is_private: bool
    issue_or_pull_request: IssueOrPull


class IssueData(Shape, frozen=True):
    """The answer to issue.graphql."""

    repository: IssueRepository


# pulls_of_branch.graphql


class PullOfBranch(Shape, frozen=True):
    """A pull request whose head has the branch's name, in whatever repository."""

    number: int
    head_repository: RepositoryName | None


class BranchRepository(RepositoryName, frozen=True):
    """The repository around them."""

    pull_requests: Paged[PullOfBranch]


class BranchData(Shape, frozen=True):
    """The answer to pulls_of_branch.graphql."""

    repository: BranchRepository


# pull.graphql


class Comment(Shape, frozen=True):
    """A comment on the pull request or in a thread."""

    full_database_id: str  # A string, since the number may have 64 bits.
    body: str
    created_at: datetime
    last_edited_at: datetime | None
    author: Actor | None
    editor: Actor | None
    diff_hunk: str = ""


class Review(Shape, frozen=True):
    """One review."""

    full_database_id: str
    state: str
    body: str
    submitted_at: datetime | None
    last_edited_at: datetime | None
    author_can_push_to_repository: bool
    commit: Commit | None
    author: Actor | None
    editor: Actor | None


class ReviewThread(Shape, frozen=True):
    """A thread with its newest 100 comments."""

    id: str
    path: str
    line: int | None
    original_line: int | None
    start_line: int | None
    original_start_line: int | None
    is_resolved: bool
    is_outdated: bool
    comments: Newest[Comment]


class WorkflowRun(Shape, frozen=True):
    """What started a job of GitHub Actions."""

    event: str
    workflow: Named


class App(Shape, frozen=True):
    """The App that made a check run."""

    slug: str


class CheckSuite(Shape, frozen=True):
    """The group a check run belongs to."""

    app: App | None
    workflow_run: WorkflowRun | None


class Told(Shape, frozen=True, kw_only=True):
    """What a CheckRun or a StatusContext says."""

    typename: str = field(name="__typename")
    # CheckRun
    name: str = ""
    status: str | None = None
    conclusion: str | None = None
    check_suite: CheckSuite | None = None
    # StatusContext
    context: str = ""
    state: str | None = None
    creator: Actor | None = None


class Context(Told, frozen=True, kw_only=True):
    """One of a pull request's head."""

    is_required: bool
    # CheckRun
    database_id: int = 0
    details_url: str | None = None
    # StatusContext
    description: str | None = None
    target_url: str | None = None
    created_at: datetime | None = None


class Rollup(Shape, frozen=True):
    """All checks of a commit. GitHub gives null for one that may not be seen."""

    contexts: Paged[Context | None]


class HeadCommit(Commit, frozen=True):
    """The newest commit, with its checks."""

    status_check_rollup: Rollup | None


class HeadNode(Shape, frozen=True):
    """The wrapping GitHub puts around a pull request's commit."""

    commit: HeadCommit


class Protection(Shape, frozen=True):
    """The branch protection rule of the base branch."""

    requires_status_checks: bool
    required_status_check_contexts: tuple[str | None, ...] | None


class RequiredCheck(Shape, frozen=True):
    """One check that a ruleset requires."""

    context: str


class Parameters(Shape, frozen=True):
    """A rule's parameters; those of other rules read as none."""

    required_status_checks: tuple[RequiredCheck, ...] = ()


class Rule(Shape, frozen=True):
    """One rule that a ruleset lays on the base branch."""

    type: str
    parameters: Parameters | None


class BaseRef(Shape, frozen=True):
    """The base branch, with the rules we are allowed to see."""

    target: Commit | None
    branch_protection_rule: Protection | None
    rules: Nodes[Rule] | None


class TriedCheck(Told, frozen=True, kw_only=True):
    """One of the commit that a merge queue tried."""

    # CheckRun
    database_id: int = 0
    details_url: str | None = None
    # StatusContext
    target_url: str | None = None


class TriedRollup(Shape, frozen=True):
    """The first hundred checks of that commit."""

    contexts: Nodes[TriedCheck | None]


class TriedCommit(Shape, frozen=True):
    """The commit by which a merge queue tried a pull request on its base."""

    status_check_rollup: TriedRollup | None


class RemovedFromQueue(Shape, frozen=True):
    """That a merge queue let go of a pull request."""

    created_at: datetime
    reason: str | None = None
    before_commit: TriedCommit | None = None


class PullRequest(Shape, frozen=True):
    """A pull request, or one page of its lists."""

    number: int
    title: str
    body: str
    url: str
    state: str
    is_draft: bool
    mergeable: str
    merge_state_status: str
    review_decision: str | None
    author: Actor | None
    merged_by: Actor | None
    head_ref_name: str
    head_ref_oid: str
    head_repository: RepositoryName | None
    base_ref_name: str
    base_ref_oid: str
    base_ref: BaseRef | None
    labels: Nodes[Named]
    is_in_merge_queue: bool
    is_merge_queue_enabled: bool
    timeline_items: Nodes[RemovedFromQueue]
    review_requests: Count
    latest_opinionated_reviews: Paged[Review]
    reviews: Paged[Review]
    comments: Paged[Comment]
    review_threads: Paged[ReviewThread]
    commits: Nodes[HeadNode]


class PullRepository(Shape, frozen=True):
    """The repository around it."""

    pull_request: PullRequest


class PullData(Shape, frozen=True):
    """The answer to pull.graphql."""

    repository: PullRepository


# viewer.graphql


class Login(Shape, frozen=True):
    """An account's name."""

    login: str


class ViewerData(Shape, frozen=True):
    """The answer to viewer.graphql."""

    viewer: Login
