"""Parts of GraphQL responses of pull requests, with defaults for what a test does not set."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bot.github.shapes import (
    Actor,
    AppSlug,
    CheckRollup,
    CheckSuite,
    CommentNode,
    CommitNode,
    HeadCheck,
    HeadCommit,
    HeadNode,
    NamedNode,
    NewestNodes,
    NodeList,
    NodePage,
    PageInfo,
    PullRequest,
    RepositoryName,
    ReviewNode,
    ReviewThread,
    TotalCount,
    WorkflowRun,
)

HEAD = "a" * 40
START = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)


def user(login: str) -> Actor:
    return Actor(typename="User", login=login)


def bot(login: str) -> Actor:
    return Actor(typename="Bot", login=login)


def listed(*nodes: Any, more: bool = False, cursor: str | None = None) -> NodePage[Any]:
    return NodePage(page_info=PageInfo(has_next_page=more, end_cursor=cursor), nodes=nodes)


def run(id: int, name: str, conclusion: str | None = "SUCCESS", **changes: Any) -> HeadCheck:
    """A job of GitHub Actions: by default of the workflow "CI", started by the event "push"."""
    event = changes.pop("event", "push")
    started = WorkflowRun(event=event, workflow=NamedNode(name=changes.pop("workflow", "CI")))
    fields: dict[str, Any] = {
        "typename": "CheckRun",
        "database_id": id,
        "name": name,
        "status": "COMPLETED" if conclusion else "IN_PROGRESS",
        "conclusion": conclusion,
        "is_required": False,
        "check_suite": CheckSuite(app=AppSlug(slug="github-actions"), workflow_run=started),
    }
    return HeadCheck(**{**fields, **changes})


def status(context: str, state: str, minute: int = 0) -> HeadCheck:
    return HeadCheck(
        typename="StatusContext",
        context=context,
        state=state,
        is_required=False,
        created_at=START + timedelta(minutes=minute),
    )


def checks(*contexts: HeadCheck | None, oid: str = HEAD, more: bool = False) -> NodeList[HeadNode]:
    rollup = CheckRollup(contexts=listed(*contexts, more=more))
    return NodeList(nodes=(HeadNode(commit=HeadCommit(oid=oid, status_check_rollup=rollup)),))


def comment(id: int, login: str = "ann", body: str = "words", **changes: Any) -> CommentNode:
    fields: dict[str, Any] = {
        "full_database_id": str(id),
        "body": body,
        "created_at": START + timedelta(minutes=id),
        "last_edited_at": None,
        "author": user(login),
        "editor": None,
    }
    return CommentNode(**{**fields, **changes})


def review(login: str, state: str, id: int = 1, body: str = "", writer: bool = True) -> ReviewNode:
    return ReviewNode(
        full_database_id=str(id),
        state=state,
        body=body,
        submitted_at=START + timedelta(minutes=id),
        last_edited_at=None,
        author_can_push_to_repository=writer,
        commit=CommitNode(oid=HEAD),
        author=user(login),
        editor=None,
    )


def thread(id: str, *comments: CommentNode, **changes: Any) -> ReviewThread:
    fields: dict[str, Any] = {
        "id": id,
        "path": "src/retry.py",
        "line": 7,
        "original_line": 5,
        "start_line": None,
        "original_start_line": None,
        "is_resolved": False,
        "is_outdated": False,
        "comments": NewestNodes(total_count=len(comments), nodes=comments),
    }
    return ReviewThread(**{**fields, **changes})


def page(**changes: Any) -> PullRequest:
    """An open pull request of this very repository, with nothing on it."""
    fields: dict[str, Any] = {
        "number": 34,
        "title": "Retry",
        "body": "Closes #12",
        "url": "https://github.example/acme/widgets/pull/34",
        "state": "OPEN",
        "created_at": START,
        "is_draft": False,
        "mergeable": "MERGEABLE",
        "merge_state_status": "CLEAN",
        "review_decision": None,
        "author": bot("mergewright"),
        "merged_by": None,
        "head_ref_name": "mergewright/12-retry",
        "head_ref_oid": HEAD,
        "head_repository": RepositoryName(name_with_owner="acme/widgets"),
        "base_ref_name": "main",
        "base_ref_oid": "b" * 40,
        "base_ref": None,
        "labels": NodeList(nodes=()),
        "is_in_merge_queue": False,
        "is_merge_queue_enabled": False,
        "timeline_items": NodeList(nodes=()),
        "base_changes": NodeList(nodes=()),
        "review_requests": TotalCount(total_count=0),
        "latest_opinionated_reviews": listed(),
        "reviews": listed(),
        "comments": listed(),
        "review_threads": listed(),
        "commits": checks(),
    }
    return PullRequest(**{**fields, **changes})
