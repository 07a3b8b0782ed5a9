"""REST routes that merge a pull request or update its branch."""

from uuid import uuid4

from bot.demo.github.http import Answer, Problem, Request, Route, invalid, not_found
from bot.demo.github.merging import AcceptedMerge, Refused

_METHODS = ("merge", "squash", "rebase")


def _is_merged(request: Request) -> Answer:
    merged = request.pull_of(request.repo).merged
    if not merged:
        raise Problem(404, "Not Found")
    return Answer(status=204)


def _merge(request: Request) -> Answer:
    pull = request.pull_of(request.repo_for("write"))
    given = request.json
    method = given.get("merge_method", "merge")
    if method not in _METHODS:
        raise invalid("PullRequest", "merge_method")
    if given.get("sha") not in (None, pull.head):
        raise Problem(409, "Head branch was modified. Review and try the merge again.")
    try:
        sha = pull.merge(
            request.login, method, given.get("commit_title"), given.get("commit_message")
        )
    except Refused as refused:
        raise Problem(405, str(refused)) from refused
    merged = {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}
    return Answer(body=merged)


def _update_branch(request: Request) -> Answer:
    pull = request.pull_of(request.repo_for("write"))
    if request.json.get("expected_head_sha") not in (None, pull.head):
        raise Problem(422, "expected head sha didn’t match current head ref.")
    try:
        pull.update_branch(request.login)
    except Refused as refused:
        raise Problem(422, str(refused)) from refused
    body = {"message": "Updating pull request branch.", "url": pull.url}
    return Answer(status=202, body=body)


def _merge_async(request: Request) -> Answer:
    pull = request.pull_of(request.repo_for("write"))
    given, going = request.json, pull.accepted
    if not pull.repo.async_merges:
        raise not_found()
    if given.get("merge_method", "merge") not in _METHODS:
        raise invalid("PullRequest", "merge_method")
    if pull.merged:
        return _result("merged", "Pull request is already merged.", sha=pull.merge_commit)
    if pull.state != "open" or pull.draft:
        return _result("failed", "Pull request is closed or a draft.", 400)
    if going and not (going.merged or going.failed):
        pull.carry_out(going)  # In the background: this response shows the state before it.
        return _pending(going, 409)
    asked = AcceptedMerge(
        uuid=str(uuid4()),
        by=request.login,
        sha=given.get("sha", pull.head),
        method=given.get("merge_method", "merge"),
        title=given.get("commit_title"),
        message=given.get("commit_message"),
    )
    pull.accept_merge(asked)
    return _pending(asked, 202)


def _merge_result(request: Request) -> Answer:
    pull = request.pull_of(request.repo_for("write"))
    asked = pull.accepted
    if asked is None or asked.uuid != request.params["uuid"]:
        raise not_found()
    if not (asked.merged or asked.failed):
        pull.carry_out(asked)
    if asked.failed:
        return _result("failed", asked.failed)
    return _result("merged", "Pull request was merged.", sha=asked.merged)


def _pending(asked: AcceptedMerge, status: int) -> Answer:
    return _result(
        "pending",
        "Merge request enqueued.",
        status,
        uuid=asked.uuid,
        merge_method=asked.method,
        merge_action="default",
        expected_head_sha=asked.sha,
    )


def _result(word: str, message: str, status: int = 200, **details: str | None) -> Answer:
    return Answer(status=status, body={"status": word, "details": {"message": message, **details}})


_PULL = "/repos/{owner}/{repo}/pulls/{number}"
ROUTES: list[Route] = [
    ("GET", f"{_PULL}/merge", _is_merged),
    ("PUT", f"{_PULL}/merge", _merge),
    ("PUT", f"{_PULL}/merge-async", _merge_async),
    ("GET", f"{_PULL}/merge-async/{{uuid}}", _merge_result),
    ("PUT", f"{_PULL}/update-branch", _update_branch),
]
