"""Defines the values that the client returns, apart from the facts, which `lifecycle` defines."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from lifecycle.model.facts import Issue, Pull, Remark

#: The share of an hour's points reserved for subjects that are known to have changed.
_RESERVE = 0.25


class PointBudget(Struct, frozen=True, kw_only=True, rename="camel"):
    """The GraphQL points left to an App's installation, or to the token, in the current hour.

    https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
    """

    cost: int  #: The points that the last query cost.
    limit: int
    remaining: int
    reset_at: datetime

    @property
    def spare(self) -> int:
        """Return the points left for background refreshes; some are reserved for other requests."""
        return max(0, self.remaining - int(self.limit * _RESERVE))

    def interval(self, now: datetime) -> timedelta:
        """Return the pause between background refreshes that makes the spare points last."""
        left = max(timedelta(), self.reset_at - now)
        return left * self.cost / self.spare if self.spare else left


class CheckReport(Struct, frozen=True, kw_only=True):
    """The reason why a check failed, shortened and without control characters."""

    log: str = ""  #: The end of the check's log or output.
    notes: str = ""  #: Up to 20 annotations of failures and warnings, one line each.


class IssueEvent(Struct, frozen=True, kw_only=True):
    """Somebody edited or reopened an issue or a pull request."""

    actor: str  #: Empty if the account was deleted.
    at: datetime


class Labeling(IssueEvent, frozen=True, kw_only=True):
    """A label or an assignee was added to an issue or removed."""

    label: str  #: `@login` for an assignee.
    added: bool


class IssueSnapshot(Struct, frozen=True, kw_only=True):
    """An issue or pull request, with who labelled and edited it.

    The observer sets `issue.labelled`, because it knows which labels request an agent. Only the
    newest 100 events are read. Who added a label before these is unknown.
    """

    issue: Issue
    is_pull: bool
    labels: tuple[str, ...]  #: Followed by the assignees, as `@login`.
    labelings: tuple[Labeling, ...]  #: Oldest first.
    edits: tuple[IssueEvent, ...]  #: Of the title and the body (the newest 100), oldest first.
    reopened: IssueEvent | None = None  #: The last reopening.
    #: The newest 50 in order of time, none for a pull request; the observer sets `allowed`.
    comments: tuple[Remark, ...] = ()
    earlier_comments: int = 0  #: The number of older comments, which were not read.
    edited_by: Mapping[str, str] = {}  #: As in `PullSnapshot`.


class PullSnapshot(Struct, frozen=True, kw_only=True):
    """A pull request with its lists. The observer sets `allowed` of remarks and verdicts.

    If a list has too many pages to be read, `checks_complete` of its `pull` is False.
    """

    pull: Pull
    head_repository: str  #: `owner/name`; empty if the fork was deleted.
    author: str
    created_at: datetime
    body: str
    #: The last editor of each remark, by the remark's id, if it is not the author; empty if the
    #: editor's account was deleted. A text is only as trustworthy as its last editor.
    edited_by: Mapping[str, str]
    labels: tuple[str, ...] = ()


class BranchFile(Struct, frozen=True, kw_only=True):
    """A file of the default branch, and the branch's head."""

    branch: str  #: The default branch; empty if the repository has no commits.
    head: str = ""
    blob: str = ""  #: Git's id of the content; empty if the file does not exist.
    text: str | None = ""  #: None for a binary file.
