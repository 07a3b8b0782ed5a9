"""Branches, refs and commits."""

from bot.demo.github.http import Answer, Problem, Request, Route, not_found
from bot.demo.github.shapes import commits


def _branch(request: Request) -> Answer:
    repo, name = request.repo, request.params["branch"]
    if name not in repo.heads:
        raise Problem(404, "Branch not found")
    return Answer(body=commits.branch(name, repo.heads[name], repo))


def _commits(request: Request) -> Answer:
    repo = request.repo
    tip = repo.git.resolve(request.query.get("sha", repo.default_branch))
    if tip is None:
        raise not_found()
    return request.page(repo.git.log(tip), lambda commit: commits.commit(commit, repo))


def _commit(request: Request) -> Answer:
    repo, ref = request.repo, request.params["ref"]
    sha = repo.git.resolve(ref)
    if sha is None:
        raise Problem(422, f"No commit found for SHA: {ref}")
    return Answer(body=commits.full_commit(repo.git.commit(sha), repo))


def _ref(request: Request) -> Answer:
    repo, name = request.repo, request.params["ref"]
    sha = repo.heads.get(name.removeprefix("heads/"))
    if sha is None or not name.startswith("heads/"):
        raise not_found()
    return Answer(body=commits.ref(name, sha, repo))


def _delete_ref(request: Request) -> Answer:
    repo, name = request.repo_for("write"), request.params["ref"]
    branch = name.removeprefix("heads/")
    if branch not in repo.heads:
        raise Problem(422, "Reference does not exist")
    if branch in repo.protections:
        raise Problem(422, "Cannot delete a protected branch")
    repo.delete_branch(branch, request.login)
    return Answer(status=204)


_REPO = "/repos/{owner}/{repo}"
ROUTES: list[Route] = [
    ("GET", f"{_REPO}/branches/{{branch:path}}", _branch),
    ("GET", f"{_REPO}/git/ref/{{ref:path}}", _ref),
    ("DELETE", f"{_REPO}/git/refs/{{ref:path}}", _delete_ref),
    ("GET", f"{_REPO}/commits", _commits),
    ("GET", f"{_REPO}/commits/{{ref:path}}", _commit),
]
