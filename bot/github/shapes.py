"""The parts of GraphQL's answers that are read, and nothing else: unknown fields are skipped.

A field that is missing or null where it must not be makes the whole answer unreadable, which is
`TryLater`: what is not there is never taken for "fine".
"""

from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")


class GraphQLShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """GraphQL's spelling of names."""


class PageInfo(GraphQLShape, frozen=True):
    """Where a list goes on."""

    has_next_page: bool
    end_cursor: str | None = None


class NodeList(GraphQLShape, Generic[T], frozen=True):
    """A list that is read in one go."""

    nodes: tuple[T, ...]


class NewestNodes(GraphQLShape, Generic[T], frozen=True):
    """The end of a list, and how many there are in all."""

    total_count: int
    nodes: tuple[T, ...]


class NodePage(GraphQLShape, Generic[T], frozen=True):
    """One page of a list."""

    page_info: PageInfo
    nodes: tuple[T, ...]


class TotalCount(GraphQLShape, frozen=True):
    """How many there are."""

    total_count: int


class Actor(GraphQLShape, frozen=True):
    """An account. GraphQL leaves away the `[bot]` with which REST names an App's account."""

    typename: str = field(name="__typename")
    login: str


class NamedNode(GraphQLShape, frozen=True):
    """Something of which only the name matters."""

    name: str


class CommitNode(GraphQLShape, frozen=True):
    """A commit's name."""

    oid: str


class RepositoryName(GraphQLShape, frozen=True):
    """A repository's name, as `owner/name`."""

    name_with_owner: str


# issue.graphql


class TimelineEvent(GraphQLShape, frozen=True):
    """A label or an assignee put on or taken off, a new title, or that it was reopened."""

    typename: str = field(name="__typename")
    created_at: datetime
    actor: Actor | None = None
    label: NamedNode | None = None
    assignee: Actor | None = None


class Assignee(GraphQLShape, frozen=True):
    """Whom an issue is assigned to."""

    login: str


class IssueOrPull(GraphQLShape, frozen=True):
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
    labels: NodeList[NamedNode]
    timeline_items: NodeList[TimelineEvent]
    assignees: NodeList[Assignee] | None = None  #: Not asked for of a pull request.
    state_reason: str | None = None


class IssueRepository(GraphQLShape, frozen=True):
    """The repository around it."""

    is_private: bool
    issue_or_pull_request: IssueOrPull


class IssueData(GraphQLShape, frozen=True):
    """The answer to issue.graphql."""

    repository: IssueRepository


# pulls_of_branch.graphql


class PullOfBranch(GraphQLShape, frozen=True):
    """A pull request whose head has the branch's name, in whatever repository."""

    number: int
    head_repository: RepositoryName | None


class BranchRepository(RepositoryName, frozen=True):
    """The repository around them."""

    pull_requests: NodePage[PullOfBranch]


class BranchData(GraphQLShape, frozen=True):
    """The answer to pulls_of_branch.graphql."""

    repository: BranchRepository


# pull.graphql


class CommentNode(GraphQLShape, frozen=True):
    """A comment on the pull request or in a thread."""

    full_database_id: str  # A string, since the number may have 64 bits.
    body: str
    created_at: datetime
    last_edited_at: datetime | None
    author: Actor | None
    editor: Actor | None
    diff_hunk: str = ""


class ReviewNode(GraphQLShape, frozen=True):
    """One review."""

    full_database_id: str
    state: str
    body: str
    submitted_at: datetime | None
    last_edited_at: datetime | None
    author_can_push_to_repository: bool
    commit: CommitNode | None
    author: Actor | None
    editor: Actor | None


class ReviewThread(GraphQLShape, frozen=True):
    """A thread with its newest 100 comments."""

    id: str
    path: str
    line: int | None
    original_line: int | None
    start_line: int | None
    original_start_line: int | None
    is_resolved: bool
    is_outdated: bool
    comments: NewestNodes[CommentNode]


