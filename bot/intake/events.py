"""Parses webhook events into the subjects that may have changed.

Payloads arrive in any order, so they are only hints: they say what to read from GitHub, and let the
bot skip what concerns no session. Only new texts in them are used, as they may contain commands.
https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct

from bot.intake.changes import Login, NewText, ParsedEvent, RepositoryPayload
from lifecycle.model.accounts import BOT, bot_login

#: An identifier that fits the database's 64-bit integers.
_Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
#: The number of an issue or pull request. GraphQL accepts only 32-bit integers.
_Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]

#: All other actions (milestoned, pinned, ...) change nothing that decisions depend on.
_ISSUE_ACTIONS: Final = {
    *("opened", "edited", "closed", "reopened", "deleted", "transferred"),
    *("labeled", "unlabeled", "assigned", "unassigned"),
}
#: `refs/heads/gh-readonly-queue/main/pr-34-SHA`; 34 is the last pull request of a merge group.
_QUEUE_BRANCH = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-(?P<number>[0-9]{1,9})-[0-9a-f]+")
_BRANCH = "refs/heads/"


class Numbered(Struct, frozen=True):
    number: _Number


class _User(Struct, frozen=True):
    login: Login
    type: str

    @property
    def name(self) -> str:
        """Return the login, with the `[bot]` that some bots' logins lack, such as Copilot's."""
        return bot_login(self.login) if self.type == BOT else self.login


class _Text(Struct, frozen=True, kw_only=True):
    """The fields that `issue`, `comment` and `review` share."""

    created_at: datetime | None = None
    submitted_at: datetime | None = None  #: A review has this instead of `created_at`.
    body: str | None = None
    user: _User | None = None  #: null where the account was deleted.

    def text(
        self, kind: str, id: int, repository: RepositoryPayload, number: int
    ) -> NewText | None:
        """Return the text with its author and time, or None if either is unknown."""
        at = self.created_at or self.submitted_at
        if self.user is None or at is None:
            return None
        return NewText(
            kind=kind,
            id=id,
            repository=repository,
            number=number,
            author=self.user.name,
            author_type=self.user.type,
            body=self.body or "",
            at=at,
        )


class _Comment(_Text, frozen=True, kw_only=True):
    id: _Id


class _Named(Struct, frozen=True):
    name: str


class _Login(Struct, frozen=True):
    login: Login


class _Head(Struct, frozen=True):
    ref: str | None = None


class _Pull(Numbered, frozen=True):
    head: _Head = _Head()


class _CommentedIssue(Numbered, frozen=True):
    pull_request: Raw = Raw(b"null")
    labels: tuple[_Named, ...] | None = None
    assignees: tuple[_Login, ...] = ()


class _Issue(_Text, frozen=True, kw_only=True):
    number: _Number
    labels: tuple[_Named, ...] | None = None
    assignees: tuple[_Login, ...] = ()


def _words(issue: _Issue | _CommentedIssue) -> frozenset[str] | None:
    """Return the labels of an issue, and its assignees as `@login`, in lower case.

    None if the payload has no list of labels.
    """
    if issue.labels is None:
        return None
    words = [*(one.name for one in issue.labels), *(f"@{one.login}" for one in issue.assignees)]
    return frozenset(word.lower() for word in words)


class _Identified(Struct, frozen=True):
    id: int


class _Base(Struct, frozen=True):
    repo: _Identified


class _ListedPull(_Pull, frozen=True, kw_only=True):
    base: _Base


class _Checked(Struct, frozen=True):
    """The object `check_run`, `check_suite` or `workflow_run` of a payload."""

    head_sha: str
    pull_requests: tuple[_ListedPull, ...] = ()

    def parsed(self, repository: RepositoryPayload) -> ParsedEvent:
        """Return the pull requests that GitHub lists for the commit, or else the commit.

        The list is empty for a commit of a fork. It may name pull requests of other repositories,
        which are ignored.
        """
        pulls = tuple(
            repository.subject("pull", pull.number, pull.head.ref)
            for pull in self.pull_requests
            if pull.base.repo.id == repository.id
        )
        return ParsedEvent(changed=pulls or (repository.subject("sha", self.head_sha),))


class _MergeGroup(Struct, frozen=True):
    head_ref: str


class WebhookEvent(Struct, frozen=True):
    """The payload of an event. Each subclass says when GitHub sends it."""

    def parsed(self) -> ParsedEvent:
        return ParsedEvent()


class _RepositoryEvent(WebhookEvent, frozen=True):
    repository: RepositoryPayload


class _CheckRun(_RepositoryEvent, frozen=True):
    """A check run was created, completed or rerun."""

    check_run: _Checked

    def parsed(self) -> ParsedEvent:
        return self.check_run.parsed(self.repository)


class _CheckSuite(_RepositoryEvent, frozen=True):
    """All check runs of one App on a commit completed, or were requested."""

    check_suite: _Checked

    def parsed(self) -> ParsedEvent:
        return self.check_suite.parsed(self.repository)


class _Installation(WebhookEvent, frozen=True):
    """The App was installed, uninstalled, suspended or unsuspended, or got new permissions."""

    action: str
    #: GitHub lists them when the App is installed, but not when a suspension ends.
    repositories: tuple[RepositoryPayload, ...] = ()

    def parsed(self) -> ParsedEvent:
        # After these actions the bot has no access to the repositories.
        readable = () if self.action in ("deleted", "suspend") else self.repositories
        changed = tuple(one.subject("repository") for one in readable)
        return ParsedEvent(changed=changed, access_changed=True)


class _InstallationRepositories(WebhookEvent, frozen=True):
    """Repositories were added to the App's installation or removed from it."""

    repositories_added: tuple[RepositoryPayload, ...]

    def parsed(self) -> ParsedEvent:
        changed = tuple(one.subject("repository") for one in self.repositories_added)
        return ParsedEvent(changed=changed, access_changed=True)


