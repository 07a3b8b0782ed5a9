"""Accounts, issues, comments and timelines in the form of GraphQL.

A view is a dictionary by GitHub's field names. A value may be an object such as an `Issue`, which
gets its own view when it is selected, or a function, which is called with the field's arguments.
"""

from collections.abc import Callable
from typing import Any

from bot.demo.github.graphql.connections import Json, connection
from bot.demo.github.hosting import Label
from bot.demo.github.http import Request
from bot.demo.github.issues import Comment, Issue, Reaction, TimelineEvent
from bot.demo.github.pulls import Pull
from bot.demo.github.shapes.base import time
from bot.demo.github.world import Thing, User

#: The kinds of reactions: GraphQL's words, each with REST's.
REACTIONS = {
    "THUMBS_UP": "+1",
    "THUMBS_DOWN": "-1",
    "LAUGH": "laugh",
    "CONFUSED": "confused",
    "HEART": "heart",
    "HOORAY": "hooray",
    "ROCKET": "rocket",
    "EYES": "eyes",
}
#: Each timeline event in GraphQL: its type, and the name it is filtered by.
_EVENTS = {
    "assigned": ("AssignedEvent", "ASSIGNED_EVENT"),
    "unassigned": ("UnassignedEvent", "UNASSIGNED_EVENT"),
    "labeled": ("LabeledEvent", "LABELED_EVENT"),
    "cross-referenced": ("CrossReferencedEvent", "CROSS_REFERENCED_EVENT"),
    "unlabeled": ("UnlabeledEvent", "UNLABELED_EVENT"),
    "renamed": ("RenamedTitleEvent", "RENAMED_TITLE_EVENT"),
    "closed": ("ClosedEvent", "CLOSED_EVENT"),
    "reopened": ("ReopenedEvent", "REOPENED_EVENT"),
    "merged": ("MergedEvent", "MERGED_EVENT"),
    "base_ref_changed": ("BaseRefChangedEvent", "BASE_REF_CHANGED_EVENT"),
    "added_to_merge_queue": ("AddedToMergeQueueEvent", "ADDED_TO_MERGE_QUEUE_EVENT"),
    "removed_from_merge_queue": ("RemovedFromMergeQueueEvent", "REMOVED_FROM_MERGE_QUEUE_EVENT"),
}


def pages(items: Callable[[], Any]) -> Callable[..., Json]:
    """Return a connection field: a function that returns a page of the list from `items`."""
    return lambda info, **given: connection(items(), given)


def lazy(value: Callable[[], Any]) -> Callable[..., Any]:
    """Return a field that is computed only when it is selected."""
    return lambda info, **given: value()


def thing(kind: str, known: Thing) -> Json:
    """Return the fields that all kinds of objects have."""
    return {
        "__typename": kind,
        "id": known.node_id,
        "databaseId": known.id,
        "fullDatabaseId": str(known.id),
        "createdAt": time(known.created_at),
        "updatedAt": time(known.updated_at),
    }


def actor(known: User, asking: Request) -> Json:
    """Return the GraphQL fields of the account `known`. An App's login omits the suffix `[bot]`."""
    return {
        **thing(known.type, known),
        "login": known.login.removesuffix("[bot]"),
        "name": None,
        "url": f"{asking.world.url}{known.login}",
    }


def viewer(known: User, asking: Request) -> Json:
    """Return the requesting account's view. Here, even a bot is a `User` with its full login."""
    return {**actor(known, asking), "__typename": "User", "login": known.login}


def written(kind: str, known: Any) -> Json:
    """Return the fields that issues, pull requests, comments and reviews share."""
    return {
        **thing(kind, known),
        "author": known.user,
        "body": known.body,
        "editor": known.editor,
        "lastEditedAt": time(known.last_edited_at),
    }


def state(known: Issue) -> str:
    return "MERGED" if isinstance(known, Pull) and known.merged else known.state.upper()


def conversation(kind: str, known: Issue) -> Json:
    """Return the fields that an issue and a pull request share."""
    return {
        **written(kind, known),
        "number": known.number,
        "title": known.title,
        "url": known.url,
        "state": state(known),
        "closed": known.state == "closed",
        "closedAt": time(known.closed_at),
        "repository": known.repo,
        "labels": pages(lambda: known.label_list),
        "userContentEdits": pages(
            lambda: [{"editedAt": time(one.at), "editor": one.editor} for one in known.edits]
        ),
        "comments": pages(lambda: known.comments),
        "timelineItems": lambda info, **given: connection(
            _timeline(known, given.get("itemTypes")), given
        ),
    }


def issue(known: Issue, asking: Request) -> Json:
    return {
        **conversation("Issue", known),
        "assignees": pages(lambda: known.assignees),
        "milestone": {"__typename": "Milestone", "title": known.milestone}
        if known.milestone
        else None,
        "stateReason": lambda info, **given: _reason(known.state_reason, given),
    }


def label(known: Label, asking: Request) -> Json:
    return {**thing("Label", known), "name": known.name, "color": known.color}


def comment(known: Comment, asking: Request) -> Json:
    return {
        **written("IssueComment", known),
        "url": f"{known.issue.url}#issuecomment-{known.id}",
        "reactions": pages(lambda: known.reactions),
    }


def reaction(known: Reaction, asking: Request) -> Json:
    words = {content: word for word, content in REACTIONS.items()}
    return {**thing("Reaction", known), "content": words[known.content], "user": known.user}


def event(known: TimelineEvent, asking: Request) -> Json:
    kind, _ = _EVENTS[known.event]
    previous, current = known.rename or (None, None)
    return {
        **thing(kind, known),
        "actor": known.actor,
        "label": known.label,
        "assignee": known.assignee,
        "source": known.source,
        "previousTitle": previous,
        "currentTitle": current,
        "stateReason": lambda info, **given: _reason(known.state_reason, given),
        "reason": known.state_reason,
    }


def _timeline(on: Issue, wanted: list[str] | None) -> list[Any]:
    """Return the timeline entries of the types in `wanted`, or of all types that GraphQL shows."""
    found = []
    for entry in on.timeline:
        if isinstance(entry, TimelineEvent):
            _, word = _EVENTS.get(entry.event, ("", ""))
        else:
            word = "ISSUE_COMMENT" if isinstance(entry, Comment) else "PULL_REQUEST_REVIEW"
        if word and word in (wanted or [word]):
            found.append(entry)
    return found


def _reason(reason: str | None, given: Json) -> str | None:
    """Return why an issue was closed. DUPLICATE is returned only if the query allows it."""
    if reason == "duplicate" and not given["enableDuplicate"]:
        return "NOT_PLANNED"
    return reason.upper() if reason else None
