"""Converts the pages of pull.graphql to one `PullSnapshot`."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from bot.github.checks import (
    BEGINNING,
    BaseChecks,
    checks_of,
    failed_queue_checks,
    required_checks,
    rollup_of,
)
from bot.github.mapping import PULL_STATES, merge_state, review_state
from bot.github.shapes import (
    Actor,
    CommentNode,
    PullRequest,
    ReviewNode,
    ReviewThread,
)
from bot.github.snapshots import PullSnapshot
from lifecycle.model.facts import Dequeued, Pull, Remark, Thread, Verdict
from lifecycle.model.status import Merge, PullState

_NO_CHECKS = BaseChecks()
_VERDICTS = {"APPROVED": True, "CHANGES_REQUESTED": False}


def login_of(actor: Actor | None) -> str:
    """An account's login as REST spells it, with `[bot]` for an App; empty if it was deleted."""
    if actor is None:
        return ""
    bot = actor.typename == "Bot" and not actor.login.endswith("[bot]")
    return f"{actor.login}[bot]" if bot else actor.login


def pull_snapshot(
    pages: Sequence[PullRequest], me: str, now: datetime, base_checks: BaseChecks = _NO_CHECKS
) -> PullSnapshot:
    """A snapshot of all pages; the last page has the state of the pull request.

    `checks_complete` is False if a page or the beginning of an open thread is missing, or if the
    checks are not those of the head.
    """
    last = pages[-1]
    base = last.base_ref
    required = required_checks(base)
    latest = [review for page in pages for review in page.latest_opinionated_reviews.nodes]
    verdicts = tuple(_verdict(review, me) for review in latest if review.state in _VERDICTS)
    in_verdicts = {review.full_database_id for review in latest if review.state in _VERDICTS}
    reviews = [review for page in pages for review in page.reviews.nodes]
    comments = [comment for page in pages for comment in page.comments.nodes]
    threads = [thread for page in pages for thread in page.review_threads.nodes]
    remarks = [
        *(_remark("comment", comment, me) for comment in comments),
        *(
            _review_remark(review, me)
            for review in reviews
            if review.body.strip() and review.full_database_id not in in_verdicts
        ),
    ]
    return PullSnapshot(
        pull=Pull(
            number=last.number,
            url=last.url,
            title=last.title,
            state=PULL_STATES.get(last.state, PullState.OPEN),
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
            dequeued=_dequeued(last, me),
            review=review_state(last, latest),
            checks=checks_of(pages, required, me, base_checks),
            checks_complete=_complete(pages),
            checks_expected=required is not None or base_checks.reported,
            verdicts=verdicts,
            threads=tuple(_thread(thread, me) for thread in threads),
            comments=tuple(sorted(remarks, key=lambda remark: (remark.at, remark.id))),
            read_at=now,
        ),
        head_repository=last.head_repository.name_with_owner if last.head_repository else "",
        head_branch=last.head_ref_name,
        author=login_of(last.author),
        merged_by=login_of(last.merged_by),
        body=last.body,
        labels=tuple(label.name for label in last.labels.nodes),
        edited_by=dict(_edits(comments, [*reviews, *latest], threads)),
    )


def _dequeued(pull: PullRequest, me: str) -> Dequeued | None:
    """The last removal from a merge queue without a merge."""
    if not pull.timeline_items.nodes or pull.state == "MERGED":
        return None
    event = pull.timeline_items.nodes[-1]
    rollup = event.before_commit.status_check_rollup if event.before_commit else None
    tried = [each for each in (rollup.contexts.nodes if rollup else ()) if each]
    return Dequeued(
        at=event.created_at, reason=event.reason or "", checks=failed_queue_checks(tried, me)
    )


def _complete(pages: Sequence[PullRequest]) -> bool:
    last = pages[-1]
    lists = [last.reviews.page_info, last.comments.page_info, last.review_threads.page_info]
    lists.append(last.latest_opinionated_reviews.page_info)
    rollups = [rollup for page in pages if (rollup := rollup_of(page))]
    if rollups:
        lists.append(rollups[-1].contexts.page_info)
    unseen = any(context is None for rollup in rollups for context in rollup.contexts.nodes)
    threads = (thread for page in pages for thread in page.review_threads.nodes)
    unseen |= any(
        thread.comments.total_count > len(thread.comments.nodes)
        for thread in threads
        if not thread.is_resolved
    )
    heads = {node.commit.oid for page in pages for node in page.commits.nodes}
    return not unseen and not any(p.has_next_page for p in lists) and heads == {last.head_ref_oid}


def _verdict(review: ReviewNode, me: str) -> Verdict:
    return Verdict(
        author=login_of(review.author),
        bot=_is_bot(review.author),
        approved=_VERDICTS[review.state],
        sha=review.commit.oid if review.commit else "",
        remark=_review_remark(review, me) if review.body.strip() else None,
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
        remarks=tuple(_remark("thread-comment", comment, me) for comment in comments),
    )


def _remark(kind: str, comment: CommentNode, me: str) -> Remark:
    return Remark(
        id=f"{kind}:{comment.full_database_id}",
        author=login_of(comment.author),
        body=comment.body,
        at=comment.created_at,
        bot=_is_bot(comment.author),
        own=login_of(comment.author) == me,
    )


def _review_remark(review: ReviewNode, me: str) -> Remark:
    return Remark(
        id=f"review:{review.full_database_id}",
        author=login_of(review.author),
        body=review.body,
        at=review.submitted_at or BEGINNING,
        bot=_is_bot(review.author),
        own=login_of(review.author) == me,
    )


def _is_bot(actor: Actor | None) -> bool:
    return actor is not None and actor.typename == "Bot"


def _edits(
    comments: Iterable[CommentNode], reviews: Iterable[ReviewNode], threads: Iterable[ReviewThread]
) -> Iterator[tuple[str, str]]:
    """The remarks whose last editor is not their author, with that editor."""
    written: list[tuple[str, CommentNode | ReviewNode]] = [
        *(("comment", comment) for comment in comments),
        *(("review", review) for review in reviews),
        *(("thread-comment", c) for thread in threads for c in thread.comments.nodes),
    ]
    for kind, text in written:
        editor = login_of(text.editor)
        if text.last_edited_at is not None and editor != login_of(text.author):
            yield f"{kind}:{text.full_database_id}", editor