class WorkflowRun(GraphQLShape, frozen=True):
    """What started a job of GitHub Actions."""

    event: str
    workflow: NamedNode


class CheckApp(GraphQLShape, frozen=True):
    """The App that made a check run."""

    slug: str


class CheckSuite(GraphQLShape, frozen=True):
    """The group a check run belongs to."""

    app: CheckApp | None
    workflow_run: WorkflowRun | None


class CheckContext(GraphQLShape, frozen=True, kw_only=True):
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


class HeadCheck(CheckContext, frozen=True, kw_only=True):
    """One of a pull request's head."""

    is_required: bool
    # CheckRun
    database_id: int = 0
    details_url: str | None = None
    # StatusContext
    description: str | None = None
    target_url: str | None = None
    created_at: datetime | None = None


class CheckRollup(GraphQLShape, frozen=True):
    """All checks of a commit. GitHub gives null for one that may not be seen."""

    contexts: NodePage[HeadCheck | None]


class HeadCommit(CommitNode, frozen=True):
    """The newest commit, with its checks."""

    status_check_rollup: CheckRollup | None


class HeadNode(GraphQLShape, frozen=True):
    """The wrapping GitHub puts around a pull request's commit."""

    commit: HeadCommit


class BranchProtection(GraphQLShape, frozen=True):
    """The branch protection rule of the base branch."""

    requires_status_checks: bool
    required_status_check_contexts: tuple[str | None, ...] | None


class RequiredCheck(GraphQLShape, frozen=True):
    """One check that a ruleset requires."""

    context: str


class RuleParameters(GraphQLShape, frozen=True):
    """A rule's parameters; those of other rules read as none."""

    required_status_checks: tuple[RequiredCheck, ...] = ()


class RulesetRule(GraphQLShape, frozen=True):
    """One rule that a ruleset lays on the base branch."""

    type: str
    parameters: RuleParameters | None


class BaseRef(GraphQLShape, frozen=True):
    """The base branch, with the rules we are allowed to see."""

    target: CommitNode | None
    branch_protection_rule: BranchProtection | None
    rules: NodeList[RulesetRule] | None


class QueueCheck(CheckContext, frozen=True, kw_only=True):
    """One of the commit that a merge queue tried."""

    # CheckRun
    database_id: int = 0
    details_url: str | None = None
    # StatusContext
    target_url: str | None = None


class QueueRollup(GraphQLShape, frozen=True):
    """The first hundred checks of that commit."""

    contexts: NodeList[QueueCheck | None]


class QueueCommit(GraphQLShape, frozen=True):
    """The commit by which a merge queue tried a pull request on its base."""

    status_check_rollup: QueueRollup | None


class RemovedFromQueueEvent(GraphQLShape, frozen=True):
    """That a merge queue let go of a pull request."""

    created_at: datetime
    reason: str | None = None
    before_commit: QueueCommit | None = None


class PullRequest(GraphQLShape, frozen=True):
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
    labels: NodeList[NamedNode]
    is_in_merge_queue: bool
    is_merge_queue_enabled: bool
    timeline_items: NodeList[RemovedFromQueueEvent]
    review_requests: TotalCount
    latest_opinionated_reviews: NodePage[ReviewNode]
    reviews: NodePage[ReviewNode]
    comments: NodePage[CommentNode]
    review_threads: NodePage[ReviewThread]
    commits: NodeList[HeadNode]


class PullRepository(GraphQLShape, frozen=True):
    """The repository around it."""

    pull_request: PullRequest


class PullData(GraphQLShape, frozen=True):
    """The answer to pull.graphql."""

    repository: PullRepository


# viewer.graphql


class Login(GraphQLShape, frozen=True):
    """An account's name."""

    login: str


class ViewerData(GraphQLShape, frozen=True):
    """The answer to viewer.graphql."""

    viewer: Login
