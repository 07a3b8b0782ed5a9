"""Pull requests, reviews and threads as GraphQL shows them."""

from collections.abc import Iterable, Sequence
from typing import Any

from bot.demo.github.graphql.commits import Commit, branch_of, rollup
from bot.demo.github.graphql.connections import Json, connection
from bot.demo.github.graphql.conversations import conversation, lazy, pages, thing, written
from bot.demo.github.http import Request
from bot.demo.github.pulls import Pull
from bot.demo.github.reviews import PendingReview, Review, ReviewComment, Thread
from bot.demo.github.shapes.base import time

_MERGEABLE = {True: "MERGEABLE", False: "CONFLICTING", None: "UNKNOWN"}


def pull(known: Pull, asking: Request) -> Json:
    repo = known.repo
    merged = Commit(repo, known.merge_commit) if known.merge_commit else None
    return {
        **conversation("PullRequest", known),
        "isDraft": known.draft,
        "isInMergeQueue": bool(known.queued),
        "isMergeQueueEnabled": bool(known.protection and known.protection.queue),
        "isCrossRepository": known.from_fork,
        "merged": known.merged,
        "mergedAt": time(known.merged_at),
        "mergedBy": known.merged_by,
        "mergeCommit": merged,
        "mergeable": lazy(lambda: _MERGEABLE[known.mergeable]),
        "mergeStateStatus": lazy(lambda: known.merge_state),
        "reviewDecision": known.review_decision,
        "headRefName": known.head_branch,
        "headRefOid": known.head,
        "headRef": branch_of(known.source, known.head_branch),
        "headRepository": known.source,
        "headRepositoryOwner": known.source.owner,
        "baseRefName": known.base_branch,
        "baseRefOid": known.base,
        "baseRef": branch_of(repo, known.base_branch),
        "additions": lazy(lambda: _diffstat(known)[0]),
        "deletions": lazy(lambda: _diffstat(known)[1]),
        "changedFiles": lazy(lambda: _diffstat(known)[2]),
        "commits": pages(lambda: _commits(known)),
        "statusCheckRollup": lazy(lambda: rollup(repo, known.head)),
        "reviews": lambda info, **given: connection(_reviews(known, given, asking), given),
        "latestOpinionatedReviews": lambda info, **given: connection(
            _opinions(known, given["writersOnly"]), given
        ),
        "reviewThreads": pages(lambda: known.threads),
        "reviewRequests": pages(lambda: _requests(known)),
        "closingIssuesReferences": pages(lambda: known.closes),
    }


def _diffstat(known: Pull) -> tuple[int, int, int]:
    return known.repo.git.diffstat(known.base, known.head)


def _commits(known: Pull) -> list[Json]:
    """Return the commits of a pull request, oldest first."""
    log = known.repo.git.log("--reverse", f"{known.base}..{known.head}")
    return [
        {"id": f"PURC_{known.id}_{made.sha}", "commit": Commit(known.repo, made.sha)}
        for made in log
    ]


def _reviews(known: Pull, given: Json, asking: Request) -> Iterable[Review]:
    own = known.pending.get(asking.login)
    for one in [*known.reviews, *([own] if own else [])]:
        states, author = given.get("states"), given.get("author")
        if one.state in (states or [one.state]) and author in (None, one.user.login):
            yield one


def _opinions(known: Pull, writers_only: bool) -> Iterable[Review]:
    for one in known.opinions:
        if not writers_only or known.repo.allows(one.user.login, "write"):
            yield one


def _requests(known: Pull) -> list[Json]:
    return [
        {"id": f"RR_{known.id}_{user.id}", "requestedReviewer": user} for user in known.requested
    ]


def review(known: Review, asking: Request) -> Json:
    repo = known.pull.repo
    return {
        **written("PullRequestReview", known),
        "authorCanPushToRepository": repo.allows(known.user.login, "write"),
        "state": known.state,
        "submittedAt": time(known.created_at),
        "commit": Commit(repo, known.commit_id),
        "comments": pages(lambda: _in_review(known)),
        "url": known.url,
    }


def _in_review(known: Review) -> Sequence[ReviewComment | Json]:
    if isinstance(known, PendingReview):
        return [{"id": known.node_id, "body": text} for _, text in known.replies]
    return known.comments


def thread(known: Thread, asking: Request) -> Json:
    return {
        **thing("PullRequestReviewThread", known),
        "path": known.path,
        "line": known.line,
        "originalLine": known.original_line,
        "startLine": known.start_line if known.line else None,
        "originalStartLine": known.start_line,
        "isOutdated": known.outdated,
        "isResolved": known.resolved,
        "resolvedBy": known.resolved_by,
        "pullRequest": known.pull,
        "comments": pages(lambda: known.comments),
    }


def review_comment(known: ReviewComment, asking: Request) -> Json:
    on = known.thread
    fields: dict[str, Any] = {
        "path": on.path,
        "line": on.line,
        "outdated": on.outdated,
        "diffHunk": on.diff_hunk,
        "url": f"{on.pull.url}#discussion_r{known.id}",
        "replyTo": known.in_reply_to,
        "pullRequestReview": known.review,
    }
    return {**written("PullRequestReviewComment", known), **fields}
