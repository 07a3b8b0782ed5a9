"""Merges pull requests: directly, asynchronously, or through GitHub's merge queue.

A refused merge raises `Conflicted` if it may help to read the pull request again, else `Refused`.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from bot.github.api_client import ApiClient
from bot.github.errors import Conflicted, IgnoreRefused, Refused, TryLater
from bot.github.rest import CommitSha, MergeProgress, PullResponse
from bot.github.shapes import GraphQLShape, OfPull
from lifecycle.model.policy import MergeMethod

#: Status codes of a refused merge whose pull request may have changed since the bot's decision.
#: https://docs.github.com/rest/pulls/pulls#merge-a-pull-request
_NOT_MERGEABLE = {400, 405, 409}
#: Bounds of the pause between two requests for the result of an asynchronous merge.
_FIRST_POLL, _LAST_POLL = timedelta(seconds=1), timedelta(minutes=1)
#: What `merge` and `enqueue` return if GitHub's merge queue will merge the pull request.
QUEUED = "queued"

#: A merge: repository, number of the pull request, and its head commit that is to be merged.
_MergeId = tuple[str, int, str]


class _Ticket(NamedTuple):
    """An asynchronous merge under way."""

    since: datetime  #: When this process first requested it.
    uuid: str = ""  #: Its id at GitHub; empty if unknown, as after the bot's restart.


class PullTarget(GraphQLShape, frozen=True):
    """The fields of a pull request that determine how it can be merged."""

    id: str
    is_in_merge_queue: bool
    head_ref_oid: str
    base_ref_name: str


class MergeTarget(OfPull[PullTarget], frozen=True):
    """The repository in GitHub's response to `merge_target.graphql`, with a pull request."""

    merge_commit_allowed: bool
    squash_merge_allowed: bool
    rebase_merge_allowed: bool

    @property
    def base_branch(self) -> str:
        """Return the branch that the pull request is to be merged into."""
        return self.pull_request.base_ref_name

    @property
    def methods(self) -> tuple[MergeMethod, ...]:
        """Return the methods that the repository allows."""
        allowed = {
            MergeMethod.MERGE: self.merge_commit_allowed,
            MergeMethod.SQUASH: self.squash_merge_allowed,
            MergeMethod.REBASE: self.rebase_merge_allowed,
        }
        return tuple(method for method, is_allowed in allowed.items() if is_allowed)


class PullMerger:
    """Merges pull requests. Thread-safe and idempotent.

    Raises (every method):
        TryLater: GitHub cannot answer, or the merge is not finished.
        Conflicted: the head may have moved, or a rule blocks the merge.
        Refused: GitHub refuses for another reason.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        #: Asynchronous merges in progress. After a restart the bot requests them again, and GitHub
        #: refuses (409) as long as the earlier request is in progress.
        self._tickets: dict[_MergeId, _Ticket] = {}
        self._direct: set[str] = set()  #: Repositories whose server has no asynchronous merges.

    def merge(
        self, repo: str, number: int, sha: str, method: MergeMethod, title: str, message: str
    ) -> str:
        """Merge a pull request if its head is `sha`; return the merge commit or `QUEUED`.

        On a server with asynchronous merges, returns `QUEUED` if the base branch turns out to have
        a merge queue, and raises `TryLater` until the merge is finished.
        https://docs.github.com/rest/pulls/pulls#merge-a-pull-request-asynchronously
        """
        request = {
            "sha": sha,
            "merge_method": method.value,
            "commit_title": title,
            "commit_message": message,
        }
        try:
            if repo not in self._direct:
                with IgnoreRefused(404):
                    return self._merge_async(repo, number, sha, request)
            merged = self._api.send(repo, "PUT", f"pulls/{number}/merge", request, CommitSha).sha
        except Refused as refusal:
            return self._unless_merged(repo, number, sha, refusal)
        self._direct.add(repo)
        return merged

    def description(self, repo: str, number: int) -> str:
        """Return the text of a pull request."""
        return self._api.get(repo, f"pulls/{number}", PullResponse).body or ""

    def target(self, repo: str, number: int) -> MergeTarget:
        """Return where and how a pull request may be merged at present."""
        found = self._api.query(repo, "merge_target", MergeTarget, {"number": number})
        if found is None:
            raise Refused(f"There is no pull request {number} in {repo}.", 404)
        return found

    def enqueue(self, repo: str, target: MergeTarget, sha: str) -> str:
        """Add a pull request to the merge queue if its head is `sha` (`enqueuePullRequest`).

        Idempotent; returns `QUEUED`. https://docs.github.com/en/graphql/reference/mutations
        """
        pull = target.pull_request
        if pull.is_in_merge_queue and pull.head_ref_oid == sha:
            return QUEUED
        try:
            self._api.mutate(repo, "enqueue", {"pull": pull.id, "head": sha})
        except Refused as refusal:
            if refusal.status == 422:
                raise Conflicted(str(refusal), refusal.status) from refusal
            raise
        return QUEUED

    def dequeue(self, repo: str, number: int) -> None:
        """Remove a pull request from the merge queue (`dequeuePullRequest`); idempotent."""
        pull = self.target(repo, number).pull_request
        if pull.is_in_merge_queue:
            self._api.mutate(repo, "dequeue", {"pull": pull.id})

    def _merge_async(self, repo: str, number: int, sha: str, request: object) -> str:
        path, merge_id = f"pulls/{number}/merge-async", (repo, number, sha)
        ticket = self._tickets.pop(merge_id, _Ticket(self._api.clock()))
        try:
            if ticket.uuid:
                progress = self._api.get(repo, f"{path}/{ticket.uuid}", MergeProgress)
            else:
                progress = self._api.send(repo, "PUT", path, request, MergeProgress)
        except Refused as refusal:
            if refusal.status != 409:
                raise
            raise self._pending(
                merge_id, ticket, f"{refusal} A merge requested earlier is in progress."
            ) from refusal
        details = progress.details
        match progress.status:
            case "merged" if ticket.uuid:
                return details.sha
            case "enqueued":
                return QUEUED
            case "pending":
                why = f"Pull request {number} of {repo}: {details.message}"
                raise self._pending(merge_id, ticket._replace(uuid=details.uuid), why)
            case _:
                # It failed, or was merged before at an unknown commit.
                raise Conflicted(f"Pull request {number} of {repo}: {details.message}", 409)

    def _unless_merged(self, repo: str, number: int, sha: str, refusal: Refused) -> str:
        """Return the merge commit if `sha` is already merged; otherwise raise the refusal.

        The refusal is raised as `Conflicted` if its status says that the pull request may have
        changed.
        """
        pull = self._api.get(repo, f"pulls/{number}", PullResponse)
        if pull.merged and pull.head.sha == sha and pull.merge_commit_sha:
            return pull.merge_commit_sha
        if refusal.status in _NOT_MERGEABLE:
            raise Conflicted(str(refusal), refusal.status) from refusal
        raise refusal

    def _pending(self, merge_id: _MergeId, ticket: _Ticket, why: str) -> TryLater:
        """Store the ticket; return the exception that says when to ask for the result again."""
        self._tickets[merge_id] = ticket
        now = self._api.clock()
        wait = max(_FIRST_POLL, (now - ticket.since) / 2)
        return TryLater(why, now + min(wait, _LAST_POLL))
