"""Pull requests, reviews, review comments and threads."""

from typing import cast

from bot.demo.github.checks import CheckedRepository
from bot.demo.github.issues import Issue
from bot.demo.github.pulls import Pull
from bot.demo.github.reviews import Review, ReviewComment, Thread
from bot.demo.github.shapes import base
from bot.demo.github.shapes.base import Json, time


def is_draft(known: Issue) -> bool:
    return cast(Pull, known).draft


def link(known: Issue) -> Json:
    """Return the member `pull_request`, by which an issue is recognised as a pull request."""
    return {
        "url": _address(known),
        "html_url": known.url,
        "diff_url": f"{known.url}.diff",
        "patch_url": f"{known.url}.patch",
        "merged_at": time(cast(Pull, known).merged_at),
    }


def pull_simple(known: Pull) -> Json:
    """Return a pull request in the form that lists have."""
    repo, world = known.repo, known.world
    here, issue = _address(known), f"{base.api_of(repo)}/issues/{known.number}"
    links = {
        "html": known.url,
        "self": here,
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{here}/comments",
        "review_comment": f"{base.api_of(repo)}/pulls/comments{{/number}}",
        "commits": f"{here}/commits",
        "statuses": f"{base.api_of(repo)}/statuses/{known.head}",
    }
    rest = ("issue", "commits", "review_comments", "review_comment", "comments", "statuses")
    return {
        "id": known.id,
        "node_id": known.node_id,
        "number": known.number,
        "url": here,
        "html_url": known.url,
        "diff_url": f"{known.url}.diff",
        "patch_url": f"{known.url}.patch",
        **{f"{name}_url": links[name] for name in rest},
        "state": known.state,
        "locked": False,
        "active_lock_reason": None,
        "title": known.title,
        "user": base.user(known.user, world),
        "body": known.body or None,
        "labels": [base.label(label, repo) for label in known.label_list],
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [base.user(asked, world) for asked in known.requested],
        "requested_teams": [],
        "milestone": None,
        "created_at": time(known.created_at),
        "updated_at": time(known.updated_at),
        "closed_at": time(known.closed_at),
        "merged_at": time(known.merged_at),
        "merge_commit_sha": known.merge_commit,
        "head": _end(known.source, known.head_branch, known.head),
        "base": _end(repo, known.base_branch, known.base),
        "_links": {name: {"href": href} for name, href in links.items()},
        "author_association": base.association(known.user, repo),
        "auto_merge": None,
        "draft": known.draft,
    }


def pull(known: Pull) -> Json:
    """Return a pull request in the form of `GET` for a single one, and of webhooks."""
    git, tip = known.repo.git, known.base if known.merged else known.base_tip
    added, removed, files = git.diffstat(tip, known.head)
    mergeable = known.mergeable
    return {
        **pull_simple(known),
        "merged": known.merged,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": known.merge_state.lower(),
        "merged_by": base.optional_user(known.merged_by, known.world),
        "comments": len(known.comments),
        "review_comments": sum(len(thread.comments) for thread in known.threads),
        "maintainer_can_modify": False,
        "commits": git.count(tip, known.head),
        "additions": added,
        "deletions": removed,
        "changed_files": files,
    }


def review(known: Review) -> Json:
    submitted = time(known.created_at)
    return {
        "id": known.id,
        "node_id": known.node_id,
        "user": base.user(known.user, known.world),
        "body": known.body,
        "state": known.state,
        "html_url": known.url,
        "pull_request_url": _address(known.pull),
        "author_association": base.association(known.user, known.pull.repo),
        "_links": {
            "html": {"href": known.url},
            "pull_request": {"href": _address(known.pull)},
        },
        "submitted_at": submitted,
        "updated_at": time(known.updated_at),
        "commit_id": known.commit_id,
    }


def webhook_review(known: Review) -> Json:
    """Return a review in a webhook, with its state in lower case."""
    return {**review(known), "state": known.state.lower(), "body": known.body or None}


def review_comment(known: ReviewComment) -> Json:
    thread, on = known.thread, known.thread.pull
    here = f"{base.api_of(on.repo)}/pulls/comments/{known.id}"
    page = f"{on.url}#discussion_r{known.id}"
    position = thread.diff_hunk.count("\n") or None
    body: Json = {
        "id": known.id,
        "node_id": known.node_id,
        "url": here,
        "html_url": page,
        "pull_request_url": _address(on),
        "pull_request_review_id": known.review.id,
        "diff_hunk": thread.diff_hunk,
        "path": thread.path,
        "position": None if thread.outdated else position,
        "original_position": position,
        "line": thread.line,
        "original_line": thread.original_line,
        "start_line": thread.start_line if thread.line else None,
        "original_start_line": thread.start_line,
        "start_side": None,
        "side": "RIGHT",
        "subject_type": "line",
        "commit_id": on.head,
        "original_commit_id": thread.original_commit,
        "user": base.user(known.user, known.world),
        "body": known.body,
        "created_at": time(known.created_at),
        "updated_at": time(known.updated_at),
        "author_association": base.association(known.user, on.repo),
        "_links": {
            "self": {"href": here},
            "html": {"href": page},
            "pull_request": {"href": _address(on)},
        },
        "reactions": base.reactions(known.reactions, here),
    }
    if known.in_reply_to:
        body["in_reply_to_id"] = known.in_reply_to.id
    return body


def thread(known: Thread) -> Json:
    """Return a review thread, which only webhooks show."""
    return {
        "node_id": known.node_id,
        "comments": [review_comment(comment) for comment in known.comments],
    }


def _address(known: Issue) -> str:
    return f"{base.api_of(known.repo)}/pulls/{known.number}"


def _end(repo: CheckedRepository, branch: str, sha: str) -> Json:
    return {
        "label": f"{repo.owner.login}:{branch}",
        "ref": branch,
        "sha": sha,
        "user": base.user(repo.owner, repo.world),
        "repo": base.repository(repo),
    }
