"""Events about issues, and about comments on issues and pull requests."""

import msgspec
from msgspec import Raw, Struct

from bot.intake.events.payloads import (
    CommentPayload,
    Id,
    NumberPayload,
    ParsedEvent,
    RepositoryPayload,
    TextPayload,
    UserPayload,
)

#: The other actions (milestoned, pinned, locked, ...) change nothing a session depends on.
_ACTIONS = frozenset(
    {
        *("opened", "edited", "closed", "reopened", "deleted", "transferred"),
        *("labeled", "unlabeled", "assigned", "unassigned"),
    }
)


class _Issue(TextPayload, frozen=True, kw_only=True):
    number: Id


class _IssuesEvent(Struct, frozen=True):
    action: str
    repository: RepositoryPayload
    issue: _Issue


class _CommentedIssue(Struct, frozen=True):
    number: Id
    pull_request: Raw = Raw(b"null")


class _IssueCommentEvent(Struct, frozen=True):
    action: str
    repository: RepositoryPayload
    issue: _CommentedIssue
    comment: CommentPayload
    sender: UserPayload | None = None


class _IssueDependenciesEvent(Struct, frozen=True):
    #: That of the blocked issue, unless `blocked_issue_repo` names another.
    repository: RepositoryPayload
    blocked_issue: NumberPayload | None = None
    blocked_issue_repo: RepositoryPayload | None = None


def issues(body: bytes) -> ParsedEvent:
    """An issue was opened, labelled, assigned, edited or closed."""
    event = msgspec.json.decode(body, type=_IssuesEvent)
    if event.action not in _ACTIONS:
        return ParsedEvent()
    issue, repository = event.issue, event.repository
    opened = event.action == "opened"
    return ParsedEvent(
        changed=(repository.subject("issue", issue.number),),
        written=issue.text("issue", issue.number, repository, issue.number) if opened else None,
    )


def issue_comment(body: bytes) -> ParsedEvent:
    """Somebody commented on an issue or in the conversation of a pull request.

    Only a new comment may hold commands: a command that an edit removes cannot be undone.
    """
    event = msgspec.json.decode(body, type=_IssueCommentEvent)
    issue, comment, repository = event.issue, event.comment, event.repository
    kind = "issue" if bytes(issue.pull_request) == b"null" else "pull"
    text = comment.text("comment", comment.id, repository, issue.number)
    edited_by_author = event.action == "edited" and event.sender == comment.user
    return ParsedEvent(
        changed=(repository.subject(kind, issue.number),),
        written=text if event.action == "created" else None,
        edited=text if edited_by_author else None,
    )


def issue_dependencies(body: bytes) -> ParsedEvent:
    """An issue became blocked by another one, or is no longer."""
    event = msgspec.json.decode(body, type=_IssueDependenciesEvent)
    if event.blocked_issue is None:
        return ParsedEvent()
    repository = event.blocked_issue_repo or event.repository
    return repository.changed("issue", event.blocked_issue.number)
