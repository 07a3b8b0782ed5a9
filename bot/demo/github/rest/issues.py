"""Issues, labels, comments and reactions, for issues and pull requests alike."""

from datetime import datetime

from bot.demo.github.http import Answer, Problem, Request, Route, invalid, not_found
from bot.demo.github.issues import Comment, Issue
from bot.demo.github.reviews import ReviewComment
from bot.demo.github.shapes import base, issues

_LONGEST_BODY = 65536


def _list(request: Request) -> Answer:
    """Return the issues and pull requests that match the query, newest first.

    `state` is `open` by default. A match must have all `labels` of the query.
    """
    repo = request.repo
    state = request.query.get("state", "open")
    wanted = {name.lower() for name in request.query.get("labels", "").split(",") if name}
    assignee = request.query.get("assignee", "")
    since = _time(request.query.get("since"))
    found = [
        issue
        for issue in reversed(repo.issues_and_pulls.values())
        if state in ("all", issue.state)
        and wanted <= {name.lower() for name in issue.labels}
        and (not assignee or assignee in {user.login for user in issue.assignees})
        and (since is None or issue.updated_at >= since)
    ]
    return request.page(found, issues.issue)


def _get(request: Request) -> Answer:
    return Answer(body=issues.issue(request.issue_of(request.repo)))


def _patch(request: Request) -> Answer:
    repo = request.repo
    issue = request.issue_of(repo)
    if request.login != issue.user.login:
        repo = request.repo_for("triage")
    given = request.json
    issue.edit(by=request.login, title=given.get("title"), body=given.get("body"))
    if given.get("state") == "closed":
        issue.close(request.login, given.get("state_reason") or "completed")
    elif given.get("state") == "open":
        issue.reopen(request.login)
    elif "state" in given:
        raise invalid("Issue", "state")
    return Answer(body=issues.issue(issue))


def _timeline(request: Request) -> Answer:
    issue = request.issue_of(request.repo)
    return request.page(issue.timeline, lambda entry: issues.timeline(entry, issue))


def _blocked_by(request: Request) -> Answer:
    return request.page(request.issue_of(request.repo).blocked_by, issues.issue)


def _labels(request: Request) -> Answer:
    return _labels_of(request, request.issue_of(request.repo))


def _add_labels(request: Request) -> Answer:
    issue = request.issue_of(request.repo_for("triage"))
    names = request.json.get("labels")
    if not isinstance(names, list) or not names:
        raise invalid("Label", "name", "missing_field")
    for name in names:
        issue.label(name, request.login)
    return _labels_of(request, issue)


def _create_label(request: Request) -> Answer:
    repo, name = request.repo_for("write"), request.json.get("name")
    if not isinstance(name, str) or not name:
        raise invalid("Label", "name", "missing_field")
    if name.lower() in repo.known_labels:
        raise invalid("Label", "name", "already_exists")
    return Answer(status=201, body=base.label(repo.label(name, request.login), repo))


def _remove_label(request: Request) -> Answer:
    issue = request.issue_of(request.repo_for("triage"))
    try:
        issue.unlabel(request.params["name"], request.login)
    except KeyError:
        raise Problem(404, "Label does not exist") from None
    return _labels_of(request, issue)


def _labels_of(request: Request, issue: Issue) -> Answer:
    return request.page(issue.label_list, lambda label: base.label(label, issue.repo))


# -- comments


def _comments(request: Request) -> Answer:
    since = _time(request.query.get("since"))
    known = request.issue_of(request.repo).comments
    return request.page((c for c in known if not since or c.updated_at >= since), issues.comment)


def _comments_of_all(request: Request) -> Answer:
    since = _time(request.query.get("since"))
    every = (c for one in request.repo.issues_and_pulls.values() for c in one.comments)
    known = sorted(every, key=lambda c: c.updated_at)
    return request.page((c for c in known if not since or c.updated_at >= since), issues.comment)


def _comment(request: Request) -> Answer:
    return Answer(body=issues.comment(_find(request)))


def _create_comment(request: Request) -> Answer:
    issue = request.issue_of(request.repo)
    _known(request)
    comment = issue.comment(_body(request, "IssueComment"), request.login)
    shape = issues.comment(comment)
    return Answer(status=201, body=shape, headers={"Location": shape["url"]})


