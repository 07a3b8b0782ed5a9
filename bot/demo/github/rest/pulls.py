"""Pull requests, their reviews and review comments."""

from bot.demo.github.http import Answer, Problem, Request, Route, invalid, not_found
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.demo.github.shapes import base, pulls

#: The `event` in a request for a new review, each with the review's state.
_EVENTS = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


def _list(request: Request) -> Answer:
    """Return the pull requests that match the query, by default open ones, newest first.

    `head` is `owner:branch`.
    """
    query = request.query
    state, head, base_branch = query.get("state", "open"), query.get("head"), query.get("base")
    found = [
        pull
        for pull in reversed(request.repo.pulls)
        if state in ("all", pull.state)
        and head in (None, f"{pull.source.owner.login}:{pull.head_branch}")
        and base_branch in (None, pull.base_branch)
    ]
    return request.page(found, pulls.pull_simple)


def _get(request: Request) -> Answer:
    return Answer(body=pulls.pull(request.pull_of(request.repo)))


def _create(request: Request) -> Answer:
    repo = request.repo
    title = request.text("title", "PullRequest")
    source, branch = _source(request.text("head", "PullRequest"), repo)
    if not source.allows(request.login, "write"):
        request.repo_for("write")
        raise not_found()
    onto = request.text("base", "PullRequest")
    if onto not in repo.heads:
        raise invalid("PullRequest", "base")
    if branch not in source.heads:
        raise invalid("PullRequest", "head")
    for pull in repo.pulls:
        ends = (pull.state, pull.source, pull.head_branch, pull.base_branch)
        if ends == ("open", source, branch, onto):
            message = f"A pull request already exists for {source.owner.login}:{branch}."
            raise _custom(message)
    if source is repo and not repo.git.count(onto, branch):
        raise _custom(f"No commits between {onto} and {branch}")
    made = repo.open_pull(
        branch,
        onto,
        title=title,
        by=request.login,
        body=request.json.get("body") or "",
        draft=bool(request.json.get("draft")),
        source=source,
    )
    shape = pulls.pull(made)
    return Answer(status=201, body=shape, headers={"Location": shape["url"]})


def _source(head: str, repo: Repository) -> tuple[Repository, str]:
    """Return the repository and branch of a `head`: `branch`, or `owner:branch` of a fork."""
    login, _, branch = head.rpartition(":")
    if login in ("", repo.owner.login):
        return repo, branch
    for known in repo.world.repositories.values():
        if known.parent is repo and known.owner.login == login:
            return known, branch
    raise invalid("PullRequest", "head")


def _patch(request: Request) -> Answer:
    repo = request.repo
    pull = request.pull_of(repo)
    if request.login != pull.user.login:
        request.repo_for("write")
    given = request.json
    if given.get("state", "open") not in ("open", "closed"):
        raise invalid("PullRequest", "state")
    if given.get("state") == "open" and pull.merged:
        raise _custom("Pull request is already merged.")
    if given.get("base", pull.base_branch) not in repo.heads:
        raise invalid("PullRequest", "base")
    pull.edit(by=request.login, title=given.get("title"), body=given.get("body"))
    if given.get("base", pull.base_branch) != pull.base_branch:
        pull.change_base(given["base"], request.login)
    if given.get("state") == "closed":
        pull.close(request.login)
    if given.get("state") == "open":
        pull.reopen(request.login)
    return Answer(body=pulls.pull(pull))


# -- reviews


def _reviews(request: Request) -> Answer:
    return request.page(request.pull_of(request.repo).reviews, pulls.review)


def _create_review(request: Request) -> Answer:
    pull = request.pull_of(request.repo)
    if request.token is None:
        raise Problem(401, "Requires authentication")
    given = request.json
    state = _EVENTS.get(given.get("event", ""))
    if state is None:
        raise _unprocessable("event must be APPROVE, REQUEST_CHANGES or COMMENT")
    if request.login == pull.user.login and state != "COMMENTED":
        deed = "approve" if state == "APPROVED" else "request changes on"
        raise _unprocessable(f"Can not {deed} your own pull request")
    commit = given.get("commit_id") or pull.head
    notes = [(n["path"], n["line"], n["body"]) for n in given.get("comments") or []]
    for path, line, _ in notes:
        _in_diff(pull, commit, path, line)
    review = pull.review(request.login, state, given.get("body") or "", notes, commit)
    return Answer(body=pulls.review(review))


