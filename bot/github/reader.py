"""All reads from GitHub."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from urllib.parse import quote

from msgspec import Raw

from bot.github.api_client import ApiClient
from bot.github.check_logs import check_report
from bot.github.checks import BaseChecks, BaseData, base_checks, needs_base_checks, rollup_of
from bot.github.errors import GitHubFailure, Refused, TryLater
from bot.github.fingerprints import fingerprint_of
from bot.github.github_app import missing_permissions
from bot.github.graphql import fingerprints
from bot.github.issues import issue_snapshot
from bot.github.pulls import pull_snapshot
from bot.github.repositories import labelled_issues, labels, requires_signatures
from bot.github.repository_aliases import RepositoryIdentity
from bot.github.rest import (
    AppResponse,
    BlockingIssue,
    ListedComment,
    ListedIssue,
    PermissionResponse,
    RepositoryIdResponse,
    RepositoryResponse,
)
from bot.github.shapes import (
    BranchData,
    IssueData,
    PageInfo,
    PullData,
    PullRequest,
    ViewerData,
)
from bot.github.snapshots import (
    CheckReport,
    Fingerprint,
    IssueSnapshot,
    PointBudget,
    PullSnapshot,
    RepositorySettings,
)
from lifecycle.model.policy import MergeMethod

#: Permissions that include pushing; unknown ones do not count.
WRITERS = {"write", "maintain", "admin"}
#: Either scope lets a classic token write to the repositories it can see.
WRITING_SCOPES = {"repo", "public_repo"}
#: A pull request with more pages in any list is read incompletely.
PULL_PAGES = 10
#: The number of fingerprints in one query: it costs one point, and GitHub answers in time.
FINGERPRINT_BATCH = 50
NULL = Raw(b"null")


class GitHubReader:
    """Reads GitHub. Thread-safe.

    Raises (every method):
        TryLater: GitHub cannot answer now.
        Refused: the bot may not read this.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._me = ""
        self._lock = Lock()

    def me(self) -> str:
        """The bot's own login: that of the token's owner, or `SLUG[bot]` of the App."""
        with self._lock:
            if not self._me:
                self._me = self._who_am_i()
            return self._me

    def is_me(self, login: str) -> bool:
        """Whether this is the bot's own login; False while that is unknown. Never raises."""
        with suppress(GitHubFailure):
            return login == self.me()
        return False

    def missing_permissions(self, repo: str) -> tuple[str, ...]:
        """A sentence for each permission that the bot needs in a repository and lacks.

        GitHub lists an App's permissions. For a token it says whether its owner may push, and for a
        classic token its scopes.
        """
        if self._api.tokens.is_app:
            return missing_permissions(self._api.installation(repo).permissions)
        rights = self._found(repo).permissions
        if rights and not rights.push:
            return ("the account has no write access",)
        scopes = self._api.scopes
        if scopes is not None and scopes.isdisjoint(WRITING_SCOPES):
            return ("the token may only read: it lacks the scope `repo`",)
        return ()

    def events(self, repo: str) -> tuple[str, ...]:
        """The webhook events that the App is subscribed to in a repository."""
        return self._api.installation(repo).events

    def identity(self, repo: str) -> RepositoryIdentity:
        """A repository's id and its name today.

        https://docs.github.com/rest/repos/repos#get-a-repository
        """
        found = self._found(repo)
        return RepositoryIdentity(id=found.id, name=found.full_name, archived=found.archived)

    def repository(self, repo: str) -> RepositorySettings:
        """A repository's settings.

        https://docs.github.com/rest/repos/repos#get-a-repository
        """
        found = self._api.get(repo, "", RepositoryResponse)
        allowed = {
            MergeMethod.MERGE: found.allow_merge_commit,
            MergeMethod.SQUASH: found.allow_squash_merge,
            MergeMethod.REBASE: found.allow_rebase_merge,
        }
        return RepositorySettings(
            default_branch=found.default_branch,
            private=found.private,
            archived=found.archived,
            clone_url=found.clone_url,
            merge_methods=tuple(method for method, is_allowed in allowed.items() if is_allowed),
        )

    def may_write(self, repo: str, login: str) -> bool:
        """Whether an account may push to the repository; False for an unknown account. Not cached.

        https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user
        """
        if not login:
            return False
        try:
            path = f"collaborators/{quote(login, safe='')}/permission"
            return self._api.get(repo, path, PermissionResponse).permission in WRITERS
        except Refused as refusal:
            if refusal.status == 404:
                return False
            raise

    def issue(self, repo: str, number: int) -> IssueSnapshot | None:
        """An issue, or the pull request with this number; None if neither exists."""
        data = self._api.graphql(repo, "issue", IssueData, {"number": number})
        return issue_snapshot(data.repository) if data else None

    def blocked_by(self, repo: str, number: int) -> tuple[str, ...]:
        """The open issues that block an issue, as `#5` or `owner/name#5`.

        Empty on servers without issue dependencies.
        https://docs.github.com/rest/issues/issue-dependencies#list-dependencies-an-issue-is-blocked-by
        """
        path, here = f"issues/{number}/dependencies/blocked_by", self._api.aliases.name(repo)
        try:
            blockers = list(self._api.pages(repo, path, BlockingIssue))
        except Refused as refusal:
            if refusal.status != 404:
                raise
            return ()
        return tuple(
            f"{'' if one.repository.lower() == here.lower() else one.repository}#{one.number}"
            for one in blockers
            if one.state == "open"
        )

    def requires_signatures(self, repo: str, branch: str) -> bool:
        """Whether a branch requires signed commits."""
        return requires_signatures(self._api, repo, branch)

    def labels(self, repo: str, word: str) -> list[str]:
        """The labels of a repository that contain a word, ignoring case."""
        return labels(self._api, repo, word)

    def labelled_issues(self, repo: str, words: Iterable[str]) -> set[int]:
        """The numbers of all open issues with one of these labels or assignees (`@login`).

        Labels are matched case-sensitively. Sends one query for each hundred issues of a label.
        """
        return labelled_issues(self._api, repo, words)

    def comments_since(self, repo: str, since: datetime) -> list[ListedComment]:
        """Comments of a repository that were written or edited since then, oldest first.

        https://docs.github.com/rest/issues/comments#list-issue-comments-for-a-repository
        """
        return list(self._api.pages(repo, "issues/comments", ListedComment, _changed_since(since)))

    def issues_since(self, repo: str, since: datetime) -> list[ListedIssue]:
        """Issues and pull requests of a repository that were updated since then, oldest first.

        https://docs.github.com/rest/issues/issues#list-repository-issues
        """
        params = {**_changed_since(since), "state": "all"}
        return list(self._api.pages(repo, "issues", ListedIssue, params))

    def pulls_of(self, repo: str, branch: str, home: str = "") -> list[int]:
        """The numbers of all pull requests from a branch, open or not.

        `home` is the fork the branch is in; empty for the repository itself.
        """
        numbers: list[int] = []
        cursor: str | None = None
        for _ in range(PULL_PAGES):
            variables = {"branch": branch, "after": cursor}
            data = self._api.graphql(repo, "pulls_of_branch", BranchData, variables)
            if data is None:
                break
            found = data.repository
            numbers += [
                pull.number
                for pull in found.pull_requests.nodes
                if pull.head_repository
                and pull.head_repository.name_with_owner.lower()
                == (home or found.name_with_owner).lower()
            ]
            if not found.pull_requests.page_info.has_next_page:
                return numbers
            cursor = found.pull_requests.page_info.end_cursor
        raise TryLater(
            f"The pull requests of branch {branch} in {repo} could not be listed completely."
        )

    def pull(self, repo: str, number: int) -> PullSnapshot | None:
        """A pull request with its checks, reviews, threads and comments; None if there is none."""
        pages: list[PullRequest] = []
        cursors: dict[str, str | None] = {}
        while len(pages) < PULL_PAGES:
            data = self._api.graphql(repo, "pull", PullData, {"number": number, **cursors})
            if data is None:
                return None
            page = data.repository.pull_request
            if pages and pages[0].head_ref_oid != page.head_ref_oid:
                raise TryLater(f"Pull request {number} of {repo} was pushed to while it was read.")
            pages.append(page)
            if not _more(page):
                break
            cursors = _cursors(page, cursors)
        read = partial(pull_snapshot, pages, self.me(), self._api.clock())
        reading = read()
        if not needs_base_checks(reading.pull.checks):
            return reading
        return read(self._on_base(repo, reading.pull.base))

    def fingerprints(
        self, repo: str, issues: Sequence[int], pulls: Sequence[int]
    ) -> dict[int, Fingerprint | None]:
        """The fingerprints of at most `FINGERPRINT_BATCH` subjects; None for unreadable ones."""
        found = self._api.graphql_batch(repo, "fingerprints", fingerprints(issues, pulls))
        data = {number: found.get(f"n{number}", NULL) for number in (*issues, *pulls)}
        return {
            number: fingerprint_of(fingerprint, pull=number in pulls)
            for number, fingerprint in data.items()
        }

    def budget(self, repo: str) -> PointBudget | None:
        """The GraphQL points left in the current hour, by the last response; None if unknown."""
        return self._api.budget(repo)

    def report(self, repo: str, run_id: int) -> CheckReport:
        """Why a check run failed: its log or output, and its annotations."""
        return check_report(self._api, repo, run_id)

    def _found(self, repo: str) -> RepositoryIdResponse:
        """Read a repository by its id, or by its name if the id is unknown or gone."""
        known = self._api.aliases.get(repo)
        if known is not None:
            try:
                return self._api.get_by_id(repo, known.id, RepositoryIdResponse)
            except Refused as refusal:
                if refusal.status != 404:
                    raise
        return self._api.get(repo, "", RepositoryIdResponse)

    def _on_base(self, repo: str, commit: str) -> BaseChecks:
        data = self._api.graphql(repo, "base_checks", BaseData, {"commit": commit})
        found = data.repository.object if data else None
        return base_checks(found.history.nodes, self.me()) if found else BaseChecks()

    def _who_am_i(self) -> str:
        if self._api.tokens.is_app:
            return f"{self._api.get_app(AppResponse).slug}[bot]"
        data = self._api.graphql("", "viewer", ViewerData, {})
        if data is None:
            raise TryLater("GitHub does not say whose token this is.")
        return data.viewer.login


def _changed_since(then: datetime) -> dict[str, str]:
    stamp = then.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"sort": "updated", "direction": "asc", "since": stamp}


def _more(page: PullRequest) -> bool:
    return any(info.has_next_page for info in _page_infos(page).values())


def _cursors(page: PullRequest, before: Mapping[str, str | None]) -> dict[str, str | None]:
    """The cursor of each list; a list that has ended stays at its end."""
    ends = {name: info.end_cursor for name, info in _page_infos(page).items()}
    return {**before, **{name: cursor for name, cursor in ends.items() if cursor}}


def _page_infos(page: PullRequest) -> dict[str, PageInfo]:
    rollup = rollup_of(page)
    infos = {
        "opinions": page.latest_opinionated_reviews.page_info,
        "reviews": page.reviews.page_info,
        "comments": page.comments.page_info,
        "threads": page.review_threads.page_info,
    }
    return {**infos, "checks": rollup.contexts.page_info} if rollup else infos
