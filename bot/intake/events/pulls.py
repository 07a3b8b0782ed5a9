"""Events about pull requests, their reviews and the merge queue."""

import re

import msgspec
from msgspec import Struct

from bot.intake.events.payloads import (
    CommentPayload,
    NumberPayload,
    ParsedEvent,
    RepositoryPayload,
)

#: `refs/heads/gh-readonly-queue/main/pr-34-SHA`: names the last pull request of a merge group.
_QUEUE_BRANCH = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-(?P<number>[0-9]+)-[0-9a-f]+")


class _PullRequestEvent(Struct, frozen=True):
    repository: RepositoryPayload
    pull_request: NumberPayload


class _ReviewEvent(Struct, frozen=True):
    action: str
    repository: RepositoryPayload
    pull_request: NumberPayload
    review: CommentPayload


class _ReviewCommentEvent(Struct, frozen=True):
    action: str
    repository: RepositoryPayload
    pull_request: NumberPayload
    comment: CommentPayload


class _MergeGroup(Struct, frozen=True):
    head_ref: str


class _MergeGroupEvent(Struct, frozen=True):
    repository: RepositoryPayload
    merge_group: _MergeGroup


def pull_request(body: bytes) -> ParsedEvent:
    """A pull request was opened, pushed to, labelled, closed or merged."""
    event = msgspec.json.decode(body, type=_PullRequestEvent)
    return event.repository.changed("pull", event.pull_request.number)


def pull_request_review(body: bytes) -> ParsedEvent:
    """Somebody approved a pull request, requested changes or commented."""
    event = msgspec.json.decode(body, type=_ReviewEvent)
    repository, number, review = event.repository, event.pull_request.number, event.review
    submitted = event.action == "submitted"
    return ParsedEvent(
        changed=(repository.subject("pull", number),),
        written=review.text("review", review.id, repository, number) if submitted else None,
    )


def pull_request_review_comment(body: bytes) -> ParsedEvent:
    """Somebody commented on a line of a pull request."""
    event = msgspec.json.decode(body, type=_ReviewCommentEvent)
    repository, number, comment = event.repository, event.pull_request.number, event.comment
    created = event.action == "created"
    return ParsedEvent(
        changed=(repository.subject("pull", number),),
        written=comment.text("line", comment.id, repository, number) if created else None,
    )


def pull_request_review_thread(body: bytes) -> ParsedEvent:
    """A review thread was resolved or reopened."""
    return pull_request(body)


def merge_group(body: bytes) -> ParsedEvent:
    """The merge queue created a merge group or removed one.

    Its checks run on a commit that is the head of no pull request, so the group's last pull request
    is refreshed. The others leave the queue with a `pull_request` event of their own.
    """
    event = msgspec.json.decode(body, type=_MergeGroupEvent)
    branch = _QUEUE_BRANCH.fullmatch(event.merge_group.head_ref)
    if branch is None:
        return ParsedEvent()
    return event.repository.changed("pull", int(branch["number"]))
