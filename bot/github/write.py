"""All the bot writes to GitHub. Every writer may be repeated: what is done already is found."""

from collections.abc import Callable, Container, Iterable, Sequence
from urllib.parse import quote

from msgspec import Raw, Struct

from bot.github.calls import ApiClient
from bot.github.comment_markers import MarkedComments, with_marker, without_markers
from bot.github.errors import Conflicted, Refused
from bot.github.shapes import CheckApp, Login

ACTIONS = "github-actions"


class RepositoryId(Struct, frozen=True):
    """A repository's number."""

    id: int


class PullEnd(Struct, frozen=True):
    """One end of a pull request: a commit of a repository, which may be gone."""

    sha: str
    repo: RepositoryId | None


class PullResponse(Struct, frozen=True):
    """A pull request as REST tells it."""

    number: int
    node_id: str
    state: str
    head: PullEnd
    base: PullEnd
    user: Login | None = None
    draft: bool = False


class CheckRunAppResponse(Struct, frozen=True):
    """GET check-runs/ID."""

    app: CheckApp | None


class JobAttemptResponse(Struct, frozen=True):
    """GET actions/jobs/ID: a job of GitHub Actions has the number of its check run."""

    run_id: int
    run_attempt: int = 1


class IssueStateResponse(Struct, frozen=True):
    """Whether an issue is open."""

    state: str


class RefTarget(Struct, frozen=True):
    """What a ref points at."""

    sha: str


class RefResponse(Struct, frozen=True):
    """A branch."""

    object: RefTarget


class CreatedComment(Struct, frozen=True):
    """A comment just made."""

    id: int


class CreatedPull(Struct, frozen=True):
    """A pull request just opened."""

    number: int


