"""Defines the parts of GraphQL responses that several modules use; ignores other fields.

An unexpectedly missing or null field makes the whole response invalid and raises `TryLater`:
missing data never means success. https://docs.github.com/en/graphql/reference/objects
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct, field

T = TypeVar("T")


class GraphQLShape(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all shapes. GraphQL spells the fields in camel case."""


class InRepository(GraphQLShape, Generic[T], frozen=True):
    """The data of a query about one repository."""

    repository: T


class OfPull(GraphQLShape, Generic[T], frozen=True):
    """A repository with the one pull request that was requested."""

    pull_request: T


class AtObject(GraphQLShape, Generic[T], frozen=True):
    """A repository with the one Git object that was requested; null if there is no such object."""

    object: T | None


class PageInfo(GraphQLShape, frozen=True):
    has_next_page: bool
    end_cursor: str | None = None


class NodeList(GraphQLShape, Generic[T], frozen=True):
    """The first or last items of a list, of which no further page is read."""

    nodes: tuple[T, ...]


class NewestNodes(GraphQLShape, Generic[T], frozen=True):
    """The first or last items of a list, and its total length."""

    total_count: int
    nodes: tuple[T, ...]


class NodePage(GraphQLShape, Generic[T], frozen=True):
    """One page of a list."""

    page_info: PageInfo
    nodes: tuple[T, ...]


class TotalCount(GraphQLShape, frozen=True):
    total_count: int


class Actor(GraphQLShape, frozen=True):
    """An account. GraphQL omits the `[bot]` that ends an App's login in REST."""

    typename: str = field(name="__typename")
    login: str


class Login(GraphQLShape, frozen=True):
    login: str


class Viewer(GraphQLShape, frozen=True):
    """GitHub's response to `viewer.graphql`."""

    viewer: Login


class NamedNode(GraphQLShape, frozen=True):
    name: str


class NumberNode(GraphQLShape, frozen=True):
    number: int


class CommitNode(GraphQLShape, frozen=True):
    oid: str


class BranchTip(GraphQLShape, frozen=True):
    """A branch; its target is the newest commit."""

    target: CommitNode | None


class RepositoryName(GraphQLShape, frozen=True):
    """A repository, as `owner/name`."""

    name_with_owner: str


# issue.graphql


class TimelineEvent(GraphQLShape, frozen=True):
    """An event of an issue, such as a label, an assignment, a new title or a reopening."""

    typename: str = field(name="__typename")
    created_at: datetime
    actor: Actor | None = None
    label: NamedNode | None = None
    assignee: Actor | None = None


class Milestone(GraphQLShape, frozen=True):
    title: str


class ReferringSubject(GraphQLShape, frozen=True):
    """An issue or pull request that refers to the requested one; empty if hidden from the bot."""

    number: int = 0
    repository: RepositoryName | None = None


class Reference(GraphQLShape, frozen=True):
    source: ReferringSubject = ReferringSubject()


class WrittenText(GraphQLShape, frozen=True):
    full_database_id: str  # A string, because it has 64 bits.
    body: str
    last_edited_at: datetime | None
    author: Actor | None
    editor: Actor | None


class CommentNode(WrittenText, frozen=True):
    """A comment on an issue or a pull request, or in a thread."""

    created_at: datetime
    diff_hunk: str = ""


class ContentEdit(GraphQLShape, frozen=True):
    """An edit of a text: https://docs.github.com/en/graphql/reference/objects#usercontentedit"""

    edited_at: datetime
    editor: Actor | None


class IssueOrPull(GraphQLShape, frozen=True):
    """The issue or pull request that has the requested number."""

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
    user_content_edits: NodeList[ContentEdit] | None = None
    # Not queried for a pull request:
    assignees: NodeList[Login] | None = None
    milestone: Milestone | None = None
    comments: NewestNodes[CommentNode] = NewestNodes(total_count=0, nodes=())
    references: NodeList[Reference] = NodeList(nodes=())
    state_reason: str | None = None


class IssueRepository(RepositoryName, frozen=True):
    is_private: bool
    issue_or_pull_request: IssueOrPull


# pull.graphql


class ReviewNode(WrittenText, frozen=True):
    state: str
    submitted_at: datetime | None
    author_can_push_to_repository: bool
    commit: CommitNode | None


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
    event: str
    workflow: NamedNode


class AppSlug(GraphQLShape, frozen=True):
    """A GitHub App, such as the one that made a check run."""

    slug: str


class CheckSuite(GraphQLShape, frozen=True):
    app: AppSlug | None
    workflow_run: WorkflowRun | None