def _update_comment(request: Request) -> Answer:
    comment = _find(request)
    if comment.user.login != request.login:
        request.repo_for("write")
    comment.edit(_body(request, "IssueComment"), request.login)
    return Answer(body=issues.comment(comment))


def _delete_comment(request: Request) -> Answer:
    comment = _find(request)
    if comment.user.login != request.login:
        request.repo_for("write")
    comment.delete(request.login)
    return Answer(status=204)


def _find(request: Request) -> Comment:
    """Return the comment in the path: a review comment or, on other paths, an issue comment."""
    repo, wanted = request.repo, int(request.params["id"])
    kind = ReviewComment if "/pulls/comments/" in request.path else Comment
    for known in request.world.nodes.values():
        if type(known) is kind and known.id == wanted and known.issue.repo is repo:
            return known
    raise not_found()


def _body(request: Request, resource: str) -> str:
    text = request.text("body", resource)
    if len(text) > _LONGEST_BODY:
        message = f"body is too long (maximum is {_LONGEST_BODY} characters)"
        raise invalid(resource, "body", "custom", message)
    return text


# -- reactions


def _reactions(request: Request) -> Answer:
    return request.page(_find(request).reactions, lambda r: base.reaction(r, request.world))


def _react(request: Request) -> Answer:
    comment = _find(request)
    _known(request)
    return _reacted(request, comment)


def _issue_reactions(request: Request) -> Answer:
    known = request.issue_of(request.repo).reactions
    return request.page(known, lambda r: base.reaction(r, request.world))


def _react_to_issue(request: Request) -> Answer:
    issue = request.issue_of(request.repo)
    _known(request)
    return _reacted(request, issue)


def _reacted(request: Request, on: Comment | Issue) -> Answer:
    content = request.text("content", "Reaction")
    if content not in base.REACTIONS:
        raise invalid("Reaction", "content")
    before = len(on.reactions)
    reaction = on.react(content, request.login)
    status = 201 if len(on.reactions) > before else 200
    return Answer(status=status, body=base.reaction(reaction, request.world))


def _known(request: Request) -> None:
    """Require a known account. Every known account may comment and react."""
    if request.token is None:
        raise Problem(401, "Requires authentication")


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


_REPO = "/repos/{owner}/{repo}"
_ISSUE = f"{_REPO}/issues/{{number}}"
_COMMENT = f"{_REPO}/issues/comments/{{id}}"
_REVIEW_COMMENT = f"{_REPO}/pulls/comments/{{id}}"
ROUTES: list[Route] = [
    ("GET", f"{_REPO}/issues", _list),
    ("GET", _ISSUE, _get),
    ("POST", f"{_REPO}/labels", _create_label),
    ("PATCH", _ISSUE, _patch),
    ("GET", f"{_ISSUE}/timeline", _timeline),
    ("GET", f"{_ISSUE}/dependencies/blocked_by", _blocked_by),
    ("GET", f"{_ISSUE}/labels", _labels),
    ("POST", f"{_ISSUE}/labels", _add_labels),
    ("DELETE", f"{_ISSUE}/labels/{{name:path}}", _remove_label),
    ("GET", f"{_ISSUE}/comments", _comments),
    ("GET", f"{_REPO}/issues/comments", _comments_of_all),
    ("POST", f"{_ISSUE}/comments", _create_comment),
    ("GET", f"{_ISSUE}/reactions", _issue_reactions),
    ("POST", f"{_ISSUE}/reactions", _react_to_issue),
    ("GET", _COMMENT, _comment),
    ("PATCH", _COMMENT, _update_comment),
    ("DELETE", _COMMENT, _delete_comment),
    ("GET", f"{_COMMENT}/reactions", _reactions),
    ("POST", f"{_COMMENT}/reactions", _react),
    ("GET", _REVIEW_COMMENT, _comment),
    ("DELETE", _REVIEW_COMMENT, _delete_comment),
    ("GET", f"{_REVIEW_COMMENT}/reactions", _reactions),
    ("POST", f"{_REVIEW_COMMENT}/reactions", _react),
]
