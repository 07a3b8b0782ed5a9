"""Values that the client returns, besides the facts that `lifecycle` defines."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from lifecycle.model.facts import Issue, Pull, Remark

#: The share of the hour's points that is reserved for refreshes of what is known to have changed.
_RESERVE = 0.25


class PointBudget(Struct, frozen=True, kw_only=True, rename="camel"):
    """The GraphQL points left to an installation in the current hour.

    https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
    """

    cost: int  #: Of the last query.
    limit: int
    remaining: int
    reset_at: datetime

    @property
    def spare(self) -> int:
        """The points left for background refreshes."""
        return max(0, self.remaining - int(self.limit * _RESERVE))

    def interval(self, now: datetime) -> timedelta:
        """The interval of background refreshes with which the spare points last until the reset."""
        left = max(timedelta(), self.reset_at - now)
        return left * self.cost / self.spare if self.spare else left


class CheckReport(Struct, frozen=True, kw_only=True):
    """Why a check failed, without control characters and shortened."""

    log: str = ""  #: The end of its log.
    notes: str = ""  #: A line for each annotation.


class IssueEvent(Struct, frozen=True, kw_only=True):
    """Somebody edited or reopened an issue or a pull request."""

    actor: str  #: Empty if the account was deleted.
    at: datetime


class Labeling(IssueEvent, frozen=True, kw_only=True):
    """A label or an assignee was added to an issue or removed."""

    label: str  #: `@login` for an assignee.
    added: bool


class IssueSnapshot(Struct, frozen=True, kw_only=True):
    """An issue (or a pull request with its number) and who labelled and edited it.

    `issue.labelled` is set by the observer, who knows which label counts. Only the newest 100
    events are read: a label added before them has no labeling here, and so no known actor.
    """

    issue: Issue
    is_pull: bool
    labels: tuple[str, ...]
    labelings: tuple[Labeling, ...]  #: Oldest first.
    edits: tuple[IssueEvent, ...]  #: Oldest first: all of the title, the last one of the body.
    reopened: IssueEvent | None = None  #: The last time.
    comments: tuple[Remark, ...] = ()  #: The newest, oldest first; the observer sets `allowed`.
    earlier_comments: int = 0  #: How many older ones were not read.
    edited_by: Mapping[str, str] = {}  #: As in `PullSnapshot`.


class PullSnapshot(Struct, frozen=True, kw_only=True):
    """A pull request with all its lists; the observer sets `allowed` of remarks and verdicts."""

    pull: Pull
    head_repository: str  #: `owner/name`; empty if the fork was deleted.
    author: str
    created_at: datetime
    merged_by: str
    body: str
    #: By remark id, the last editor of each remark that somebody else than its author has edited;
    #: empty if the editor's account was deleted. A text is as trustworthy as its editor.
    edited_by: Mapping[str, str]
    labels: tuple[str, ...] = ()


class BranchFile(Struct, frozen=True, kw_only=True):
    """A file of the default branch, and the branch's head."""

    branch: str  #: The default branch; empty for a repository without commits.
    head: str = ""
    blob: str = ""  #: The id of its content; empty if there is no such file.
    text: str | None = ""  #: None for a binary file.
