"""Repositories as GraphQL shows them, with their issues and pull requests."""

from collections.abc import Callable
from typing import Any

from bot.demo.github.graphql.commits import branch_of
from bot.demo.github.graphql.connections import Json, QueryError, connection
from bot.demo.github.graphql.conversations import state, thing
from bot.demo.github.graphql.objects import git_object
from bot.demo.github.hosting import Label
from bot.demo.github.http import Request
from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.repository import Repository
from bot.demo.github.shapes.base import time


def repository(known: Repository, asking: Request) -> Json:
    level = known.level(asking.login)
    return {
        **thing("Repository", known),
        "name": known.name,
        "nameWithOwner": known.full_name,
        "owner": known.owner,
        "url": known.url,
        "isArchived": known.archived,
        "isFork": known.parent is not None,
        "isPrivate": known.private,
        "mergeCommitAllowed": "merge" in known.merge_methods,
        "squashMergeAllowed": "squash" in known.merge_methods,
        "rebaseMergeAllowed": "rebase" in known.merge_methods,
        "viewerPermission": None if level == "none" else level.upper(),
        "defaultBranchRef": branch_of(known, known.default_branch),
        "ref": lambda info, **given: branch_of(
            known, given["qualifiedName"].removeprefix("refs/heads/")
        ),
        "object": lambda info, **given: git_object(known, **given),
        "issue": lambda info, number: _numbered(known, number, "an Issue"),
        "pullRequest": lambda info, number: _numbered(known, number, "a PullRequest"),
        "issueOrPullRequest": lambda info, number: _numbered(
            known, number, "an issue or pull request"
        ),
        "issues": lambda info, **given: connection(_chosen(known.issues, given), given),
        "pullRequests": lambda info, **given: connection(_chosen(known.pulls, given), given),
        "labels": lambda info, **given: connection(_found(known, given.get("query")), given),
    }


def _numbered(repo: Repository, number: int, wanted: str) -> Issue:
    found = repo.issues_and_pulls.get(number)
    kind = "a PullRequest" if isinstance(found, Pull) else "an Issue"
    if found is None or wanted not in (kind, "an issue or pull request"):
        raise QueryError("NOT_FOUND", f"Could not resolve to {wanted} with the number of {number}.")
    return found


def _found(known: Repository, query: str | None) -> list[Label]:
    """Return the labels whose names contain the query, ignoring case."""
    word = (query or "").lower()
    return [label for name, label in known.known_labels.items() if word in name]


def _chosen(items: list[Any], given: Json) -> list[Any]:
    """Return the issues or pull requests that match a field's arguments, in the requested order.

    GitHub compares the labels in these arguments case-sensitively, and so does this function.
    """
    given = {**given, **(given.get("filterBy") or {})}
    labels = set(given.get("labels") or ())
    found = [
        item
        for item in items
        if state(item) in (given.get("states") or [state(item)])
        and (not labels or not labels.isdisjoint(item.labels))
        and given.get("assignee") in (None, *(user.login for user in item.assignees))
        and given.get("headRefName") in (None, getattr(item, "head_branch", None))
        and given.get("baseRefName") in (None, getattr(item, "base_branch", None))
        and (time(item.updated_at) or "") >= given.get("since", "")
    ]
    order = given.get("orderBy") or {"field": "CREATED_AT", "direction": "ASC"}
    keys: dict[str, Callable[[Any], Any]] = {
        "CREATED_AT": lambda item: item.number,
        "UPDATED_AT": lambda item: item.updated_at,
        "COMMENTS": lambda item: len(item.comments),
    }
    return sorted(found, key=keys[order["field"]], reverse=order["direction"] == "DESC")
