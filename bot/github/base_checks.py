"""Reads the checks of the base branch, and caches them once all have completed."""

from datetime import datetime, timedelta

from bot.github.api_client import ApiClient
from bot.github.checks import BaseChecks, base_checks
from bot.github.shapes import AtObject, CheckedCommit, GraphQLShape, NodeList

#: How long completed checks are cached, because a rerun may change them; and the number of cached
#: entries at which all are dropped.
_CACHED, _MOST = timedelta(minutes=10), 1000


class History(GraphQLShape, frozen=True):
    """A commit with its history; empty for a Git object of another type."""

    history: NodeList[CheckedCommit] = NodeList(nodes=())


class CheckedNode(GraphQLShape, frozen=True):
    commit: CheckedCommit


class MergedPull(GraphQLShape, frozen=True):
    """A merged pull request with its last commit."""

    commits: NodeList[CheckedNode]


class CheckedBase(AtObject[History], frozen=True):
    """The repository in GitHub's response to `base_checks.graphql`."""

    pull_requests: NodeList[MergedPull]


class BaseChecksReader:
    """Reads and caches the checks of base branches. Methods raise `TryLater` or `Refused`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        #: By repository, commit and branch: the checks, and until when the cache entry is valid.
        self._known: dict[tuple[str, str, str], tuple[BaseChecks, datetime]] = {}

    def read(self, repo: str, commit: str, branch: str) -> BaseChecks:
        """Return which checks failed on a branch, and which ran for pull requests merged into it.

        `commit` is the head of the branch. Each check counts with its newest completed result in
        the last commits of the branch.
        """
        key, now = (repo, commit, branch), self._api.clock()
        known, until = self._known.get(key, (None, now))
        if known is not None and now < until:
            return known
        found = self._read(repo, commit, branch)
        if found.settled:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = found, now + _CACHED
        return found

    def _read(self, repo: str, commit: str, branch: str) -> BaseChecks:
        variables = {"commit": commit, "base": branch}
        data = self._api.query(repo, "base_checks", CheckedBase, variables)
        if data is None:
            return BaseChecks()
        commits = data.object.history.nodes if data.object else ()
        pulls = data.pull_requests.nodes
        return base_checks(
            commits, [node.commit for p in pulls for node in p.commits.nodes], self._api.me()
        )
