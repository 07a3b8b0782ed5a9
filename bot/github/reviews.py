"""Replies in review threads. Several replies are sent as one review, which notifies people once."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta

from bot.github.api_client import ApiClient
from bot.github.comment_markers import KEY, has_marker, own_comments, with_marker
from bot.github.errors import IgnoreRefused, Refused, TryLater
from bot.github.shapes import GraphQLShape, NodeList, OfPull

#: The pause before a retry while the bot's account has a pending review that a person began.
_BY_HAND = timedelta(minutes=1)


class IdNode(GraphQLShape, frozen=True):
    id: str


class CommentBody(GraphQLShape, frozen=True):
    body: str


class PendingReview(GraphQLShape, frozen=True):
    """A review that is not submitted yet, which only its author can see."""

    id: str
    body: str
    comments: NodeList[CommentBody]


class PendingReviews(GraphQLShape, frozen=True):
    id: str
    reviews: NodeList[PendingReview]


class _AddedReview(GraphQLShape, frozen=True):
    pull_request_review: IdNode


class _AddedReviewData(GraphQLShape, frozen=True):
    """GitHub's response to `begin_review.graphql`."""

    add_pull_request_review: _AddedReview


class ReviewReplies:
    """Replies to reviewers. Thread-safe. Methods raise `TryLater` or `Refused`.

    https://docs.github.com/en/graphql/reference/mutations
    """

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def reply(
        self,
        repo: str,
        number: int,
        threads: Iterable[str],
        body: str,
        key: str,
        *,
        first: bool = False,
    ) -> int:
        """Reply in each thread that has no reply with this key yet; return how many had none.

        `threads` are node ids. `first` says that this is the first attempt: threads are then not
        searched for earlier replies. Uses `addPullRequestReviewThreadReply`.
        """
        keys = {thread: f"{key}/{thread}" for thread in threads}
        path = f"pulls/{number}/comments"
        written = () if first else own_comments(self._api, repo, path)
        own = [one.body for one in written]
        left = {thread: mine for thread, mine in keys.items() if not _has_key(own, mine)}
        if len(left) == 1:
            for thread, mine in left.items():  # GitHub makes a review of a single reply.
                self._reply(repo, thread, with_marker(body, mine), None)
        elif left:
            self._reply_in_review(repo, number, left, body)
        return len(left)

    def remove_duplicates(self, repo: str, number: int, threads: Iterable[str], key: str) -> None:
        """Delete all but the oldest of the bot's replies with this key in each of these threads.

        https://docs.github.com/rest/pulls/comments#delete-a-review-comment-for-a-pull-request
        """
        for thread in threads:
            path = f"pulls/{number}/comments"
            for doubled in list(own_comments(self._api, repo, path, f"{key}/{thread}"))[1:]:
                with IgnoreRefused(404):
                    self._api.do(repo, "DELETE", f"pulls/comments/{doubled.id}")

    def _reply_in_review(self, repo: str, number: int, left: Mapping[str, str], body: str) -> None:
        """Reply in several threads with one review.

        `left` maps each thread to its own key, derived from the key given to `reply`. Deleted
        threads are skipped; if all are deleted, raises `Refused`.
        """
        review, pending = self._pending_review(repo, number, left.values())
        refusals: list[Refused] = []
        for thread, mine in left.items():
            if _has_key(pending, mine):
                continue
            try:
                self._reply(repo, thread, with_marker(body, mine), review)
            except Refused as refusal:
                if refusal.status != 404:
                    raise
                refusals.append(refusal)
        if len(refusals) == len(left):
            self._api.mutate(repo, "delete_review", {"review": review})
            raise refusals[0]
        self._api.mutate(repo, "submit_review", {"review": review})

    def resolve(self, repo: str, threads: Iterable[str]) -> None:
        """Resolve review threads (`resolveReviewThread`). Idempotent."""
        for thread in threads:
            self._api.mutate(repo, "resolve_thread", {"thread": thread})

    def _reply(self, repo: str, thread: str, body: str, review: str | None) -> None:
        variables = {"thread": thread, "body": body, "review": review}
        self._api.mutate(repo, "reply_in_thread", variables)

    def _pending_review(
        self, repo: str, number: int, keys: Collection[str]
    ) -> tuple[str, Sequence[str]]:
        """Return the id of the bot's pending review and the texts of its comments.

        Begins a review if there is none. If a crash left one, it is continued if all its comments
        have one of these `keys`, and deleted otherwise. GitHub allows one pending review per
        account: while the token's owner has begun one by hand, raises `TryLater`.
        """
        gone = Refused(f"The pull request #{number} in {repo} is gone.", 404)
        found = self._api.query(repo, "pending_review", OfPull[PendingReviews], {"number": number})
        if found is None:
            raise gone
        pull = found.pull_request
        for left in pull.reviews.nodes:
            comments = [one.body for one in left.comments.nodes]
            if left.body or not all(KEY in body for body in comments):
                why = (
                    f"Somebody began a review of #{number} in {repo} with the bot's account: sign"
                    " in to GitHub with that account, and submit or discard the review."
                )
                raise TryLater(why, self._api.clock() + _BY_HAND)
            if comments and all(any(has_marker(body, key) for key in keys) for body in comments):
                return left.id, comments
            self._api.mutate(repo, "delete_review", {"review": left.id})
        pending = self._api.graphql(repo, "begin_review", _AddedReviewData, {"pull": pull.id})
        if pending is None:
            raise gone
        return pending.add_pull_request_review.pull_request_review.id, ()


def _has_key(bodies: Iterable[str | None], key: str) -> bool:
    return any(has_marker(body, key) for body in bodies)
