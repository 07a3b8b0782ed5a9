"""Which labels a repository has, and which of its issues wear them."""

from collections.abc import Iterable

from bot.github.calls import PAGES, ApiClient
from bot.github.documents import labelled_issues as labelled_query
from bot.github.errors import TryLater
from bot.github.shapes import GraphQLShape, NodeList, NodePage


class _LabelNode(GraphQLShape, frozen=True):
    """One of the repository."""

    name: str


class _LabelsRepository(GraphQLShape, frozen=True):
    """The repository around them."""

    labels: NodeList[_LabelNode] | None


class _LabelsData(GraphQLShape, frozen=True):
    """The answer to labels.graphql."""

    repository: _LabelsRepository


class _NumberNode(GraphQLShape, frozen=True):
    """Something of which only the number matters."""

    number: int


class _LabelledData(GraphQLShape, frozen=True):
    """The answer to `documents.labelled`: a page of the issues that wear each word."""

    repository: dict[str, NodePage[_NumberNode]]


def labels(calls: ApiClient, repo: str, word: str) -> list[str]:
    """The labels whose names or descriptions hold a word, a hundred at most, as they are spelled.

    Letters do not count in what is looked for, unlike in lists of issues.
    """
    said = calls.graphql(repo, "labels", _LabelsData, {"word": word})
    found = said.repository.labels if said else None
    return [label.name for label in found.nodes] if found else []


def labelled_issues(calls: ApiClient, repo: str, words: Iterable[str]) -> set[int]:
    """The numbers of all open issues that wear one of the labels, or are assigned to `@login`."""
    numbers: set[int] = set()
    waiting: dict[str, str | None] = dict.fromkeys(words)
    for _ in range(PAGES):
        data = calls.graphql(repo, "labelled", _LabelledData, {}, labelled_query(waiting))
        if data is None:
            break
        pages = {word: data.repository[f"l{at}"] for at, word in enumerate(waiting)}
        numbers |= {issue.number for page in pages.values() for issue in page.nodes}
        infos = {word: page.page_info for word, page in pages.items()}
        waiting = {word: one.end_cursor for word, one in infos.items() if one.has_next_page}
        if not waiting:
            return numbers
    raise TryLater(f"The labelled issues of {repo} could not be listed whole.")
