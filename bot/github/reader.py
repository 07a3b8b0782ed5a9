"""Reads repositories, issues, pull requests and permissions from GitHub."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from typing import TypeVar
from urllib.parse import quote

from msgspec import Raw

from bot.github import rest
from bot.github.api_client import MAX_PAGES, ApiClient
from bot.github.base_checks import BaseChecksReader
from bot.github.check_logs import check_report
from bot.github.checks import needs_base_checks
from bot.github.errors import GitHubFailure, IgnoreRefused, TryLater
from bot.github.fingerprints import Fingerprint, branch_in, fingerprint_of
from bot.github.github_app import missing_permissions
from bot.github.graphql import branches, fingerprints, labelled_issues
from bot.github.issues import issue_snapshot
from bot.github.pulls import pull_snapshot
from bot.github.push_rules import PushRules
from bot.github.shapes import (
    AtObject,
    BranchTip,
    GraphQLShape,
    IssueRepository,
    NamedNode,
    NodeList,
    NodePage,
    NumberNode,
    OfPull,
    PullRequest,
    RepositoryName,
    RuleType,
)
from bot.github.snapshots import BranchFile, CheckReport, IssueSnapshot, PointBudget, PullSnapshot
from bot.github.transport import decode

T = TypeVar("T")
#: The permissions that include pushing. Unknown permissions count as not including it.
WRITERS = {"write", "maintain", "admin"}
#: Either scope lets a classic token write to the repositories it can see.
WRITING_SCOPES = {"repo", "public_repo"}
#: The most pages read of a pull request's lists, and of the list of a branch's pull requests.
PULL_PAGES = 10
#: Fingerprints or branches per query: a query of this size costs one point and does not time out.
FINGERPRINT_BATCH = 50
_NULL = Raw(b"null")


class RepositoryLabels(GraphQLShape, frozen=True):
    """The repository in GitHub's response to `labels.graphql`."""

    labels: NodeList[NamedNode] | None


class RefUpdateRule(GraphQLShape, frozen=True):
    requires_signatures: bool


class ProtectedBranch(GraphQLShape, frozen=True):
    ref_update_rule: RefUpdateRule | None
    rules: NodeList[RuleType] | None


class ProtectedRef(GraphQLShape, frozen=True):
    """The repository in GitHub's response to `signatures.graphql`."""

    ref: ProtectedBranch | None


class Blob(GraphQLShape, frozen=True):
    """A file. `text` is None for a binary file; `oid` is empty if not queried or if none exists."""

    oid: str = ""
    text: str | None = None


class DefaultBranch(BranchTip, frozen=True):
    name: str


class FileAtHead(AtObject[Blob], frozen=True):
    """The repository in GitHub's response to `default_branch_file.graphql`."""

    default_branch_ref: DefaultBranch | None


class TreeEntry(GraphQLShape, frozen=True):
    name: str
    object: Blob | None = None


class Tree(GraphQLShape, frozen=True):
    """The folder of workflows in GitHub's response to `workflows.graphql`."""

    entries: tuple[TreeEntry, ...] = ()


class PullOfBranch(NumberNode, frozen=True):
    """A pull request from a branch of the requested name, which may be in any repository."""

    head_repository: RepositoryName | None


class BranchPulls(RepositoryName, frozen=True):
    """The repository in GitHub's response to `pulls_of_branch.graphql`."""

    pull_requests: NodePage[PullOfBranch]


