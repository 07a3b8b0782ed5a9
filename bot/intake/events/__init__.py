"""Parses webhook events into the subjects that may have changed.

Payloads are hints and arrive in any order: they say which pull request or issue to refresh, and
the truth is read from GitHub afterwards. Only new texts are used as they are, for their commands.
https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

from collections.abc import Callable, Mapping

from bot.intake.events import checks, issues, pulls, repositories
from bot.intake.events.payloads import ParsedEvent

#: By the value of `X-GitHub-Event`. The parsers raise `msgspec.DecodeError` or `RecursionError`
#: for a body that is not a payload of their event.
EVENTS: Mapping[str, Callable[[bytes], ParsedEvent]] = {
    "check_run": checks.check_run,
    "check_suite": checks.check_suite,
    "installation": repositories.installation,
    "installation_repositories": repositories.installation_repositories,
    "issue_comment": issues.issue_comment,
    "issue_dependencies": issues.issue_dependencies,
    "issues": issues.issues,
    "merge_group": pulls.merge_group,
    "ping": repositories.ping,
    "pull_request": pulls.pull_request,
    "pull_request_review": pulls.pull_request_review,
    "pull_request_review_comment": pulls.pull_request_review_comment,
    "pull_request_review_thread": pulls.pull_request_review_thread,
    "push": repositories.push,
    "repository": repositories.repository,
    "status": checks.status,
    "workflow_run": checks.workflow_run,
}