class CheckContext(GraphQLShape, frozen=True):
    """A `CheckRun` or a `StatusContext`."""

    typename: str = field(name="__typename")
    # CheckRun
    name: str = ""
    status: str | None = None
    conclusion: str | None = None
    check_suite: CheckSuite | None = None
    database_id: int = 0
    details_url: str | None = None
    # StatusContext
    context: str = ""
    state: str | None = None
    creator: Actor | None = None
    target_url: str | None = None


class HeadCheck(CheckContext, frozen=True, kw_only=True):
    is_required: bool
    # StatusContext
    description: str | None = None
    created_at: datetime | None = None


class FirstChecks(GraphQLShape, frozen=True):
    """The first 100 checks of a commit; null for a check that the bot may not see."""

    contexts: NodeList[CheckContext | None]


class CheckedCommit(GraphQLShape, frozen=True):
    """A commit of the base branch or of a merge queue, or the head of a merged pull request."""

    status_check_rollup: FirstChecks | None

    @property
    def checks(self) -> tuple[CheckContext, ...]:
        """Return those of the first 100 checks that the bot may see."""
        rollup = self.status_check_rollup
        return tuple(each for each in rollup.contexts.nodes if each) if rollup else ()


class CheckRollup(GraphQLShape, frozen=True):
    """A page of a commit's checks; null for a check that the bot may not see."""

    contexts: NodePage[HeadCheck | None]


class HeadCommit(CommitNode, frozen=True):
    status_check_rollup: CheckRollup | None


class HeadNode(GraphQLShape, frozen=True):
    commit: HeadCommit


class PushActor(GraphQLShape, frozen=True):
    """An App, a team or a user that may push to a protected branch."""

    typename: str = field(name="__typename")
    login: str = ""
    slug: str = ""


class PushAllowance(GraphQLShape, frozen=True):
    actor: PushActor | None


class BranchProtection(GraphQLShape, frozen=True):
    requires_status_checks: bool
    required_status_check_contexts: tuple[str | None, ...] | None
    restricts_pushes: bool = False
    lock_branch: bool = False
    push_allowances: NewestNodes[PushAllowance] | None = None


class RequiredCheck(GraphQLShape, frozen=True):
    context: str


class RuleParameters(GraphQLShape, frozen=True):
    """The parameters of a rule; empty unless the rule requires status checks."""

    required_status_checks: tuple[RequiredCheck, ...] = ()


class RuleType(GraphQLShape, frozen=True):
    type: str


class Ruleset(GraphQLShape, frozen=True):
    database_id: int | None
    name: str


class RulesetRule(RuleType, frozen=True):
    parameters: RuleParameters | None
    repository_ruleset: Ruleset | None = None


class UpdateRule(GraphQLShape, frozen=True):
    viewer_can_push: bool


class BaseRef(BranchTip, frozen=True):
    """The base branch, with the rules that the bot may see."""

    branch_protection_rule: BranchProtection | None
    rules: NodeList[RulesetRule] | None
    ref_update_rule: UpdateRule | None = None


class RemovedFromQueueEvent(GraphQLShape, frozen=True):
    created_at: datetime
    reason: str | None = None
    before_commit: CheckedCommit | None = None


class BaseChange(GraphQLShape, frozen=True):
    """A change of a pull request's base branch."""

    created_at: datetime


class PullRequest(GraphQLShape, frozen=True):
    """A pull request, with one page of each of its lists."""

    number: int
    title: str
    body: str
    url: str
    state: str
    created_at: datetime
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
    base_changes: NodeList[BaseChange]
    review_requests: TotalCount
    latest_opinionated_reviews: NodePage[ReviewNode]
    reviews: NodePage[ReviewNode]
    comments: NodePage[CommentNode]
    review_threads: NodePage[ReviewThread]
    commits: NodeList[HeadNode]

    @property
    def rollup(self) -> CheckRollup | None:
        """Return the checks of the last commit; None if that commit has none."""
        return self.commits.nodes[-1].commit.status_check_rollup if self.commits.nodes else None

    @property
    def page_infos(self) -> Mapping[str, PageInfo]:
        """Return where each list continues, by the name of the list's cursor in the query."""
        infos = {
            "opinions": self.latest_opinionated_reviews.page_info,
            "reviews": self.reviews.page_info,
            "comments": self.comments.page_info,
            "threads": self.review_threads.page_info,
        }
        rollup = self.rollup
        return {**infos, "checks": rollup.contexts.page_info} if rollup else infos
