"""Issues, comments and timelines."""

from typing import Any

from bot.demo.github.issues import Comment, Issue, TimelineEvent
from bot.demo.github.reviews import Review, ReviewComment
from bot.demo.github.shapes import base, pulls
from bot.demo.github.shapes.base import Json, time


def issue(known: Issue) -> Json:
    """Return an issue, or a pull request in the form of an issue."""
    repo, world = known.repo, known.world
    here = f"{base.api_of(repo)}/issues/{known.number}"
    body: Json = {
        "id": known.id,
        "node_id": known.node_id,
        "url": here,
        "repository_url": base.api_of(repo),
        "labels_url": f"{here}/labels{{/name}}",
        "comments_url": f"{here}/comments",
        "events_url": f"{here}/events",
        "html_url": known.url,
        "timeline_url": f"{here}/timeline",
        "number": known.number,
        "state": known.state,
        "state_reason": known.state_reason,
        "title": known.title,
        "body": known.body or None,
        "user": base.user(known.user, world),
        "labels": [base.label(label, repo) for label in known.label_list],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "locked": False,
        "active_lock_reason": None,
        "comments": len(known.comments),
        "closed_at": time(known.closed_at),
        "closed_by": base.optional_user(known.closed_by, world),
        "created_at": time(known.created_at),
        "updated_at": time(known.updated_at),
        "author_association": base.association(known.user, repo),
        "reactions": base.reactions(known.reactions, here),
        "performed_via_github_app": None,
        "pinned_comment": None,
    }
    if known.is_pull:
        body["draft"] = pulls.is_draft(known)
        body["pull_request"] = pulls.link(known)
    return body


def comment(known: Comment) -> Json:
    """Return a comment on an issue or, in its own shape, a review comment."""
    if isinstance(known, ReviewComment):
        return pulls.review_comment(known)
    repo = known.issue.repo
    here = f"{base.api_of(repo)}/issues/comments/{known.id}"
    return {
        "id": known.id,
        "node_id": known.node_id,
        "url": here,
        "html_url": f"{known.issue.url}#issuecomment-{known.id}",
        "issue_url": f"{base.api_of(repo)}/issues/{known.issue.number}",
        "user": base.user(known.user, known.world),
        "body": known.body,
        "created_at": time(known.created_at),
        "updated_at": time(known.updated_at),
        "author_association": base.association(known.user, repo),
        "performed_via_github_app": None,
        "reactions": base.reactions(known.reactions, here),
    }


def timeline(entry: Any, on: Issue) -> Json:
    """Return one entry of an issue's timeline."""
    actor = base.user(entry.actor if isinstance(entry, TimelineEvent) else entry.user, on.world)
    if isinstance(entry, Comment):
        return {"event": "commented", "actor": actor, **comment(entry)}
    if isinstance(entry, Review):
        submitted = pulls.review(entry)
        return {"event": "reviewed", **submitted, "state": entry.state.lower()}
    body: Json = {
        "id": entry.id,
        "node_id": entry.node_id,
        "url": f"{base.api_of(on.repo)}/issues/events/{entry.id}",
        "actor": actor,
        "event": entry.event,
        "commit_id": entry.commit_id,
        "commit_url": None,
        "created_at": time(entry.created_at),
        "performed_via_github_app": None,
    }
    if entry.label:
        body["label"] = {"name": entry.label.name, "color": entry.label.color}
    if entry.rename:
        body["rename"] = {"from": entry.rename[0], "to": entry.rename[1]}
    if entry.event == "closed":
        body["state_reason"] = entry.state_reason
    return body
