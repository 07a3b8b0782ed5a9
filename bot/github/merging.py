"""Having a pull request merged: at once, in the background, or by GitHub's merge queue."""

from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Raw, Struct

from bot.github.calls import ApiClient
from bot.github.errors import Conflicted, Refused, TryLater
from bot.github.shapes import GraphQLShape
from lifecycle.model.policy import MergeMethod

#: What merging answers when the pull request is not (any more) what was judged.
_NOT_MERGEABLE = {400, 405, 409}
#: How soon a merge in the background is asked about again: less often the longer it takes.
_FIRST_POLL, _LAST_POLL = timedelta(seconds=1), timedelta(minutes=1)
#: What a merge came to that GitHub's queue carries out.
QUEUED = "queued"


#: What a merge is known by: the repository, the number and the judged commit.
_Asked = tuple[str, int, str]


class _Ticket(NamedTuple):
    """A merge under way in the background."""

    since: datetime  #: When we asked for it first.
    uuid: str = ""  #: Empty: a restart forgot it.


class _Details(Struct, frozen=True):
    message: str
    uuid: str = ""
    sha: str = ""


class _Progress(Struct, frozen=True):
    """The answers of pulls/NUMBER/merge-async. A `pending` one is accepted, and not merged."""

    status: str
    details: _Details


class _Head(Struct, frozen=True):
    sha: str


class _Pull(Struct, frozen=True):
    """GET pulls/NUMBER."""

    merged: bool
    head: _Head
    merge_commit_sha: str | None = None


class _Merged(Struct, frozen=True):
    """The answer to a merge that was done at once."""

    sha: str


class _QueueablePull(GraphQLShape, frozen=True):
    id: str
    is_in_merge_queue: bool
    head_ref_oid: str


class _Repository(GraphQLShape, frozen=True):
    pull_request: _QueueablePull


class _PullId(GraphQLShape, frozen=True):
    """The answer to pull_id.graphql."""

    repository: _Repository


class PullMerger:
    """Merging. May be used from any thread, and repeated: what was merged already is found.

    Every method raises `TryLater`, `Refused`, or `Conflicted` where the head moved or a rule holds
    it.
    """

    def __init__(self, calls: ApiClient) -> None:
        self._calls = calls
        #: Merges under way in the background, by what was asked for. One that a restart forgets is
        #: asked for again, and is then the same one.
        self._tickets: dict[_Asked, _Ticket] = {}

    def merge(
        self, repo: str, number: int, sha: str, method: MergeMethod, title: str, message: str
    ) -> str:
        """Merge a pull request at the commit that was judged; the sha it became on the base.

        `QUEUED` where the base is reached through a merge queue after all. In the background where
        GitHub offers that: until it has merged, this raises `TryLater`.
        """
        request = {
            "sha": sha,
            "merge_method": method.value,
            "commit_title": title,
            "commit_message": message,
        }
        try:
            return self._in_background(repo, number, sha, request)
        except Refused as refusal:
            try:
                if refusal.status != 404:
                    raise
                return self._calls.send(repo, "PUT", f"pulls/{number}/merge", request, _Merged).sha
            except Refused as no:
                return self._unless_merged(repo, number, sha, no)

    def enqueue(self, repo: str, number: int, sha: str) -> str:
        """Have the merge queue land a pull request at this head; one that is in it stays there."""
        pull = self._queueable(repo, number)
        if pull.is_in_merge_queue and pull.head_ref_oid == sha:
            return QUEUED
        try:
            self._calls.graphql(repo, "enqueue", Raw, {"pull": pull.id, "head": sha})
        except Refused as refusal:
            if refusal.status == 422:
                raise Conflicted(str(refusal), refusal.status) from refusal
            raise
        return QUEUED

    def dequeue(self, repo: str, number: int) -> None:
        """Take a pull request out of the merge queue; one that is not in it stays out."""
        pull = self._queueable(repo, number)
        if pull.is_in_merge_queue:
            self._calls.graphql(repo, "dequeue", Raw, {"pull": pull.id})

    def _queueable(self, repo: str, number: int) -> _QueueablePull:
        found = self._calls.graphql(repo, "pull_id", _PullId, {"number": number})
        if found is None:
            raise Refused(f"There is no pull request {number} in {repo}.", 404)
        return found.repository.pull_request

    def _in_background(self, repo: str, number: int, sha: str, request: object) -> str:
        path, asked = f"pulls/{number}/merge-async", (repo, number, sha)
        ticket = self._tickets.pop(asked, _Ticket(self._calls.clock()))
        try:
            if ticket.uuid:
                said = self._calls.get(repo, f"{path}/{ticket.uuid}", _Progress)
            else:
                said = self._calls.send(repo, "PUT", path, request, _Progress)
        except Refused as refusal:
            if refusal.status != 409:
                raise
            raise self._under_way(asked, ticket, f"{refusal} It is at an earlier one.") from refusal
        told = said.details
        match said.status:
            case "merged" if ticket.uuid:
                return told.sha
            case "enqueued":
                return QUEUED
            case "pending":
                why = f"Pull request {number} of {repo}: {told.message}"
                raise self._under_way(asked, ticket._replace(uuid=told.uuid), why)
            case _:
                # It failed, or was merged before, who knows at which commit.
                raise Conflicted(f"Pull request {number} of {repo}: {told.message}", 409)

    def _unless_merged(self, repo: str, number: int, sha: str, refusal: Refused) -> str:
        """The merge of this very commit, where that is why GitHub refuses; raises otherwise."""
        pull = self._calls.get(repo, f"pulls/{number}", _Pull)
        if pull.merged and pull.head.sha == sha and pull.merge_commit_sha:
            return pull.merge_commit_sha
        if refusal.status in _NOT_MERGEABLE:
            raise Conflicted(str(refusal), refusal.status) from refusal
        raise refusal

    def _under_way(self, asked: _Asked, ticket: _Ticket, why: str) -> TryLater:
        """It is still at it; when to ask again."""
        self._tickets[asked] = ticket
        now = self._calls.clock()
        wait = max(_FIRST_POLL, (now - ticket.since) / 2)
        return TryLater(why, now + min(wait, _LAST_POLL))