class _IssueComment(_RepositoryEvent, frozen=True):
    """A comment on an issue or in a pull request's conversation was written, edited or deleted.

    Commands in edits do not count, because an edit that removes a command could not undo it.
    """

    action: str
    issue: _CommentedIssue
    comment: _Comment
    sender: _User | None = None

    def parsed(self) -> ParsedEvent:
        number, comment, repository = self.issue.number, self.comment, self.repository
        kind = "issue" if bytes(self.issue.pull_request) == b"null" else "pull"
        labels = _words(self.issue) if kind == "issue" else None
        text = comment.text("comment", comment.id, repository, number)
        edited_by_author = self.action == "edited" and self.sender == comment.user
        return ParsedEvent(
            changed=(repository.subject(kind, number, labels=labels),),
            written=text if self.action == "created" else None,
            edited=text if edited_by_author else None,
        )


class _IssueDependencies(WebhookEvent, frozen=True):
    """An issue became blocked by another one, or is no longer blocked."""

    #: The blocked issue's repository, unless `blocked_issue_repo` names another one.
    repository: RepositoryPayload
    blocked_issue: Numbered | None = None
    blocked_issue_repo: RepositoryPayload | None = None

    def parsed(self) -> ParsedEvent:
        if self.blocked_issue is None:
            return ParsedEvent()
        repository = self.blocked_issue_repo or self.repository
        return repository.changed("issue", self.blocked_issue.number)


class _Issues(_RepositoryEvent, frozen=True):
    """An issue was opened, labelled, assigned, edited or closed."""

    action: str
    issue: _Issue
    label: _Named | None = None
    assignee: _Login | None = None

    def parsed(self) -> ParsedEvent:
        if self.action not in _ISSUE_ACTIONS:
            return ParsedEvent()
        number, repository = self.issue.number, self.repository
        text = self.issue.text("issue", number, repository, number)
        text = text if self.action == "opened" else None
        return repository.changed("issue", number, text, labels=self._words)

    @property
    def _words(self) -> frozenset[str] | None:
        """Return the labels and assignees, including those this event removed; None if unknown."""
        words, changed = _words(self.issue), [self.label.name] if self.label else []
        changed += [f"@{self.assignee.login}"] if self.assignee else []
        return None if words is None else words | {word.lower() for word in changed}


