"""Webhook events: each says where to look again, and nothing more.

Payloads are hints, read in no order; the truth is read from GitHub afterwards.
"""

from collections.abc import Callable, Mapping

from bot.events import (
    check_run,
    check_suite,
    issue_comment,
    issues,
    ping,
    pull_request,
    pull_request_review,
    pull_request_review_comment,
    pull_request_review_thread,
    push,
    status,
)
from bot.events.base import Outcome

#: By the word in `X-GitHub-Event`. Each raises `msgspec.DecodeError` or `RecursionError` for a
#: body that is not of its event.
EVENTS: Mapping[str, Callable[[bytes], Outcome]] = {
    "check_run": check_run.read,
    "check_suite": check_suite.read,
    "issue_comment": issue_comment.read,
    "issues": issues.read,
    "ping": ping.read,
    "pull_request": pull_request.read,
    "pull_request_review": pull_request_review.read,
    "pull_request_review_comment": pull_request_review_comment.read,
    "pull_request_review_thread": pull_request_review_thread.read,
    "push": push.read,
    "status": status.read,
}
