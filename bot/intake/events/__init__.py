"""Webhook events: each says where to look again, and nothing more.

Payloads are hints, read in no order; the truth is read from GitHub afterwards.
"""

from collections.abc import Callable, Mapping

from bot.intake.events import (
    check_run,
    check_suite,
    installation,
    installation_repositories,
    issue_comment,
    issue_dependencies,
    issues,
    merge_group,
    ping,
    pull_request,
    pull_request_review,
    pull_request_review_comment,
    pull_request_review_thread,
    push,
    repository,
    status,
    workflow_run,
)
from bot.intake.events.base import Outcome

#: By the word in `X-GitHub-Event`. Each raises `msgspec.DecodeError` or `RecursionError` for a
#: body that is not of its event.
EVENTS: Mapping[str, Callable[[bytes], Outcome]] = {
    "check_run": check_run.read,
    "check_suite": check_suite.read,
    "installation": installation.read,
    "installation_repositories": installation_repositories.read,
    "issue_comment": issue_comment.read,
    "issue_dependencies": issue_dependencies.read,
    "issues": issues.read,
    "merge_group": merge_group.read,
    "ping": ping.read,
    "pull_request": pull_request.read,
    "pull_request_review": pull_request_review.read,
    "pull_request_review_comment": pull_request_review_comment.read,
    "pull_request_review_thread": pull_request_review_thread.read,
    "push": push.read,
    "repository": repository.read,
    "status": status.read,
    "workflow_run": workflow_run.read,
}