def _review_comments(request: Request) -> Answer:
    pull = request.pull_of(request.repo)
    known = [comment for thread in pull.threads for comment in thread.comments]
    return request.page(sorted(known, key=lambda comment: comment.id), pulls.review_comment)


def _create_review_comment(request: Request) -> Answer:
    pull = request.pull_of(request.repo)
    if request.token is None:
        raise Problem(401, "Requires authentication")
    given = request.json
    text = request.text("body", "PullRequestReviewComment")
    if "in_reply_to" in given:
        return _answered(pull, given["in_reply_to"], request.login, text)
    commit, path = given.get("commit_id") or pull.head, given.get("path", "")
    _in_diff(pull, commit, path, given.get("line"))
    review = pull.new_review(request.login, "COMMENTED", "", commit)
    comment = pull.new_thread(review, path, given["line"], text)
    return Answer(status=201, body=pulls.review_comment(comment))


def _reply(request: Request) -> Answer:
    pull = request.pull_of(request.repo)
    if request.token is None:
        raise Problem(401, "Requires authentication")
    text = request.text("body", "PullRequestReviewComment")
    return _answered(pull, int(request.params["id"]), request.login, text)


def _answered(pull: Pull, comment: int, login: str, text: str) -> Answer:
    for thread in pull.threads:
        if comment in (known.id for known in thread.comments):
            return Answer(status=201, body=pulls.review_comment(thread.reply(login, text)))
    raise not_found()


def _in_diff(pull: Pull, commit: str, path: str, line: object) -> None:
    if not isinstance(line, int) or not pull.repo.git.hunk(pull.base_tip, commit, path, line):
        raise invalid(
            "PullRequestReviewComment",
            "pull_request_review_thread.line",
            "custom",
            "pull_request_review_thread.line must be part of the diff",
        )


# -- asking for reviews


def _requested(request: Request) -> Answer:
    pull = request.pull_of(request.repo)
    users = [base.user(user, request.world) for user in pull.requested]
    return Answer(body={"users": users, "teams": []})


def _request_reviewers(request: Request) -> Answer:
    pull = request.pull_of(request.repo_for("write"))
    for login in request.json.get("reviewers", []):
        if login == pull.user.login or not pull.repo.allows(login, "read"):
            raise Problem(
                422,
                "Reviews may only be requested from collaborators. One or more of the "
                "users or teams you specified is not a collaborator of the "
                f"{pull.repo.full_name} repository.",
            )
        pull.request_review(login, request.login)
    return Answer(status=201, body=pulls.pull_simple(pull))


def _unrequest_reviewers(request: Request) -> Answer:
    pull = request.pull_of(request.repo_for("write"))
    for login in request.json.get("reviewers", []):
        pull.unrequest_review(login, request.login)
    return Answer(body=pulls.pull_simple(pull))


def _custom(message: str) -> Problem:
    error = {"resource": "PullRequest", "code": "custom", "message": message}
    return Problem(422, "Validation Failed", [error])


def _unprocessable(message: str) -> Problem:
    return Problem(422, "Unprocessable Entity", [message])


_PULLS = "/repos/{owner}/{repo}/pulls"
_PULL = f"{_PULLS}/{{number}}"
ROUTES: list[Route] = [
    ("GET", _PULLS, _list),
    ("POST", _PULLS, _create),
    ("GET", _PULL, _get),
    ("PATCH", _PULL, _patch),
    ("GET", f"{_PULL}/reviews", _reviews),
    ("POST", f"{_PULL}/reviews", _create_review),
    ("GET", f"{_PULL}/comments", _review_comments),
    ("POST", f"{_PULL}/comments", _create_review_comment),
    ("POST", f"{_PULL}/comments/{{id}}/replies", _reply),
    ("GET", f"{_PULL}/requested_reviewers", _requested),
    ("POST", f"{_PULL}/requested_reviewers", _request_reviewers),
    ("DELETE", f"{_PULL}/requested_reviewers", _unrequest_reviewers),
]
