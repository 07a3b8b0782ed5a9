"""The permissions an App needs for each route and GraphQL field, as GitHub documents them."""

import re
from collections.abc import Mapping
from typing import Final

from bot.demo.github.http import Problem, Request
from bot.demo.github.world import Token

REFUSED: Final = "Resource not accessible by integration"
_CHANGES = frozenset({"write", "admin"})
_READS = _CHANGES | {"read"}
_REPOSITORY = re.compile(r"/repos/[^/]+/[^/]+")
_TALK = "issues|pull_requests"
#: The routes of a repository. The first match counts, and any of its permissions is enough.
_ROUTES: Final = tuple(
    (re.compile(route), name)
    for route, name in (
        (r"PUT /pulls/\d+/merge.*", "contents"),
        (r"\w+ /pulls.*", "pull_requests"),
        (r"\w+ /issues/\d+/dependencies.*", "issues"),
        (r"\w+ /issues.*", _TALK),
        (r"\w+ /(commits/.+/)?check-.*", "checks"),
        (r"\w+ /(statuses/.*|commits/.+/status.*)", "statuses"),
        (r"\w+ /actions.*", "actions"),
        (r"\w+ /(branches|git|commits).*", "contents"),
        (r"\w+ /labels.*", "issues"),
        (r"\w+ /hooks.*", "repository_hooks"),
        (r"\w+ .*", "metadata"),
    )
)
#: GraphQL fields, each with all permissions it needs.
_FIELDS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("Repository", "issue"): ("issues",),
    ("Repository", "issues"): ("issues",),
    ("Repository", "issueOrPullRequest"): (_TALK,),
    ("Repository", "pullRequest"): ("pull_requests",),
    ("Repository", "pullRequests"): ("pull_requests",),
    ("Repository", "object"): ("contents",),
    ("Commit", "statusCheckRollup"): ("checks", "statuses"),
    ("PullRequest", "statusCheckRollup"): ("checks", "statuses"),
    ("Mutation", "addComment"): (_TALK,),
    ("Mutation", "addReaction"): (_TALK,),
    ("Mutation", "addPullRequestReview"): ("pull_requests",),
    ("Mutation", "addPullRequestReviewThreadReply"): ("pull_requests",),
    ("Mutation", "convertPullRequestToDraft"): ("pull_requests",),
    ("Mutation", "deletePullRequestReview"): ("pull_requests",),
    ("Mutation", "dequeuePullRequest"): ("merge_queues",),
    ("Mutation", "enqueuePullRequest"): ("merge_queues",),
    ("Mutation", "markPullRequestReadyForReview"): ("pull_requests",),
    ("Mutation", "mergePullRequest"): ("contents",),
    ("Mutation", "resolveReviewThread"): ("pull_requests",),
    ("Mutation", "submitPullRequestReview"): ("pull_requests",),
    ("Mutation", "unresolveReviewThread"): ("pull_requests",),
}


def may(token: Token | None, names: str, *, change: bool) -> bool:
    """Whether a token has one of the permissions in `names`, which are separated by `|`.

    With `change`, the permission must allow writing, else reading. True for other tokens than an
    App's, and for None: only Apps need these permissions.
    """
    levels = _CHANGES if change else _READS
    if token is None or token.app is None:
        return True
    return any(token.permissions.get(name) in levels for name in names.split("|"))


def demand_route(request: Request, path: str) -> None:
    """Raise `Problem` if an App requests a route for which it lacks the permission."""
    below = _REPOSITORY.match(path)
    if request.token is None or request.token.app is None or below is None:
        return
    asked = f"{request.method} {path[below.end() :]}"
    names = next(names for route, names in _ROUTES if route.fullmatch(asked))
    if not may(request.token, names, change=request.method != "GET"):
        raise Problem(403, REFUSED)


def may_have(token: Token, of: str, field: str) -> bool:
    """Whether an App's token has all permissions that a field of the GraphQL type `of` requires."""
    change = of == "Mutation"
    return all(may(token, names, change=change) for names in _FIELDS.get((of, field), ()))
