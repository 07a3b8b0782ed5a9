"""Answers in review threads. Those of one round are one review: people hear of them once."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from msgspec import Raw

from bot.github.calls import ApiClient
from bot.github.comment_markers import KEY, MarkedComments, has_marker, with_marker
from bot.github.errors import Refused, TryLater
from bot.github.shapes import GraphQLShape, NodeList

#: How soon it is asked again whether a review that was begun by hand is still there.
_BY_HAND = timedelta(minutes=1)


class IdNode(GraphQLShape, frozen=True):
    """Something of which only the id matters."""

    id: str


class CommentBody(GraphQLShape, frozen=True):
    """What a comment says."""

    body: str


class PendingReview(GraphQLShape, frozen=True):
    """A review that nobody sees yet."""

    id: str
    body: str
    comments: NodeList[CommentBody]


class _PendingReviewPull(GraphQLShape, frozen=True):
    """A pull request, with the review that our account has begun on it."""

    id: str
    reviews: NodeList[PendingReview]


class _PendingReviewRepository(GraphQLShape, frozen=True):
    """The repository around it."""

    pull_request: _PendingReviewPull


class _PendingReviewData(GraphQLShape, frozen=True):
    """The answer to review_begun.graphql."""

    repository: _PendingReviewRepository


class _AddedReview(GraphQLShape, frozen=True):
    """A review that was begun."""

    pull_request_review: IdNode


class _AddedReviewData(GraphQLShape, frozen=True):
    """The answer to review_begin.graphql."""

    add_pull_request_review: _AddedReview


class ReviewReplies:
    """Answering reviewers. May be used from any thread; raises `TryLater` or `Refused`."""

    def __init__(self, calls: ApiClient, me: Callable[[], str]) -> None:
        self._calls = calls
        self._signed = MarkedComments(calls, me)

    def answer(self, repo: str, number: int, threads: Iterable[str], body: str, key: str) -> int:
        """Answer in each of these threads, once for a key; how many answers were still to be."""
        keys = {thread: f"{key}/{thread}" for thread in threads}
        own = [written.body for written in self._signed.own(repo, f"pulls/{number}/comments")]
        left = {thread: mine for thread, mine in keys.items() if not _said(own, mine)}
        if len(left) == 1:
            for thread, mine in left.items():  # GitHub makes a review of one by itself.
                self._reply(repo, thread, with_marker(body, mine), None)
        elif left:
            self._together(repo, number, left, body)
        return len(left)

    def _together(self, repo: str, number: int, left: Mapping[str, str], body: str) -> None:
        """Answer in several threads by one review. One that was deleted costs itself alone."""
        review, begun = self._begin(repo, number, left.values())
        gone: list[Refused] = []
        for thread, mine in left.items():
            if _said(begun, mine):
                continue
            try:
                self._reply(repo, thread, with_marker(body, mine), review)
            except Refused as refusal:
                if refusal.status != 404:
                    raise
                gone.append(refusal)
        if len(gone) == len(left):
            self._calls.graphql(repo, "review_drop", Raw, {"review": review})
            raise gone[0]
        self._calls.graphql(repo, "review_submit", Raw, {"review": review})

    def resolve(self, repo: str, threads: Iterable[str]) -> None:
        """Settle review threads; one that is settled stays so."""
        for thread in threads:
            self._calls.graphql(repo, "resolve", Raw, {"thread": thread})

    def _reply(self, repo: str, thread: str, body: str, review: str | None) -> None:
        said = {"thread": thread, "body": body, "review": review}
        self._calls.graphql(repo, "reply", Raw, said)

    def _begin(self, repo: str, number: int, keys: Collection[str]) -> tuple[str, Sequence[str]]:
        """A review that nobody sees yet, and what is in it: one that was cut short goes on.

        One with other keys was left behind, and is dropped. A person whose token we use may have
        begun one by hand, of which GitHub lets them have no second: that one is waited for.
        """
        found = self._calls.graphql(repo, "review_begun", _PendingReviewData, {"number": number})
        if found is None:
            raise Refused(f"The pull request #{number} in {repo} is gone.", 404)
        pull = found.repository.pull_request
        for left in pull.reviews.nodes:
            said = [one.body for one in left.comments.nodes]
            if left.body or not all(KEY in body for body in said):
                why = f"A review of #{number} in {repo} was begun by hand: submit it or discard it."
                raise TryLater(why, self._calls.clock() + _BY_HAND)
            if said and all(any(has_marker(body, key) for key in keys) for body in said):
                return left.id, said
            self._calls.graphql(repo, "review_drop", Raw, {"review": left.id})
        begun = self._calls.graphql(repo, "review_begin", _AddedReviewData, {"pull": pull.id})
        if begun is None:
            raise Refused(f"The pull request #{number} in {repo} is gone.", 404)
        return begun.add_pull_request_review.pull_request_review.id, ()


def _said(bodies: Iterable[str | None], key: str) -> bool:
    return any(has_marker(body, key) for body in bodies)
