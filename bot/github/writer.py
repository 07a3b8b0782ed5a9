"""Writes to issues, pull requests and branches. Every write is safe to repeat."""

from collections.abc import Collection, Container, Iterable
from urllib.parse import quote

from bot.github.api_client import ApiClient
from bot.github.check_logs import GITHUB_ACTIONS
from bot.github.comment_markers import own_comments, with_marker, without_markers
from bot.github.errors import Conflicted, IgnoreRefused, Refused
from bot.github.rest import (
    CheckRunResponse,
    Identified,
    IssueState,
    JobResponse,
    PullResponse,
)
from bot.github.shapes import BranchTip, GraphQLShape, NamedNode, NodePage, NumberNode
from lifecycle.model.names import SHOWS_STATUS


class BranchUse(GraphQLShape, frozen=True):
    """The repository in GitHub's response to `branch_use.graphql`.

    It contains a branch, and the open pull requests based on that branch.
    """

    ref: BranchTip | None
    pull_requests: NodePage[NumberNode]


class GitHubWriter:
    """Writes to issues, pull requests and branches. Thread-safe.

    Raises (every method):
        TryLater: GitHub gave no result; the write may have taken effect, and may be repeated.
        Refused: GitHub refuses the write.
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def comment(self, repo: str, number: int, body: str, key: str, *, first: bool = False) -> int:
        """Comment on an issue or pull request, once for each key; return the comment's id.

        `first` says that this is the first attempt: the comments are not searched for the key.
        https://docs.github.com/rest/issues/comments#create-an-issue-comment
        """
        path = f"issues/{number}/comments"
        for mine in () if first else own_comments(self._api, repo, path, key):
            return mine.id
        return self._api.send(repo, "POST", path, {"body": with_marker(body, key)}, Identified).id

    def remove_duplicates(self, repo: str, number: int, key: str) -> None:
        """Delete all but the oldest of the bot's comments with this key.

        https://docs.github.com/rest/issues/comments#delete-an-issue-comment
        """
        for doubled in list(own_comments(self._api, repo, f"issues/{number}/comments", key))[1:]:
            with IgnoreRefused(404):
                self._api.do(repo, "DELETE", f"issues/comments/{doubled.id}")

    def label(self, repo: str, number: int, *names: str) -> None:
        """Add labels to an issue or pull request. GitHub creates labels that do not exist.

        https://docs.github.com/rest/issues/labels#add-labels-to-an-issue
        """
        if names:
            self._api.do(repo, "POST", f"issues/{number}/labels", {"labels": names})

    def unlabel(self, repo: str, number: int, name: str) -> None:
        """Remove a label from an issue or pull request.

        https://docs.github.com/rest/issues/labels#remove-a-label-from-an-issue
        """
        with IgnoreRefused(404):
            self._api.do(repo, "DELETE", f"issues/{number}/labels/{quote(name, safe='')}")

    def set_status_label(self, repo: str, number: int, status: str) -> None:
        """Add the label of a status to an issue, and remove those of other statuses."""
        path, wanted = f"issues/{number}/labels", f"{SHOWS_STATUS}{status}"
        present = {label.name for label in self._api.pages(repo, path, NamedNode)}
        for name in sorted(present - {wanted}):
            if name.startswith(SHOWS_STATUS):
                self.unlabel(repo, number, name)
        if wanted not in present:
            self.label(repo, number, wanted)

    def react(self, repo: str, comment: int, content: str) -> None:
        """Add a reaction, such as `eyes`, to a comment. GitHub ignores repetitions.

        https://docs.github.com/rest/reactions/reactions#create-reaction-for-an-issue-comment
        """
        path = f"issues/comments/{comment}/reactions"
        self._api.do(repo, "POST", path, {"content": content})

    def react_to_issue(self, repo: str, number: int, content: str) -> None:
        """Add a reaction, such as `eyes`, to an issue. GitHub ignores repetitions.

        https://docs.github.com/rest/reactions/reactions#create-reaction-for-an-issue
        """
        path = f"issues/{number}/reactions"
        self._api.do(repo, "POST", path, {"content": content})

    def open_pull(
        self,
        repo: str,
        head: str,
        base: str,
        title: str,
        body: str,
        draft: bool,
        pushed: Container[str],
        *,
        first: bool = False,
    ) -> int:
        """Open a pull request, unless the branch has one; return the pull request's number.

        `head` is a branch of the repository, or `owner:branch` for a branch of a fork. An existing
        pull request, open or closed, counts if the bot opened it, or if its head is one of the
        commits in `pushed`. `first` says that this is the first attempt; the pull request is then
        searched for only if GitHub refuses a new one.
        https://docs.github.com/rest/pulls/pulls#create-a-pull-request

        Raises:
            Refused: the branch has no new commits, or it has another person's open pull request.
        """
        if not first and (found := self._pull_of(repo, head, pushed)):
            return found
        request = {
            "title": without_markers(title),
            "head": head,
            "base": base,
            "body": without_markers(body),
            "draft": draft,
        }
        try:
            return self._api.send(repo, "POST", "pulls", request, NumberNode).number
        except Refused as refusal:
            if "already exists" in str(refusal):
                if found := self._pull_of(repo, head, pushed):
                    return found
                raise Refused(
                    f"{repo} already has an open pull request from {head}. Somebody else opened"
                    " it, and Mergewright did not push its head commit: close it.",
                    refusal.status,
                ) from refusal
            if "No commits between" in str(refusal):
                raise Refused(
                    f"A pull request of {head} into {base} in {repo} would be empty: "
                    "the branch has no commits of its own.",
                    refusal.status,
                ) from refusal
            raise

    def make_ready(self, repo: str, number: int) -> None:
        """Mark a draft as ready for review (`markPullRequestReadyForReview`).

        https://docs.github.com/en/graphql/reference/mutations
        """
        pull = self._api.get(repo, f"pulls/{number}", PullResponse)
        if pull.draft:
            self._api.mutate(repo, "mark_ready", {"pull": pull.node_id})

    def request_review(self, repo: str, number: int, reviewers: Collection[str]) -> None:
        """Request reviews from people, and from teams as `owner/team`.

        https://docs.github.com/rest/pulls/review-requests#request-reviewers-for-a-pull-request
        """
        people = [name for name in reviewers if "/" not in name]
        teams = [name.rpartition("/")[2] for name in reviewers if "/" in name]
        requested = {"reviewers": people, "team_reviewers": teams}
        self._api.do(repo, "POST", f"pulls/{number}/requested_reviewers", requested)

    def update_branch(self, repo: str, number: int, head: str) -> None:
        """Merge the base branch into a pull request's branch, if the branch is at `head`.

        https://docs.github.com/rest/pulls/pulls#update-a-pull-request-branch

        Raises:
            Conflicted: the branch has moved.
            Refused: the branches cannot be merged.
        """
        try:
            with IgnoreRefused("no new commits"):
                expected = {"expected_head_sha": head}
                self._api.do(repo, "PUT", f"pulls/{number}/update-branch", expected)
        except Refused as refusal:
            if "expected head sha" in str(refusal):
                raise Conflicted(str(refusal), refusal.status) from refusal
            raise

    def rerun(self, repo: str, runs: Iterable[int]) -> None:
        """Rerun these check runs, except jobs of GitHub Actions that were rerun before.

        GitHub Actions reruns all failed and cancelled jobs of a workflow run at once.
        https://docs.github.com/rest/checks/runs#rerequest-a-check-run
        https://docs.github.com/rest/actions/workflow-runs#re-run-failed-jobs-from-a-workflow-run
        """
        jobs: set[int] = set()
        for run in runs:
            app = self._api.get(repo, f"check-runs/{run}", CheckRunResponse).app
            if app is None or app.slug != GITHUB_ACTIONS:
                self._api.do(repo, "POST", f"check-runs/{run}/rerequest")
                continue
            job = self._api.get(repo, f"actions/jobs/{run}", JobResponse)
            if job.run_attempt == 1:
                jobs.add(job.run_id)
        for number in sorted(jobs):
            # A job's first attempt stays as it was: an earlier request has rerun it.
            with IgnoreRefused("already running"):
                self._api.do(repo, "POST", f"actions/runs/{number}/rerun-failed-jobs")

    def close_issue(self, repo: str, number: int) -> None:
        """Close an issue as completed. An issue that is already closed keeps its reason.

        https://docs.github.com/rest/issues/issues#update-an-issue
        """
        if self._api.get(repo, f"issues/{number}", IssueState).state == "open":
            closed = {"state": "closed", "state_reason": "completed"}
            self._api.do(repo, "PATCH", f"issues/{number}", closed)

    def delete_branch(self, repo: str, branch: str, sha: str, base: str = "") -> str:
        """Delete a merged branch that is still at `sha`. Returns why it is kept, or "".

        Open pull requests based on the branch get the base branch `base`, because a deletion
        through the API would close them. If a person deletes the branch, GitHub changes their base:
        https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/proposing-changes-to-your-work-with-pull-requests/about-branches
        If `base` is empty, a branch with such pull requests is kept.

        https://docs.github.com/rest/git/refs#delete-a-reference
        """
        while True:
            variables = {"ref": f"refs/heads/{branch}", "branch": branch}
            found = self._api.query(repo, "branch_use", BranchUse, variables)
            if found is None or found.ref is None:
                return ""
            if found.ref.target is None or found.ref.target.oid != sha:
                return f"{branch} has other commits than the merged ones"
            based = [pull.number for pull in found.pull_requests.nodes]
            if kept := self._retarget(repo, branch, based, base):
                return kept
            if not found.pull_requests.page_info.has_next_page:
                break
        with IgnoreRefused(404, "Reference does not exist"):
            self._api.do(repo, "DELETE", f"git/refs/heads/{quote(branch)}")
        return ""

    def _retarget(self, repo: str, branch: str, pulls: Iterable[int], base: str) -> str:
        """Change the base of pull requests from `branch` to `base`; return why it failed, or ""."""
        for number in pulls:
            if not base:
                return f"#{number} is based on {branch}"
            try:
                # https://docs.github.com/rest/pulls/pulls#update-a-pull-request
                self._api.do(repo, "PATCH", f"pulls/{number}", {"base": base})
            except Refused as refusal:
                return f"#{number} is based on {branch} and cannot be moved: {refusal}"
        return ""

    def _pull_of(self, repo: str, head: str, pushed: Container[str]) -> int | None:
        owner = self._api.aliases.name(repo).partition("/")[0]
        params = {"head": head if ":" in head else f"{owner}:{head}", "state": "all"}
        found = [
            pull
            for pull in self._api.pages(repo, "pulls", PullResponse, params)
            if pull.head.repo
            and (pull.head.repo == pull.base.repo or ":" in head)
            and (pull.head.sha in pushed or (pull.user and pull.user.login == self._api.me()))
        ]
        found.sort(key=lambda pull: (pull.state == "open", pull.number))
        return found[-1].number if found else None
