"""The parts of GraphQL responses that the reader uses; other fields are ignored.

A field that is unexpectedly missing or null makes the whole response invalid, which is `TryLater`:
missing data never means success. https://docs.github.com/en/graphql/reference/objects
"""

from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")


class GraphQLShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """A GraphQL object, whose fields are spelled in camel case."""


class PageInfo(GraphQLShape, frozen=True):
    """GraphQL's `PageInfo`: where a list continues."""

    has_next_page: bool
    end_cursor: str | None = None


class NodeList(GraphQLShape, Generic[T], frozen=True):
    """A list that is read in one piece."""

    nodes: tuple[T, ...]


class NewestNodes(GraphQLShape, Generic[T], frozen=True):
    """The last items of a list, and its total length."""

    total_count: int
    nodes: tuple[T, ...]


class NodePage(GraphQLShape, Generic[T], frozen=True):
    """One page of a list."""

    page_info: PageInfo
    nodes: tuple[T, ...]


class TotalCount(GraphQLShape, frozen=True):
    """The length of a list."""

    total_count: int


class Actor(GraphQLShape, frozen=True):
    """An account. GraphQL omits the `[bot]` that ends an App's login in REST."""

    typename: str = field(name="__typename")
    login: str


class NamedNode(GraphQLShape, frozen=True):
    """An object of which only the name is used."""

    name: str


class CommitNode(GraphQLShape, frozen=True):
    """A commit."""

    oid: str


class RepositoryName(GraphQLShape, frozen=True):
    """A repository, as `owner/name`."""

    name_with_owner: str


# issue.graphql


class TimelineEvent(GraphQLShape, frozen=True):
    """An event of an issue: labelled, assigned, renamed, reopened, ..."""

    typename: str = field(name="__typename")
    created_at: datetime
    actor: Actor | None = None
    label: NamedNode | None = None
    assignee: Actor | None = None


class Assignee(GraphQLShape, frozen=True):
    """An assignee."""

    login: str


class IssueOrPull(GraphQLShape, frozen=True):
    """The issue or pull request with a number."""

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
    assignees: NodeList[Assignee] | None = None  #: Not queried for a pull request.
    state_reason: str | None = None


class IssueRepository(GraphQLShape, frozen=True):
    """The repository."""

    is_private: bool
    issue_or_pull_request: IssueOrPull


class IssueData(GraphQLShape, frozen=True):
    """issue.graphql"""

    repository: IssueRepository


# pulls_of_branch.graphql


class PullOfBranch(GraphQLShape, frozen=True):
    """A pull request from a branch of this name in any repository."""

    number: int
    head_repository: RepositoryName | None


class BranchRepository(RepositoryName, frozen=True):
    """The repository."""

    pull_requests: NodePage[PullOfBranch]


class BranchData(GraphQLShape, frozen=True):
    """pulls_of_branch.graphql"""

    repository: BranchRepository


# pull.graphql


class CommentNode(GraphQLShape, frozen=True):
    """A comment on the pull request or in a thread."""

    full_database_id: str  # A string, because it has 64 bits.
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
    """The workflow run of a GitHub Actions job."""

    event: str
    workflow: NamedNode


class CheckApp(GraphQLShape, frozen=True):
    """The App that made a check run."""

    slug: str


class CheckSuite(GraphQLShape, frozen=True):
    """The check suite of a check run."""

    app: CheckApp | None
    workflow_run: WorkflowRun | None


class CheckContext(GraphQLShape, frozen=True, kw_only=True):
    """A `CheckRun` or a `StatusContext`."""

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
    """A check of a pull request's head."""

    is_required: bool
    # CheckRun
    database_id: int = 0
    details_url: str | None = None
    # StatusContext
    description: str | None = None
    target_url: str | None = None
    created_at: datetime | None = None


class CheckRollup(GraphQLShape, frozen=True):
    """The checks of a commit; null for one that the bot may not see."""

    contexts: NodePage[HeadCheck | None]


class HeadCommit(CommitNode, frozen=True):
    """The newest commit, with its checks."""

    status_check_rollup: CheckRollup | None


class HeadNode(GraphQLShape, frozen=True):
    """A `PullRequestCommit`."""

    commit: HeadCommit


class BranchProtection(GraphQLShape, frozen=True):
    """The branch protection rule of the base branch."""

    requires_status_checks: bool
    required_status_check_contexts: tuple[str | None, ...] | None


class RequiredCheck(GraphQLShape, frozen=True):
    """One check that a ruleset requires."""

    context: str


class RuleParameters(GraphQLShape, frozen=True):
    """The parameters of a rule; empty for rules of other types."""

    required_status_checks: tuple[RequiredCheck, ...] = ()


class RulesetRule(GraphQLShape, frozen=True):
    """A rule of a ruleset for the base branch."""

    type: str
    parameters: RuleParameters | None


class BaseRef(GraphQLShape, frozen=True):
    """The base branch, with the rules that the bot may see."""

    target: CommitNode | None
    branch_protection_rule: BranchProtection | None
    rules: NodeList[RulesetRule] | None


class QueueCheck(CheckContext, frozen=True, kw_only=True):
    """A check of a merge queue's commit."""

    # CheckRun
    database_id: int = 0
    details_url: str | None = None
    # StatusContext
    target_url: str | None = None


class QueueRollup(GraphQLShape, frozen=True):
    """The first hundred checks of that commit."""

    contexts: NodeList[QueueCheck | None]


class QueueCommit(GraphQLShape, frozen=True):
    """The commit on which a merge queue runs the checks of a pull request."""

    status_check_rollup: QueueRollup | None


class RemovedFromQueueEvent(GraphQLShape, frozen=True):
    """A merge queue removed a pull request."""

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
    """The repository."""

    pull_request: PullRequest


class PullData(GraphQLShape, frozen=True):
    """pull.graphql"""

    repository: PullRepository


# viewer.graphql


class Login(GraphQLShape, frozen=True):
    """An account's name."""

    login: str


class ViewerData(GraphQLShape, frozen=True):
    """viewer.graphql"""

    viewer: Login
