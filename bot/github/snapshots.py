"""What the client hands out beside lifecycle's own words."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from lifecycle.model.facts import Issue, Pull
from lifecycle.model.policy import MergeMethod

#: The share of the points of an hour that nobody takes but for what is known to have changed.
_RESERVE = 0.25


class PointBudget(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is left of an installation's points for GraphQL, as GitHub counts them."""

    cost: int  #: What the last query was.
    limit: int
    remaining: int
    reset_at: datetime

    @property
    def spare(self) -> int:
        """The points that may go to looks nobody asked for."""
        return max(0, self.remaining - int(self.limit * _RESERVE))

    def apart(self, now: datetime) -> timedelta:
        """How far apart such looks are, if what may be spared is to last until there is more."""
        left = max(timedelta(), self.reset_at - now)
        return left * self.cost / self.spare if self.spare else left


class Fingerprint(Struct, frozen=True, kw_only=True):
    """What tells at little cost whether an issue or a pull request has changed: compared whole."""

    state: str
    updated: datetime
    more: tuple[object, ...] = ()  #: Of a pull request: its head, how it stands, its checks.


class RepositorySettings(Struct, frozen=True, kw_only=True):
    """A repository's settings, as far as the bot needs them."""

    default_branch: str
    private: bool
    archived: bool
    clone_url: str
    merge_methods: tuple[MergeMethod, ...]  #: Those the repository allows.

    def way(self, wanted: MergeMethod) -> MergeMethod:
        """How something is merged there: as it is wanted, or else in a way that is allowed."""
        allowed = self.merge_methods
        return wanted if wanted in allowed or not allowed else allowed[0]


class CheckReport(Struct, frozen=True, kw_only=True):
    """What a failed check says of itself, without control characters and shortened."""

    log: str = ""  #: The end of what it printed.
    notes: str = ""  #: A line for each thing it notes at a line of a file.


class Labeling(Struct, frozen=True, kw_only=True):
    """That somebody put a label on an issue or took it off, or assigned it to somebody."""

    label: str  #: Of an assignment: `@login`.
    actor: str  #: Empty where the account is gone: then nobody may be assumed.
    at: datetime
    added: bool


class Edit(Struct, frozen=True, kw_only=True):
    """That somebody changed an issue's title or body."""

    actor: str
    at: datetime


class Reopening(Struct, frozen=True, kw_only=True):
    """That somebody opened an issue or a pull request again."""

    actor: str  #: Empty where the account is gone: then nobody may be assumed.
    at: datetime


class IssueReading(Struct, frozen=True, kw_only=True):
    """An issue (or a pull request, which shares the numbers) with who labelled and edited it.

    `issue.labelled` is not filled in: which label counts is the observer's to know. The newest 100
    events are read; a label put on before them has no labeling here, and so no known actor.
    """

    issue: Issue
    is_pull: bool
    labels: tuple[str, ...]
    labelings: tuple[Labeling, ...]  #: Oldest first.
    edits: tuple[Edit, ...]  #: Oldest first: each change of the title, the last one of the body.
    reopened: Reopening | None = None  #: The last time that it was.


class PullReading(Struct, frozen=True, kw_only=True):
    """A pull request read whole. `allowed` of remarks and verdicts is the observer's to fill in."""

    pull: Pull
    head_repository: str  #: `owner/name`; empty where the fork is gone.
    head_branch: str
    author: str
    merged_by: str
    body: str
    #: Remarks changed by somebody else than their author: who did, by the remark's id; empty where
    #: that account is gone. Such text is only as trustworthy as its editor.
    edited_by: Mapping[str, str]
    labels: tuple[str, ...] = ()
