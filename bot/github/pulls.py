"""Converts the pages of pull.graphql to one `PullSnapshot`."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from bot.github.checks import BEGINNING, BaseChecks, checks_of, failed_queue_checks, required_checks
from bot.github.comment_markers import KEY
from bot.github.shapes import Actor, CommentNode, PullRequest, ReviewNode, ReviewThread
from bot.github.snapshots import PullSnapshot
from lifecycle.model.accounts import BOT, bot_login, is_bot
from lifecycle.model.facts import Dequeued, Pull, Remark, Thread, Verdict
from lifecycle.model.status import Merge, PullState
from lifecycle.model.status import Review as ReviewState

_NO_CHECKS = BaseChecks()
_VERDICTS = {"APPROVED": True, "CHANGES_REQUESTED": False}

# An unknown value of GitHub's enums never means success.
#: The merge state for each `MergeStateStatus`. UNSTABLE means that only checks that are not
#: required have not passed. DRAFT means that only the draft state, which is a separate fact, blocks
#: the merge.
_MERGES = {
    "CLEAN": Merge.CLEAN,
    "HAS_HOOKS": Merge.CLEAN,
    "UNSTABLE": Merge.CLEAN,
    "DRAFT": Merge.CLEAN,
    "DIRTY": Merge.CONFLICT,
    "BEHIND": Merge.BEHIND,
    "BLOCKED": Merge.PROTECTED,
}

#: The review state for each `PullRequestReviewDecision`. If GitHub returns null, the latest reviews
#: decide.
_DECISIONS = {
    "APPROVED": ReviewState.APPROVED,
    "CHANGES_REQUESTED": ReviewState.CHANGES_REQUESTED,
    "REVIEW_REQUIRED": ReviewState.PENDING,
}

_PULL_STATES = {state.name: state for state in PullState}


def login_of(actor: Actor | None) -> str:
    """Return an account's login; empty if the account was deleted.

    A bot's login ends with `[bot]`.
    """
    if actor is None:
        return ""
    return bot_login(actor.login) if actor.typename == BOT else actor.login


def pull_snapshot(
    pages: Sequence[PullRequest],
    me: str,
    now: datetime,
    base_checks: BaseChecks = _NO_CHECKS,
    *,
    barred: str = "",
) -> PullSnapshot:
    """Combine all pages into one snapshot. The pull request's state is taken from the last page.

    `barred`: the rule that keeps the bot from pushing to the base branch; empty if there is none.
    The snapshot's `pull.checks_complete` is False if something was not read: further pages, the
    beginning of an unresolved thread, or a check that the bot may not see. It is also False if the
    checks belong to another commit than the head.
    """
    last = pages[-1]
    base = last.base_ref
    required = required_checks(base)
    latest = [review for page in pages for review in page.latest_opinionated_reviews.nodes]
    changes = last.base_changes.nodes
    onto_base = changes[-1].created_at if changes else BEGINNING
    verdicts = tuple(
        _verdict(review, me, onto_base) for review in latest if review.state in _VERDICTS
    )
    in_verdicts = {review.full_database_id for review in latest if review.state in _VERDICTS}
    reviews = [review for page in pages for review in page.reviews.nodes]
    comments = [comment for page in pages for comment in page.comments.nodes]
    threads = [thread for page in pages for thread in page.review_threads.nodes]
    remarks = [
        *(remark_of("comment", comment, me) for comment in comments),
        *(
            remark_of("review", review, me)
            for review in reviews
            if review.body.strip() and review.full_database_id not in in_verdicts
        ),
    ]
    return PullSnapshot(
        pull=Pull(
            number=last.number,
            url=last.url,
            title=last.title,
            state=_PULL_STATES.get(last.state, PullState.OPEN),
            draft=last.is_draft,
            branch=last.head_ref_name,
            head=last.head_ref_oid,
            base=base.target.oid if base and base.target else last.base_ref_oid,
            base_branch=last.base_ref_name,
            merge=(
                Merge.QUEUED
                if last.is_in_merge_queue
                else merge_state(last.mergeable, last.merge_state_status)
            ),
            queue=last.is_merge_queue_enabled,
            barred=barred,
            dequeued=_dequeued(last, me),
            review=review_state(last, latest),
            checks=checks_of(pages, required, me, base_checks),
            checks_complete=_complete(pages),
            checks_expected=base_checks.expected,
            verdicts=verdicts,
            threads=tuple(_thread(thread, me) for thread in threads),
            comments=tuple(sorted(remarks, key=lambda remark: (remark.at, remark.id))),
            read_at=now,
            merged_by=login_of(last.merged_by),
        ),
        head_repository=last.head_repository.name_with_owner if last.head_repository else "",
        author=login_of(last.author),
        created_at=last.created_at,
        body=last.body,
        labels=tuple(label.name for label in last.labels.nodes),
        edited_by=dict(_edits(comments, [*reviews, *latest], threads)),
    )


def merge_state(mergeable: str, status: str) -> Merge:
    """Return the merge state for GitHub's fields `mergeable` and `mergeStateStatus`.

    The state is clean only if both fields say so.
    """
    if mergeable == "CONFLICTING":
        return Merge.CONFLICT
    state = _MERGES.get(status, Merge.UNKNOWN)
    if state is Merge.CLEAN and mergeable != "MERGEABLE":
        return Merge.UNKNOWN
    # While GitHub recomputes mergeability, the status is that of an earlier base or head.
    return Merge.UNKNOWN if state is Merge.CONFLICT and mergeable == "UNKNOWN" else state


def review_state(pull: PullRequest, latest: Iterable[ReviewNode]) -> ReviewState:
    """Return GitHub's review decision; if null, the state of reviews by people who may push.

    If these neither approve nor request changes, it is pending as long as a review is requested.
    """
    if pull.review_decision is not None:
        return _DECISIONS.get(pull.review_decision, ReviewState.NONE)
    states = {review.state for review in latest if review.author_can_push_to_repository}
    if "CHANGES_REQUESTED" in states:
        return ReviewState.CHANGES_REQUESTED
    if "APPROVED" in states:
        return ReviewState.APPROVED
    return ReviewState.PENDING if pull.review_requests.total_count else ReviewState.NONE


def _dequeued(pull: PullRequest, me: str) -> Dequeued | None:
    """Return the last removal from a merge queue; None if there was none, or after a merge."""
    if not pull.timeline_items.nodes or pull.state == "MERGED":
        return None
    event = pull.timeline_items.nodes[-1]
    checks = failed_queue_checks(event.before_commit, me) if event.before_commit else ()
    return Dequeued(at=event.created_at, reason=event.reason or "", checks=checks)


def _complete(pages: Sequence[PullRequest]) -> bool:
    ends = {name: info for page in pages for name, info in page.page_infos.items()}
    more = any(info.has_next_page for info in ends.values())
    rollups = (page.rollup for page in pages if page.rollup)
    unseen = any(context is None for rollup in rollups for context in rollup.contexts.nodes)
    unseen |= any(
        thread.comments.total_count > len(thread.comments.nodes)
        for page in pages
        for thread in page.review_threads.nodes
        if not thread.is_resolved
    )
    heads = {node.commit.oid for page in pages for node in page.commits.nodes}
    return not more and not unseen and heads == {pages[-1].head_ref_oid}


def _verdict(review: ReviewNode, me: str, onto_base: datetime) -> Verdict:
    """Convert a review. `onto_base` is when the pull request got its present base branch."""
    return Verdict(
        author=login_of(review.author),
        bot=_is_bot(review.author),
        approved=_VERDICTS[review.state],
        sha=review.commit.oid if review.commit else "",
        for_base=(review.submitted_at or BEGINNING) > onto_base,
        remark=remark_of("review", review, me) if review.body.strip() else None,
    )


def _thread(thread: ReviewThread, me: str) -> Thread:
    comments = thread.comments.nodes
    return Thread(
        id=thread.id,
        path=thread.path,
        line=thread.line or thread.original_line,
        start=thread.start_line if thread.line else thread.original_start_line,
        diff=comments[0].diff_hunk if comments else "",
        resolved=thread.is_resolved,
        outdated=thread.is_outdated,
        remarks=tuple(remark_of("thread-comment", comment, me) for comment in comments),
    )


def remark_of(kind: str, text: CommentNode | ReviewNode, me: str) -> Remark:
    """Convert a comment or review to a remark. Its `allowed` is set later, by the observer.

    `kind` is the beginning of the remark's id, such as `comment`; `me` is the bot's login. With a
    token, the bot's own remarks are recognised by their marker, because the token's owner writes
    with the same account.
    """
    written = text.submitted_at if isinstance(text, ReviewNode) else text.created_at
    author = login_of(text.author)
    return Remark(
        id=f"{kind}:{text.full_database_id}",
        author=author,
        body=text.body,
        at=written or BEGINNING,
        bot=_is_bot(text.author),
        own=author == me and (is_bot(me) or KEY in text.body),
    )


def _is_bot(actor: Actor | None) -> bool:
    return actor is not None and actor.typename == BOT


def _edits(
    comments: Iterable[CommentNode], reviews: Iterable[ReviewNode], threads: Iterable[ReviewThread]
) -> Iterator[tuple[str, str]]:
    """Yield the id and the last editor of each remark whose last editor is not its author."""
    yield from edits_of("comment", comments)
    yield from edits_of("review", reviews)
    yield from edits_of("thread-comment", (c for one in threads for c in one.comments.nodes))


def edits_of(kind: str, texts: Iterable[CommentNode | ReviewNode]) -> Iterator[tuple[str, str]]:
    """Yield the id and the last editor of each text whose last editor is not its author.

    `kind`: the beginning of the ids, as in `remark_of`. The editor is empty if that account was
    deleted.
    """
    for text in texts:
        editor = login_of(text.editor)
        if text.last_edited_at is not None and editor != login_of(text.author):
            yield f"{kind}:{text.full_database_id}", editor
