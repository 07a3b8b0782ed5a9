"""Merging a pull request, and bringing its base into its head."""

from bot.demo.github.http import Answer, Problem, Request, Route, invalid
from bot.demo.github.merging import Refused

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
    told = {"message": "Updating pull request branch.", "url": pull.url}
    return Answer(status=202, body=told)


_PULL = "/repos/{owner}/{repo}/pulls/{number}"
ROUTES: list[Route] = [
    ("GET", f"{_PULL}/merge", _is_merged),
    ("PUT", f"{_PULL}/merge", _merge),
    ("PUT", f"{_PULL}/update-branch", _update_branch),
]
