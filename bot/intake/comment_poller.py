"""Polls comments and new issues, for a bot that GitHub's webhooks cannot reach."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.github.rest import ListedComment, ListedIssue
from bot.intake.inbox import Inbox
from bot.store import Delivery
from bot.system.clock import Clock
from config.settings import ProjectSettings

log = logging.getLogger(__name__)

#: How far back the first poll reads, to find commands written while the bot was stopped.
_FIRST_POLL = timedelta(hours=1)
#: Polls overlap, because GitHub may list a comment some seconds after it was written.
_OVERLAP = timedelta(minutes=1)


class CommentPoller:
    """Passes new comments and issues to the inbox in the form of webhooks.

    The same comment or issue gets the same ID at every poll, so a repetition is recognised.
    """

    def __init__(
        self, github: GitHub, inbox: Inbox, projects: Mapping[str, ProjectSettings], clock: Clock
    ) -> None:
        self._github = github
        self._inbox = inbox
        self._projects = projects
        self._since: dict[str, datetime] = {}
        self._clock = clock

    def poll(self) -> None:
        """Pass new comments and issues of all projects to the inbox.

        If those of a repository cannot be read, the next poll reads them.
        """
        for repository in [project.repository for project in self._projects.values()]:
            begun = self._clock()
            since = self._since.setdefault(repository, begun - _FIRST_POLL)
            try:
                with self._github.caching():
                    found = self._poll(repository, since)
            except GitHubFailure as failure:
                log.warning("%s: comments and issues not listed: %s", repository, failure)
                continue
            if found:
                # Otherwise the next poll is the same request; its ETag makes it free.
                self._since[repository] = begun - _OVERLAP

    def _poll(self, repository: str, since: datetime) -> int:
        """Pass new comments and issues to the inbox; return how many changed since `since`."""
        comments = self._github.read.comments_since(repository, since)
        issues = self._github.read.issues_since(repository, since)
        # Edited comments are skipped, because commands in an edit do not count.
        written = [one for one in comments if one.updated_at == one.created_at]
        deliveries = [self._comment(repository, one) for one in written]
        opened = [one for one in issues if one.created_at >= since and one.pull_request is None]
        deliveries += [self._issue(repository, one) for one in opened]
        self._inbox.accept(deliveries).result()
        return len(comments) + len(issues)

    def _comment(self, repository: str, comment: ListedComment) -> Delivery:
        """Return a comment as a webhook delivery, with the same id at every poll."""
        body = {
            "action": "created",
            "issue": {"number": comment.number, "pull_request": {} if comment.on_pull else None},
            "comment": comment,
        }
        return self._delivery(f"poll:{comment.id}", "issue_comment", repository, body)

    def _issue(self, repository: str, issue: ListedIssue) -> Delivery:
        """Return a new issue as a webhook delivery, because its text may contain commands."""
        body = {"action": "opened", "issue": issue}
        return self._delivery(f"poll:issue:{issue.id}", "issues", repository, body)

    def _delivery(
        self, id: str, event: str, repository: str, body: Mapping[str, object]
    ) -> Delivery:
        body = {**body, "repository": {"id": 0, "full_name": repository}}
        return Delivery(id=id, event=event, at=self._clock(), body=msgspec.json.encode(body))
