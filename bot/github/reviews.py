"""Answers in review threads. Those of one round are one review: people hear of them once."""

from collections.abc import Callable, Iterable

from msgspec import Raw

from bot.github.calls import Calls
from bot.github.errors import Refused
from bot.github.shapes import Nodes, Shape
from bot.github.signed import Signed, carries, signed


class Node(Shape, frozen=True):
    """Something of which only the id matters."""

    id: str


class BegunOn(Shape, frozen=True):
    """A pull request, with the review that we have begun on it."""

    id: str
    reviews: Nodes[Node]


class Around(Shape, frozen=True):
    """The repository around it."""

    pull_request: BegunOn


class BegunData(Shape, frozen=True):
    """The answer to review_begun.graphql."""

    repository: Around


class Begun(Shape, frozen=True):
    """A review that was begun."""

    pull_request_review: Node


class BeginData(Shape, frozen=True):
    """The answer to review_begin.graphql."""

    add_pull_request_review: Begun


class Reviews:
    """Answering reviewers. May be used from any thread; raises `TryLater` or `Refused`."""

    def __init__(self, calls: Calls, me: Callable[[], str]) -> None:
        self._calls = calls
        self._signed = Signed(calls, me)

    def answer(self, repo: str, number: int, threads: Iterable[str], body: str, key: str) -> int:
        """Answer in each of these threads, once for a key; how many answers were still to be."""
        own = list(self._signed.own(repo, f"pulls/{number}/comments"))
        left = [one for one in threads if not any(carries(said, f"{key}/{one}") for said in own)]
        if len(left) == 1:
            self._reply(repo, left[0], body, key, None)  # GitHub makes a review of it by itself.
        elif left:
            review = self._begin(repo, number)
            for thread in left:
                self._reply(repo, thread, body, key, review)
            self._calls.graphql(repo, "review_submit", Raw, {"review": review})
        return len(left)

    def resolve(self, repo: str, threads: Iterable[str]) -> None:
        """Settle review threads; one that is settled stays so."""
        for thread in threads:
            self._calls.graphql(repo, "resolve", Raw, {"thread": thread})

    def _reply(self, repo: str, thread: str, body: str, key: str, review: str | None) -> None:
        said = {"thread": thread, "body": signed(body, f"{key}/{thread}"), "review": review}
        self._calls.graphql(repo, "reply", Raw, said)

    def _begin(self, repo: str, number: int) -> str:
        """Begin a review that nobody sees yet; one that a crash left is dropped first."""
        found = self._calls.graphql(repo, "review_begun", BegunData, {"number": number})
        if found is None:
            raise Refused(f"The pull request #{number} in {repo} is gone.", 404)
        pull = found.repository.pull_request
        for left in pull.reviews.nodes:
            self._calls.graphql(repo, "review_drop", Raw, {"review": left.id})
        begun = self._calls.graphql(repo, "review_begin", BeginData, {"pull": pull.id})
        if begun is None:
            raise Refused(f"The pull request #{number} in {repo} is gone.", 404)
        return begun.add_pull_request_review.pull_request_review.id
