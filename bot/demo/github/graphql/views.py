"""The views of all types of objects, and the resolver that GraphQL uses to read them."""

from collections.abc import Callable
from typing import Any

from graphql import GraphQLResolveInfo

from bot.demo.github import checks, hosting, issues, reviews
from bot.demo.github.grants import REFUSED, may_have
from bot.demo.github.graphql import commits, conversations, pulls, repositories
from bot.demo.github.graphql.connections import Json, QueryError
from bot.demo.github.http import Request
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.demo.github.world import User


def _event(known: issues.TimelineEvent, asking: Request) -> Json:
    repo, sha = known.issue.repo, known.commit_id
    tried = commits.Commit(repo, sha) if isinstance(repo, Repository) and sha else None
    return {**conversations.event(known, asking), "beforeCommit": tried}


VIEWS: dict[type, Callable[[Any, Request], Json]] = {
    User: conversations.actor,
    Repository: repositories.repository,
    commits.Branch: commits.branch,
    commits.Commit: commits.commit,
    issues.Issue: conversations.issue,
    hosting.Label: conversations.label,
    issues.Comment: conversations.comment,
    issues.Reaction: conversations.reaction,
    issues.TimelineEvent: _event,
    Pull: pulls.pull,
    reviews.Review: pulls.review,
    reviews.PendingReview: pulls.review,
    reviews.Thread: pulls.thread,
    reviews.ReviewComment: pulls.review_comment,
    checks.CheckRun: commits.check_run,
    checks.CheckSuite: commits.check_suite,
    checks.CommitStatus: commits.status_context,
}


def resolve(source: Json, info: GraphQLResolveInfo, **given: Any) -> Any:
    """Return a field's value in a view. Raises `QueryError` if an App may not read it."""
    token = info.context.token
    if token and token.app and not may_have(token, info.parent_type.name, info.field_name):
        raise QueryError("FORBIDDEN", REFUSED)
    value = source.get(info.field_name)
    if callable(value):
        value = value(info, **given)
    return show(value, info.context)


def show(value: Any, asking: Request) -> Any:
    """Return the view of an object, or of each object in a list; other values are not changed."""
    if isinstance(value, list):
        return [show(item, asking) for item in value]
    view = VIEWS.get(type(value))
    return view(value, asking) if view else value