class GitHubWriter:
    """Writing to GitHub. May be used from any thread.

    Every method raises `TryLater` (then it may have happened, and the next call finds it) or
    `Refused`.
    """

    def __init__(self, calls: ApiClient, me: Callable[[], str]) -> None:
        self._calls = calls
        self._me = me
        self._signed = MarkedComments(calls, me)

    def comment(self, repo: str, number: int, body: str, key: str) -> int:
        """Comment on an issue or pull request, once for a key; the comment's number."""
        path = f"issues/{number}/comments"
        for mine in self._signed.with_key(repo, path, key):
            return mine.id
        made = self._calls.send(
            repo, "POST", path, {"body": with_marker(body, key)}, CreatedComment
        )
        return made.id

    def label(self, repo: str, number: int, name: str, *, on: bool) -> None:
        """Put a label on an issue, or take it off; GitHub makes one that there is not yet."""
        path = f"issues/{number}/labels"
        if on:
            self._calls.do(repo, "POST", path, {"labels": [name]})
            return
        try:
            self._calls.do(repo, "DELETE", f"{path}/{quote(name, safe='')}")
        except Refused as refusal:
            if refusal.status != 404:
                raise

    def react(self, repo: str, comment: int, content: str) -> None:
        """Put a reaction on a comment; GitHub itself keeps it from being there twice."""
        path = f"issues/comments/{comment}/reactions"
        self._calls.do(repo, "POST", path, {"content": content})

    def open_pull(
        self,
        repo: str,
        head: str,
        base: str,
        title: str,
        body: str,
        draft: bool,
        pushed: Container[str],
    ) -> int:
        """Open a pull request; one of ours that this branch has already is returned, open first.

        `head` is a branch of the repository, or `owner:branch` for that of a fork.

        Somebody else's is taken for it at one of the commits in `pushed` alone.
        """
        if found := self._pull_of(repo, head, pushed):
            return found
        request = {
            "title": without_markers(title),
            "head": head,
            "base": base,
            "body": without_markers(body),
            "draft": draft,
        }
        try:
            return self._calls.send(repo, "POST", "pulls", request, CreatedPull).number
        except Refused as refusal:
            if "already exists" in str(refusal):
                if found := self._pull_of(repo, head, pushed):
                    return found
                raise Refused(
                    f"A pull request of {head} is open in {repo} already, by somebody else and at"
                    " a commit that Mergewright did not push: close it.",
                    refusal.status,
                ) from refusal
            if "No commits between" in str(refusal):
                raise Refused(
                    f"A pull request of {head} into {base} in {repo} would be empty: "
                    "the branch has no commits of its own.",
                    refusal.status,
                ) from refusal
            raise

    def label_pull(self, repo: str, number: int, names: Sequence[str]) -> None:
        """Put labels on a pull request; GitHub makes those that there are not yet."""
        if names:
            self._calls.do(repo, "POST", f"issues/{number}/labels", {"labels": list(names)})

    def make_ready(self, repo: str, number: int) -> None:
        """Make a draft ready for review; what is none is left as it is."""
        pull = self._calls.get(repo, f"pulls/{number}", PullResponse)
        if pull.draft:
            self._calls.graphql(repo, "ready", Raw, {"pull": pull.node_id})

    def request_review(self, repo: str, number: int, reviewers: Iterable[str]) -> None:
        """Ask people, and teams as `owner/team`, for a review; who is asked already stays so."""
        people = [name for name in reviewers if "/" not in name]
        teams = [name.rpartition("/")[2] for name in reviewers if "/" in name]
        asked = {"reviewers": people, "team_reviewers": teams}
        self._calls.do(repo, "POST", f"pulls/{number}/requested_reviewers", asked)

    def update_branch(self, repo: str, number: int, head: str) -> None:
        """Have GitHub merge the base into the branch of a pull request that is at `head`.

        Raises `Conflicted` where the branch has moved, `Refused` where it cannot be merged.
        """
        try:
            expected = {"expected_head_sha": head}
            self._calls.do(repo, "PUT", f"pulls/{number}/update-branch", expected)
        except Refused as refusal:
            if "expected head sha" in str(refusal):
                raise Conflicted(str(refusal), refusal.status) from refusal
            if "no new commits" not in str(refusal):
                raise

    def rerun(self, repo: str, runs: Iterable[int]) -> None:
        """Have failed and cancelled check runs run once more, unless they were run again before.

        Of GitHub Actions all such jobs of a workflow's run go together.
        """
        jobs: set[int] = set()
        for run in runs:
            app = self._calls.get(repo, f"check-runs/{run}", CheckRunAppResponse).app
            if app is None or app.slug != ACTIONS:
                self._calls.do(repo, "POST", f"check-runs/{run}/rerequest")
                continue
            job = self._calls.get(repo, f"actions/jobs/{run}", JobAttemptResponse)
            if job.run_attempt == 1:
                jobs.add(job.run_id)
        for number in sorted(jobs):
            try:
                self._calls.do(repo, "POST", f"actions/runs/{number}/rerun-failed-jobs")
            except Refused as refusal:
                # A job of the first run says so for ever: it was run again by an earlier try.
                if "already running" not in str(refusal):
                    raise

    def close_issue(self, repo: str, number: int) -> None:
        """Close an issue as completed. One that is closed keeps the reason it was closed for."""
        if self._calls.get(repo, f"issues/{number}", IssueStateResponse).state == "open":
            closed = {"state": "closed", "state_reason": "completed"}
            self._calls.do(repo, "PATCH", f"issues/{number}", closed)

    def delete_branch(self, repo: str, branch: str, sha: str) -> None:
        """Delete a branch if it is still at `sha`; one that moved on or is gone is left alone."""
        name = quote(branch)
        try:
            if self._calls.get(repo, f"git/ref/heads/{name}", RefResponse).object.sha == sha:
                self._calls.do(repo, "DELETE", f"git/refs/heads/{name}")
        except Refused as refusal:
            if refusal.status != 404 and "Reference does not exist" not in str(refusal):
                raise

    def _pull_of(self, repo: str, head: str, pushed: Container[str]) -> int | None:
        owner = repo.partition("/")[0]
        params = {"head": head if ":" in head else f"{owner}:{head}", "state": "all"}
        found = [
            pull
            for pull in self._calls.pages(repo, "pulls", PullResponse, params)
            if pull.head.repo
            and (pull.head.repo == pull.base.repo or ":" in head)
            and (pull.head.sha in pushed or (pull.user and pull.user.login == self._me()))
        ]
        found.sort(key=lambda pull: (pull.state == "open", pull.number))
        return found[-1].number if found else None
