"""The observer of what people write, for a bot that GitHub cannot reach with a webhook."""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

import msgspec

from bot.github.client import GitHub
from bot.github.errors import GitHubFailure
from bot.github.rest import NewComment, NewIssue
from bot.intake.inbox import Inbox
from bot.store import Delivery
from bot.system.clock import Clock
from config.settings import ProjectSettings

log = logging.getLogger(__name__)

#: How far the first look goes back: what was asked for while the bot was away is heard.
_AWAY = timedelta(hours=1)
#: Two looks overlap: GitHub may show a comment some seconds after it was written.
_OVERLAP = timedelta(minutes=1)


class CommentPoller:
    """Hands new comments and issues to the inbox, each once, as the webhook would have done."""

    def __init__(
        self, github: GitHub, inbox: Inbox, projects: Collection[ProjectSettings], clock: Clock
    ) -> None:
        self._github = github
        self._inbox = inbox
        self._since = {project.repository: clock() - _AWAY for project in projects}
        self._clock = clock

    def look(self) -> None:
        """Take in what was written in every project's repository since the last look."""
        for repository, since in self._since.items():
            begun = self._clock()
            try:
                with self._github.remembering():
                    found = self._merge_remote(repository, since)
            except GitHubFailure as failure:
                log.warning("%s: what was written is not listed: %s", repository, failure)
                continue
            if found:
                # Else the same is asked again, which costs nothing while nothing changes.
                self._since[repository] = begun - _OVERLAP

    def _merge_remote(self, repository: str, since: datetime) -> int:
        """Keep what was written since then; how much has changed, whatever it was."""
        comments = self._github.read.comments_since(repository, since)
        issues = self._github.read.issues_since(repository, since)
        # An edit is no command: what was changed since it was written is left out.
        written = [one for one in comments if one.updated_at == one.created_at]
        deliveries = [self._comment(repository, one) for one in written]
        opened = [one for one in issues if one.created_at >= since and one.pull_request is None]
        deliveries += [self._issue(repository, one) for one in opened]
        self._inbox.accept(deliveries).result()
        return len(comments) + len(issues)

    def _comment(self, repository: str, comment: NewComment) -> Delivery:
        """The webhook this comment would have sent; it has the same id each time it is seen."""
        body = {
            "action": "created",
            "issue": {"number": comment.number, "pull_request": {} if comment.on_pull else None},
            "comment": comment,
        }
        return self._delivery(f"poll:{comment.id}", "issue_comment", repository, body)

    def _issue(self, repository: str, issue: NewIssue) -> Delivery:
        """The same of a new issue, whose text may hold commands too."""
        body = {"action": "opened", "issue": issue}
        return self._delivery(f"poll:issue:{issue.id}", "issues", repository, body)

    def _delivery(
        self, id: str, event: str, repository: str, body: Mapping[str, object]
    ) -> Delivery:
        body = {**body, "repository": {"id": 0, "full_name": repository}}
        return Delivery(id=id, event=event, at=self._clock(), body=msgspec.json.encode(body))