class _MergeGroupEvent(_RepositoryEvent, frozen=True):
    """The merge queue created a merge group or removed one.

    The group's checks run on a commit that is the head of no pull request. Therefore the group's
    last pull request is refreshed. GitHub sends an event `pull_request` for each of the others.
    """

    merge_group: _MergeGroup

    def parsed(self) -> ParsedEvent:
        branch = _QUEUE_BRANCH.fullmatch(self.merge_group.head_ref)
        if branch is None:
            return ParsedEvent()
        return self.repository.changed("pull", int(branch["number"]))


class _Ping(WebhookEvent, frozen=True):
    """GitHub tests a new webhook."""


class _PullRequest(_RepositoryEvent, frozen=True):
    """A pull request was opened, pushed to, labelled, closed or merged."""

    pull_request: _Pull

    def parsed(self) -> ParsedEvent:
        pull = self.pull_request
        return self.repository.changed("pull", pull.number, branch=pull.head.ref)


class _PullRequestReview(_PullRequest, frozen=True):
    """Somebody approved a pull request, requested changes or commented."""

    action: str
    review: _Comment

    def parsed(self) -> ParsedEvent:
        number, repository = self.pull_request.number, self.repository
        text = self.review.text("review", self.review.id, repository, number)
        text = text if self.action == "submitted" else None
        return repository.changed("pull", number, text, self.pull_request.head.ref)


class _PullRequestReviewComment(_PullRequest, frozen=True):
    """Somebody commented on a line of a pull request."""

    action: str
    comment: _Comment

    def parsed(self) -> ParsedEvent:
        number, repository = self.pull_request.number, self.repository
        text = self.comment.text("line", self.comment.id, repository, number)
        text = text if self.action == "created" else None
        return repository.changed("pull", number, text, self.pull_request.head.ref)


class _PullRequestReviewThread(_PullRequest, frozen=True):
    """A review thread was resolved or reopened."""


class _Push(_RepositoryEvent, frozen=True):
    """A branch was pushed, created or deleted; tags are ignored."""

    ref: str

    def parsed(self) -> ParsedEvent:
        if not self.ref.startswith(_BRANCH):
            return ParsedEvent()
        return self.repository.changed("branch", self.ref.removeprefix(_BRANCH))


class _RepositoryChange(_RepositoryEvent, frozen=True):
    """A repository was renamed, transferred, archived or edited."""

    action: str

    def parsed(self) -> ParsedEvent:
        # There is nothing to read in a new or a deleted repository.
        empty = self.action in ("created", "deleted")
        changed = () if empty else (self.repository.subject("repository"),)
        return ParsedEvent(changed=changed, access_changed=True)


class _Status(_RepositoryEvent, frozen=True):
    """A commit status was set, which is the older way to report a check."""

    sha: str

    def parsed(self) -> ParsedEvent:
        return self.repository.changed("sha", self.sha)


class _WorkflowRun(_RepositoryEvent, frozen=True):
    """A GitHub Actions workflow run was requested, started or completed."""

    workflow_run: _Checked

    def parsed(self) -> ParsedEvent:
        return self.workflow_run.parsed(self.repository)


#: The payload by event, as in the header `X-GitHub-Event`.
EVENTS: Mapping[str, type[WebhookEvent]] = {
    "check_run": _CheckRun,
    "check_suite": _CheckSuite,
    "installation": _Installation,
    "installation_repositories": _InstallationRepositories,
    "issue_comment": _IssueComment,
    "issue_dependencies": _IssueDependencies,
    "issues": _Issues,
    "merge_group": _MergeGroupEvent,
    "ping": _Ping,
    "pull_request": _PullRequest,
    "pull_request_review": _PullRequestReview,
    "pull_request_review_comment": _PullRequestReviewComment,
    "pull_request_review_thread": _PullRequestReviewThread,
    "push": _Push,
    "repository": _RepositoryChange,
    "status": _Status,
    "workflow_run": _WorkflowRun,
}


def parse_event(event: str, body: bytes) -> ParsedEvent:
    """Parse the body of a delivery. The result is empty for an unknown event.

    Raises `msgspec.DecodeError`, `UnicodeDecodeError` or `RecursionError` if the body is not a
    payload of its event.
    """
    shape = EVENTS.get(event)
    return msgspec.json.decode(body, type=shape).parsed() if shape else ParsedEvent()
