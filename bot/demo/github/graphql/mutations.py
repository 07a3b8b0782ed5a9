"""GraphQL mutations."""

from typing import Any, TypeVar

from graphql import GraphQLResolveInfo

from bot.demo.github.graphql.connections import Json, QueryError
from bot.demo.github.graphql.conversations import REACTIONS
from bot.demo.github.hosting import RepositoryBase
from bot.demo.github.issues import Comment, Issue
from bot.demo.github.merging import Refused
from bot.demo.github.pulls import Pull
from bot.demo.github.reviews import PendingReview, Thread

_Kind = TypeVar("_Kind", bound=Issue | Comment | Thread)


def _add_comment(info: GraphQLResolveInfo, input: Json) -> Json:
    on = _find(info, input["subjectId"], Issue)
    comment = on.comment(input["body"], info.context.login)
    return {"commentEdge": {"cursor": comment.node_id, "node": comment}, "subject": on}


def _add_reaction(info: GraphQLResolveInfo, input: Json) -> Json:
    content, login = REACTIONS[input["content"]], info.context.login
    if isinstance(info.context.world.nodes.get(input["subjectId"]), Comment):
        return {"reaction": _find(info, input["subjectId"], Comment).react(content, login)}
    return {"reaction": _find(info, input["subjectId"], Issue).react(content, login)}


def _reply(info: GraphQLResolveInfo, input: Json) -> Json:
    thread = _find(info, input["pullRequestReviewThreadId"], Thread)
    if review := input.get("pullRequestReviewId"):
        _own(info, review).replies.append((thread, input["body"]))
        return {"comment": None}
    return {"comment": thread.reply(info.context.login, input["body"])}


def _begin_review(info: GraphQLResolveInfo, input: Json) -> Json:
    pull = _find(info, input["pullRequestId"], Pull)
    try:
        return {"pullRequestReview": pull.begin_review(info.context.login)}
    except ValueError as second:
        raise QueryError("UNPROCESSABLE", str(second)) from second


def _submit_review(info: GraphQLResolveInfo, input: Json) -> Json:
    review = _own(info, input["pullRequestReviewId"])
    if not review.replies:
        raise QueryError("UNPROCESSABLE", "Could not submit an empty review")
    return {"pullRequestReview": review.submit()}


def _drop_review(info: GraphQLResolveInfo, input: Json) -> Json:
    _own(info, input["pullRequestReviewId"]).drop()
    return {}


def _own(info: GraphQLResolveInfo, node_id: str) -> PendingReview:
    """Return a pending review. Raises `QueryError` unless it is by the requesting account."""
    found = info.context.world.nodes.get(node_id)
    if not isinstance(found, PendingReview) or found.user.login != info.context.login:
        message = f"Could not resolve to a node with the global id of '{node_id}'"
        raise QueryError("NOT_FOUND", message)
    return found


def _resolve(info: GraphQLResolveInfo, input: Json) -> Json:
    thread = _thread_to_settle(info, input)
    thread.resolve(info.context.login)
    return {"thread": thread}


def _unresolve(info: GraphQLResolveInfo, input: Json) -> Json:
    thread = _thread_to_settle(info, input)
    thread.unresolve(info.context.login)
    return {"thread": thread}


def _thread_to_settle(info: GraphQLResolveInfo, input: Json) -> Thread:
    thread = _find(info, input["threadId"], Thread)
    if thread.pull.user.login != info.context.login:
        _demand(info, thread.pull.repo, "write")
    return thread


def _merge(info: GraphQLResolveInfo, input: Json) -> Json:
    pull = _find(info, input["pullRequestId"], Pull)
    _demand(info, pull.repo, "write")
    if input.get("expectedHeadOid") not in (None, pull.head):
        message = "Head branch was modified. Review and try the merge again."
        raise QueryError("UNPROCESSABLE", message)
    login, method = info.context.login, input["mergeMethod"].lower()
    try:
        pull.merge(login, method, input.get("commitHeadline"), input.get("commitBody"))
    except Refused as refused:
        raise QueryError("UNPROCESSABLE", str(refused)) from refused
    return {"actor": pull.merged_by, "pullRequest": pull}


def _enqueue(info: GraphQLResolveInfo, input: Json) -> Json:
    pull = _find(info, input["pullRequestId"], Pull)
    _demand(info, pull.repo, "write")
    if input.get("expectedHeadOid") not in (None, pull.head):
        raise QueryError("UNPROCESSABLE", "Head branch was modified. Review and try again.")
    try:
        pull.enqueue(info.context.login)
    except Refused as refused:
        raise QueryError("UNPROCESSABLE", str(refused)) from refused
    return {"mergeQueueEntry": {"id": f"MQE_{pull.id}", "position": 1}}


def _dequeue(info: GraphQLResolveInfo, input: Json) -> Json:
    pull = _find(info, input["id"], Pull)
    _demand(info, pull.repo, "write")
    if not pull.queued:
        raise QueryError("UNPROCESSABLE", "Pull request is not in the merge queue")
    pull.queue_puts_out("manual", info.context.login)
    return {"mergeQueueEntry": {"id": f"MQE_{pull.id}", "position": 1}}


def _mark_ready(info: GraphQLResolveInfo, input: Json) -> Json:
    pull = _pull_to_change(info, input)
    pull.mark_ready(info.context.login)
    return {"pullRequest": pull}


def _mark_draft(info: GraphQLResolveInfo, input: Json) -> Json:
    pull = _pull_to_change(info, input)
    pull.mark_draft(info.context.login)
    return {"pullRequest": pull}


def _pull_to_change(info: GraphQLResolveInfo, input: Json) -> Pull:
    pull = _find(info, input["pullRequestId"], Pull)
    if pull.user.login != info.context.login:
        _demand(info, pull.repo, "write")
    return pull


def _find(info: GraphQLResolveInfo, node_id: str, kind: type[_Kind]) -> _Kind:
    """Return the object with this id.

    Raises `QueryError` unless it is of the expected kind and visible to the account.
    """
    found = info.context.world.nodes.get(node_id)
    if not isinstance(found, kind) or not _repo(found).allows(info.context.login, "read"):
        message = f"Could not resolve to a node with the global id of '{node_id}'"
        raise QueryError("NOT_FOUND", message)
    return found


def _repo(found: Any) -> RepositoryBase:
    on = found.pull if isinstance(found, Thread) else found
    repo: RepositoryBase = on.issue.repo if isinstance(on, Comment) else on.repo
    return repo


def _demand(info: GraphQLResolveInfo, repo: RepositoryBase, level: str) -> None:
    login = info.context.login
    if not repo.allows(login, level):
        name = info.field_name[0].upper() + info.field_name[1:]
        message = f"{login} does not have the correct permissions to execute `{name}`"
        raise QueryError("FORBIDDEN", message)


MUTATIONS = {
    "addComment": _add_comment,
    "addPullRequestReview": _begin_review,
    "addPullRequestReviewThreadReply": _reply,
    "addReaction": _add_reaction,
    "convertPullRequestToDraft": _mark_draft,
    "deletePullRequestReview": _drop_review,
    "dequeuePullRequest": _dequeue,
    "enqueuePullRequest": _enqueue,
    "markPullRequestReadyForReview": _mark_ready,
    "mergePullRequest": _merge,
    "resolveReviewThread": _resolve,
    "submitPullRequestReview": _submit_review,
    "unresolveReviewThread": _unresolve,
}