class GitHubReader:
    """Reads from GitHub. Thread-safe. `repo` is a repository's configured name.

    Raises (every method):
        TryLater: GitHub cannot answer now.
        Refused: the bot may not read this, or it does not exist and the result cannot say so.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self.me = api.me
        self._on_base = BaseChecksReader(api)
        self._push_rules = PushRules(api)

    def is_me(self, login: str) -> bool:
        """Whether `login` is the bot's own; False while the bot's login is unknown.

        Never raises.
        """
        with suppress(GitHubFailure):
            return login == self.me()
        return False

    def missing_permissions(
        self, repo: str, identity: rest.RepositoryIdentity | None = None
    ) -> tuple[str, ...]:
        """Return a sentence for each permission that the bot lacks in a repository.

        GitHub lists an App's permissions. For a token, GitHub says whether the token's user may
        push; for a classic token, it also lists the scopes. If `identity` is None, it is read.
        """
        if self._api.tokens.is_app:
            return missing_permissions(self._api.installation(repo).permissions)
        rights = (identity or self.identity(repo)).permissions
        if rights and not rights.push:
            return ("the account has no write access",)
        scopes = self._api.scopes
        if scopes is not None and scopes.isdisjoint(WRITING_SCOPES):
            return ("the token may only read: it lacks the scope `repo`",)
        return ()

    def events(self, repo: str) -> tuple[str, ...]:
        """Return the webhook events that the App is subscribed to in a repository."""
        return self._api.installation(repo).events

    def webhooks(self, repo: str) -> list[rest.RepositoryWebhook]:
        """Return the repository's own webhooks, which only its administrators may see.

        https://docs.github.com/rest/repos/webhooks#list-repository-webhooks
        """
        return list(self._api.pages(repo, "hooks", rest.RepositoryWebhook))

    def identity(self, repo: str) -> rest.RepositoryIdentity:
        """Return a repository's id and current name.

        The repository is found by its id, or by its name if no valid id is known.
        """
        known = self._api.aliases.get(repo)
        if known is not None:
            with IgnoreRefused(404):
                return self._api.get_by_id(repo, known.id, rest.RepositoryIdentity)
        return self._api.get(repo, "", rest.RepositoryIdentity)

    def repository(self, repo: str) -> rest.RepositorySettings:
        """Return a repository's settings."""
        return self._api.get(repo, "", rest.RepositorySettings)

    def default_branch(self, repo: str) -> str:
        """Return the default branch. It is read from GitHub only if the client does not know it."""
        known = self._api.aliases.get(repo)
        return (
            known.default_branch
            if known and known.default_branch
            else self.repository(repo).default_branch
        )

    def may_write(self, repo: str, login: str) -> bool:
        """Whether an account may push to the repository; False for an unknown account. Not cached.

        https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user
        """
        if not login:
            return False
        with IgnoreRefused(404):
            path = f"collaborators/{quote(login, safe='')}/permission"
            return self._api.get(repo, path, rest.PermissionResponse).permission in WRITERS
        return False

    def issue(self, repo: str, number: int) -> IssueSnapshot | None:
        """Return the issue or pull request with this number; None if neither exists."""
        found = self._api.query(repo, "issue", IssueRepository, {"number": number})
        return issue_snapshot(found, self.me()) if found else None

    def blocked_by(self, repo: str, number: int) -> tuple[str, ...]:
        """Return the open issues that block an issue, as `#5` or `owner/name#5`.

        Empty on servers without issue dependencies.
        https://docs.github.com/rest/issues/issue-dependencies#list-dependencies-an-issue-is-blocked-by
        """
        path, here = f"issues/{number}/dependencies/blocked_by", self._api.aliases.name(repo)
        with IgnoreRefused(404):
            return tuple(
                f"{'' if one.repository.lower() == here.lower() else one.repository}#{one.number}"
                for one in self._api.pages(repo, path, rest.BlockingIssue)
                if one.state == "open"
            )
        return ()

    def requires_signatures(self, repo: str, branch: str) -> bool:
        """Whether a branch protection or ruleset that the bot may see requires signed commits."""
        data = self._api.query(repo, "signatures", ProtectedRef, {"branch": f"refs/heads/{branch}"})
        if data is None or data.ref is None:
            return False
        update, rules = data.ref.ref_update_rule, data.ref.rules.nodes if data.ref.rules else ()
        protected = update is not None and update.requires_signatures
        return protected or any(rule.type == "REQUIRED_SIGNATURES" for rule in rules)

    def signing_keys(self, repo: str, login: str) -> list[str]:
        """Return the public SSH keys with which an account signs, each as type and Base64.

        https://docs.github.com/en/rest/users/ssh-signing-keys#list-ssh-signing-keys-for-a-user
        """
        found: list[rest.SigningKeyEntry] = []
        for request, page in self._api.contents(repo, f"users/{login}/ssh_signing_keys"):
            found += decode(request, page, list[rest.SigningKeyEntry])
        return [" ".join(one.line.split()[:2]) for one in found]

    def labels(self, repo: str, word: str) -> list[str]:
        """Return up to 100 labels whose name or description contains `word`, ignoring case."""
        found = self._api.query(repo, "labels", RepositoryLabels, {"word": word})
        return [label.name for label in found.labels.nodes] if found and found.labels else []

    def labelled_issues(self, repo: str, words: Iterable[str]) -> set[int]:
        """Return the numbers of all open issues with one of these labels or assignees (`@login`).

        Labels are matched case-sensitively. Each query reads up to 100 issues of each label.
        """
        numbers: set[int] = set()
        waiting: dict[str, str | None] = dict.fromkeys(words)
        for _ in range(MAX_PAGES):
            found = self._api.query(
                repo, "labelled", dict[str, NodePage[NumberNode]], text=labelled_issues(waiting)
            )
            if found is None:
                break
            pages = {word: found[f"l{at}"] for at, word in enumerate(waiting)}
            numbers |= {issue.number for page in pages.values() for issue in page.nodes}
            infos = {word: page.page_info for word, page in pages.items()}
            waiting = {word: one.end_cursor for word, one in infos.items() if one.has_next_page}
            if not waiting:
                return numbers
        raise TryLater(f"The list of labelled issues of {repo} is incomplete.")

    def file(self, repo: str, path: str) -> BranchFile:
        """Read a file of the default branch.

        The result's `blob` is empty if there is no such file.
        """
        found = self._api.query(repo, "default_branch_file", FileAtHead, {"file": f"HEAD:{path}"})
        if found is None or found.default_branch_ref is None:
            return BranchFile(branch="")
        branch, file = found.default_branch_ref, found.object or Blob()
        return BranchFile(
            branch=branch.name,
            head=branch.target.oid if branch.target else "",
            blob=file.oid,
            text=file.text if file.oid else "",
        )

    def workflows(self, repo: str) -> Mapping[str, str]:
        """Return the text of each GitHub Actions workflow on the default branch, by its path."""
        found = self._api.query(repo, "workflows", AtObject[Tree])
        folder = found.object if found else None
        return {
            f".github/workflows/{entry.name}": entry.object.text or ""
            for entry in (folder.entries if folder else ())
            if entry.object is not None and entry.name.endswith((".yml", ".yaml"))
        }

    def comments_since(self, repo: str, since: datetime) -> list[rest.ListedComment]:
        """Return the issue and pull request comments changed since a time, the latest change last.

        https://docs.github.com/rest/issues/comments#list-issue-comments-for-a-repository
        """
        path, params = "issues/comments", _changed_since(since)
        return list(self._api.pages(repo, path, rest.ListedComment, params))

    def issues_since(self, repo: str, since: datetime) -> list[rest.ListedIssue]:
        """Return the issues and pull requests updated since a time, the latest update last.

        https://docs.github.com/rest/issues/issues#list-repository-issues
        """
        params = {**_changed_since(since), "state": "all"}
        return list(self._api.pages(repo, "issues", rest.ListedIssue, params))

    def pulls_of(self, repo: str, branch: str, home: str = "") -> list[int]:
        """Return the numbers of all pull requests from a branch, open or not.

        `home` is the fork with the branch; empty if the branch is in the repository itself.
        """
        numbers: list[int] = []
        cursor: str | None = None
        for _ in range(PULL_PAGES):
            variables = {"branch": branch, "after": cursor}
            found = self._api.query(repo, "pulls_of_branch", BranchPulls, variables)
            if found is None:
                break
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

    def pushers(self, repo: str, branch: str, since: str) -> tuple[str, ...]:
        """Return who pushed to a branch after its head was `since`, as logins, the last one first.

        Reads the branch's last 100 changes; if none of them led to `since`, returns all who pushed.
        https://docs.github.com/rest/repos/repos#list-repository-activities
        """
        params = {"ref": f"refs/heads/{branch}", "per_page": "100"}
        found = self._api.get(repo, "activity", list[rest.BranchActivity], params)
        newer = takewhile(lambda one: one.after != since, found)
        return tuple(dict.fromkeys(one.actor.login for one in newer if one.actor))

    def pull(self, repo: str, number: int) -> PullSnapshot | None:
        """Return a pull request with its checks, reviews, threads and comments; None if unknown."""
        pages: list[PullRequest] = []
        cursors: dict[str, str | None] = {}
        while len(pages) < PULL_PAGES:
            variables = {"number": number, **cursors}
            found = self._api.query(repo, "pull", OfPull[PullRequest], variables)
            if found is None:
                return None
            page = found.pull_request
            if pages and pages[0].head_ref_oid != page.head_ref_oid:
                raise TryLater(f"Pull request {number} of {repo} was pushed to while it was read.")
            pages.append(page)
            infos = page.page_infos
            if not any(info.has_next_page for info in infos.values()):
                break
            # The cursor of a list that was read to its end stays there.
            cursors |= {name: info.end_cursor for name, info in infos.items() if info.end_cursor}
        barred = self._push_rules.barring(repo, pages[-1].base_ref, self.me())
        read = partial(pull_snapshot, pages, self.me(), self._api.clock(), barred=barred)
        reading = read()
        if not needs_base_checks(reading.pull.checks):
            return reading
        return read(self._on_base.read(repo, reading.pull.base, reading.pull.base_branch))

    def fingerprints(
        self, repo: str, issues: Sequence[int], pulls: Sequence[int]
    ) -> dict[int, Fingerprint | None]:
        """Return fingerprints of up to 50 issues and pull requests; None for an unreadable one."""
        found = self._api.graphql_batch(repo, "fingerprints", fingerprints(issues, pulls))
        data = {number: found.get(f"n{number}", _NULL) for number in (*issues, *pulls)}
        return {
            number: fingerprint_of(fingerprint, pull=number in pulls)
            for number, fingerprint in data.items()
        }

    def branches(self, repo: str, pulls: Sequence[int]) -> dict[int, str]:
        """Return the head branches of up to 50 pull requests by number, without unreadable ones."""
        found = self._api.graphql_batch(repo, "branches", branches(pulls))
        names = {number: branch_in(found.get(f"n{number}", _NULL)) for number in pulls}
        return {number: name for number, name in names.items() if name}

    def budget(self, repo: str) -> PointBudget | None:
        """Return the GraphQL points left in this hour, as of the last response; None if unknown."""
        return self._api.budget(repo)

    def report(self, repo: str, run_id: int) -> CheckReport:
        """Return why a check run failed: its log (or else its output), and its annotations."""
        return check_report(self._api, repo, run_id)


def _changed_since(then: datetime) -> dict[str, str]:
    stamp = then.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"sort": "updated", "direction": "asc", "since": stamp}
