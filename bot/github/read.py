"""All the bot reads of GitHub."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from urllib.parse import quote

from msgspec import Raw

from bot.github.calls import ApiClient
from bot.github.checks import BaseChecks, BaseData, base_checks, needs_base_checks, rollup_of
from bot.github.documents import fingerprints
from bot.github.errors import GitHubFailure, Refused, TryLater
from bot.github.failures import check_report
from bot.github.fingerprints import fingerprint_of
from bot.github.issues import issue_snapshot
from bot.github.labels import labelled_issues, labels
from bot.github.permissions import missing_permissions
from bot.github.pulls import pull_snapshot
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
from bot.github.signed_commits import requires_signatures
from bot.github.snapshots import (
    CheckReport,
    Fingerprint,
    IssueReading,
    PointBudget,
    PullReading,
    RepositorySettings,
)
from lifecycle.model.policy import MergeMethod

#: Words of GitHub that let an account push. Anything else, also a new word, does not.
WRITERS = {"write", "maintain", "admin"}
#: Either lets a classic token write, to a repository that it shows us at all.
WRITING_SCOPES = {"repo", "public_repo"}
#: A pull request with more pages of anything is read as incomplete.
PULL_PAGES = 10
#: How many are glanced at in one request: as many as cost one point, and GitHub answers in time.
FINGERPRINT_BATCH = 50
NULL = Raw(b"null")


class GitHubReader:
    """Reading GitHub. May be used from any thread.

    Every method raises `TryLater` where nothing could be learnt, and `Refused` where GitHub does
    not let us see.
    """

    def __init__(self, calls: ApiClient) -> None:
        self._calls = calls
        self._me = ""
        self._lock = Lock()

    def me(self) -> str:
        """The bot's own login: the token's account, or `SLUG[bot]` of the App."""
        with self._lock:
            if not self._me:
                self._me = self._who_am_i()
            return self._me

    def is_me(self, login: str) -> bool:
        """Whether this is the bot's own login; never, while GitHub does not say who that is."""
        with suppress(GitHubFailure):
            return login == self.me()
        return False

    def missing_permissions(self, repo: str) -> tuple[str, ...]:
        """A sentence for each thing the bot is not allowed in a repository and needs.

        GitHub tells an App all of it. Of a token it tells whether its account may push, and what
        scopes it has where it is a classic one.
        """
        if self._calls.tokens.is_app:
            return missing_permissions(self._calls.installation(repo).permissions)
        rights = self._found(repo).permissions
        if rights and not rights.push:
            return ("its account may not write",)
        scopes = self._calls.scopes
        if scopes is not None and scopes.isdisjoint(WRITING_SCOPES):
            return ("the token may only read: it lacks the scope `repo`",)
        return ()

    def events(self, repo: str) -> tuple[str, ...]:
        """The webhook events that the App is told of in a repository."""
        return self._calls.installation(repo).events

    def place(self, repo: str) -> RepositoryIdentity:
        """Where a repository is today."""
        said = self._found(repo)
        return RepositoryIdentity(id=said.id, now=said.full_name, archived=said.archived)

    def repository(self, repo: str) -> RepositorySettings:
        """A repository's settings."""
        said = self._calls.get(repo, "", RepositoryResponse)
        allowed = {
            MergeMethod.MERGE: said.allow_merge_commit,
            MergeMethod.SQUASH: said.allow_squash_merge,
            MergeMethod.REBASE: said.allow_rebase_merge,
        }
        return RepositorySettings(
            default_branch=said.default_branch,
            private=said.private,
            archived=said.archived,
            clone_url=said.clone_url,
            merge_methods=tuple(method for method, is_allowed in allowed.items() if is_allowed),
        )

    def may_write(self, repo: str, login: str) -> bool:
        """Whether an account may push to the repository, asked anew each time.

        False for an unknown account. Raises where GitHub gives no answer: doubt is no permission.
        """
        if not login:
            return False
        try:
            path = f"collaborators/{quote(login, safe='')}/permission"
            return self._calls.get(repo, path, PermissionResponse).permission in WRITERS
        except Refused as refusal:
            if refusal.status == 404:
                return False
            raise

    def issue(self, repo: str, number: int) -> IssueReading | None:
        """An issue, or the pull request that has the number; None where neither exists."""
        data = self._calls.graphql(repo, "issue", IssueData, {"number": number})
        return issue_snapshot(data.repository) if data else None

    def blocked_by(self, repo: str, number: int) -> tuple[str, ...]:
        """The open issues that an issue waits for, as `#5` or `owner/name#5`.

        None of them where the server knows no dependencies.
        """
        path, here = f"issues/{number}/dependencies/blocked_by", self._calls.aliases.now(repo)
        try:
            blockers = list(self._calls.pages(repo, path, BlockingIssue))
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
        """Whether a branch takes signed commits alone."""
        return requires_signatures(self._calls, repo, branch)

    def labels(self, repo: str, word: str) -> list[str]:
        """The labels of a repository that hold a word, in whatever letters, as they are spelled."""
        return labels(self._calls, repo, word)

    def labelled_issues(self, repo: str, words: Iterable[str]) -> set[int]:
        """The numbers of all open issues that wear one of the labels, or are assigned to `@login`.

        A label counts as it is spelled. One request, and one more where there are more than a
        hundred of a word.
        """
        return labelled_issues(self._calls, repo, words)

    def comments_since(self, repo: str, since: datetime) -> list[ListedComment]:
        """Every comment in a repository that was written or changed since then, oldest first."""
        return list(
            self._calls.pages(repo, "issues/comments", ListedComment, _changed_since(since))
        )

    def issues_since(self, repo: str, since: datetime) -> list[ListedIssue]:
        """Every issue and pull request of a repository that has changed since then, likewise."""
        params = {**_changed_since(since), "state": "all"}
        return list(self._calls.pages(repo, "issues", ListedIssue, params))

    def pulls_of(self, repo: str, branch: str, home: str = "") -> list[int]:
        """The numbers of all pull requests, open or not, from this branch of this repository.

        `home`: the fork that the branch is in. Another fork's of the same name is not this branch.
        """
        numbers: list[int] = []
        cursor: str | None = None
        for _ in range(PULL_PAGES):
            variables = {"branch": branch, "after": cursor}
            data = self._calls.graphql(repo, "pulls_of_branch", BranchData, variables)
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
        raise TryLater(f"The pull requests of branch {branch} in {repo} could not be read whole.")

    def pull(self, repo: str, number: int) -> PullReading | None:
        """A pull request with all its checks, reviews, threads and comments; None: no such one."""
        pages: list[PullRequest] = []
        cursors: dict[str, str | None] = {}
        while len(pages) < PULL_PAGES:
            data = self._calls.graphql(repo, "pull", PullData, {"number": number, **cursors})
            if data is None:
                return None
            page = data.repository.pull_request
            if pages and pages[0].head_ref_oid != page.head_ref_oid:
                raise TryLater(f"Pull request {number} of {repo} was pushed to while it was read.")
            pages.append(page)
            if not _more(page):
                break
            cursors = _cursors(page, cursors)
        read = partial(pull_snapshot, pages, self.me(), self._calls.clock())
        reading = read()
        if not needs_base_checks(reading.pull.checks):
            return reading
        return read(self._on_base(repo, reading.pull.base))

    def fingerprints(
        self, repo: str, issues: Sequence[int], pulls: Sequence[int]
    ) -> dict[int, Fingerprint | None]:
        """How at most `GLANCES` issues and pull requests stand; None: that one cannot be seen."""
        found = self._calls.query_aliases(repo, "fingerprints", fingerprints(issues, pulls))
        answers = {number: found.get(f"n{number}", NULL) for number in (*issues, *pulls)}
        return {
            number: fingerprint_of(answer, pull=number in pulls)
            for number, answer in answers.items()
        }

    def budget(self, repo: str) -> PointBudget | None:
        """What is left of the hour's points there, as GitHub said last; None: it did not say."""
        return self._calls.budget(repo)

    def report(self, repo: str, run_id: int) -> CheckReport:
        """What a check run printed, or the text it gave itself, and its notes at lines of files."""
        return check_report(self._calls, repo, run_id)

    def _found(self, repo: str) -> RepositoryIdResponse:
        """A repository. Its number counts; where that is gone, its name does."""
        known = self._calls.aliases.of(repo)
        if known is not None:
            try:
                return self._calls.get_place(repo, known.id, RepositoryIdResponse)
            except Refused as refusal:
                if refusal.status != 404:
                    raise
        return self._calls.get(repo, "", RepositoryIdResponse)

    def _on_base(self, repo: str, commit: str) -> BaseChecks:
        data = self._calls.graphql(repo, "base_checks", BaseData, {"commit": commit})
        found = data.repository.object if data else None
        return base_checks(found.history.nodes, self.me()) if found else BaseChecks()

    def _who_am_i(self) -> str:
        if self._calls.tokens.is_app:
            return f"{self._calls.get_app(AppResponse).slug}[bot]"
        data = self._calls.graphql("", "viewer", ViewerData, {})
        if data is None:
            raise TryLater("GitHub does not say whose token this is.")
        return data.viewer.login


def _changed_since(then: datetime) -> dict[str, str]:
    stamp = then.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"sort": "updated", "direction": "asc", "since": stamp}


def _more(page: PullRequest) -> bool:
    return any(info.has_next_page for info in _page_infos(page).values())


def _cursors(page: PullRequest, before: Mapping[str, str | None]) -> dict[str, str | None]:
    """Where each list goes on; one that has ended stays at its end, so that nothing comes twice."""
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
