"""Reads parts of a repository: files of its default branch, labels, labelled issues, rules."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from bot.github.api_client import MAX_PAGES, ApiClient
from bot.github.errors import TryLater
from bot.github.graphql import labelled_issues as labelled_query
from bot.github.shapes import CommitNode, GraphQLShape, NodeList, NodePage


class BranchFile(Struct, frozen=True, kw_only=True):
    """A file of the default branch, and the branch's head."""

    branch: str  #: The default branch; empty for a repository without commits.
    head: str = ""
    blob: str = ""  #: The id of its content; empty if there is no such file.
    text: str | None = ""  #: None for a binary file.


class _Blob(GraphQLShape, frozen=True):
    oid: str = ""
    text: str | None = None


class _DefaultBranch(GraphQLShape, frozen=True):
    name: str
    target: CommitNode | None


class _FileRepository(GraphQLShape, frozen=True):
    default_branch_ref: _DefaultBranch | None
    object: _Blob | None


class _FileData(GraphQLShape, frozen=True):
    """default_branch_file.graphql"""

    repository: _FileRepository


class _TreeEntry(GraphQLShape, frozen=True):
    name: str
    object: _Blob | None = None


class _Tree(GraphQLShape, frozen=True):
    entries: tuple[_TreeEntry, ...] = ()


class _FolderRepository(GraphQLShape, frozen=True):
    object: _Tree | None


class _FolderData(GraphQLShape, frozen=True):
    """workflows.graphql"""

    repository: _FolderRepository


class _LabelNode(GraphQLShape, frozen=True):
    name: str


class _LabelsRepository(GraphQLShape, frozen=True):
    labels: NodeList[_LabelNode] | None


class _LabelsData(GraphQLShape, frozen=True):
    """labels.graphql"""

    repository: _LabelsRepository


class _NumberNode(GraphQLShape, frozen=True):
    number: int


class _LabelledData(GraphQLShape, frozen=True):
    """The data of `graphql.labelled_issues`."""

    repository: dict[str, NodePage[_NumberNode]]


class _RefUpdateRule(GraphQLShape, frozen=True):
    requires_signatures: bool


class _RulesetRule(GraphQLShape, frozen=True):
    type: str


class _ProtectedBranch(GraphQLShape, frozen=True):
    ref_update_rule: _RefUpdateRule | None
    rules: NodeList[_RulesetRule] | None


class _SignaturesRepository(GraphQLShape, frozen=True):
    ref: _ProtectedBranch | None


class _SignaturesData(GraphQLShape, frozen=True):
    """signatures.graphql"""

    repository: _SignaturesRepository


_NO_BRANCH: Final = BranchFile(branch="")


class DefaultBranchFiles:
    """Reads files of default branches. Methods raise `TryLater` or `Refused`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def get(self, repo: str, path: str) -> BranchFile:
        """Read one file."""
        data = self._api.graphql(repo, "default_branch_file", _FileData, {"file": f"HEAD:{path}"})
        found = data.repository if data else None
        if found is None or found.default_branch_ref is None:
            return _NO_BRANCH
        branch, file = found.default_branch_ref, found.object or _Blob()
        return BranchFile(
            branch=branch.name,
            head=branch.target.oid if branch.target else "",
            blob=file.oid,
            text=file.text if file.oid else "",
        )

    def workflows(self, repo: str) -> Mapping[str, str]:
        """The text of each GitHub Actions workflow, by its path."""
        data = self._api.graphql(repo, "workflows", _FolderData, {})
        folder = data.repository.object if data else None
        return {
            f".github/workflows/{entry.name}": entry.object.text or ""
            for entry in (folder.entries if folder else ())
            if entry.object is not None and entry.name.endswith((".yml", ".yaml"))
        }


def labels(api: ApiClient, repo: str, word: str) -> list[str]:
    """Up to a hundred labels whose name or description contains a word, ignoring case."""
    data = api.graphql(repo, "labels", _LabelsData, {"word": word})
    found = data.repository.labels if data else None
    return [label.name for label in found.nodes] if found else []


def labelled_issues(api: ApiClient, repo: str, words: Iterable[str]) -> set[int]:
    """The numbers of all open issues with one of these labels or assignees (`@login`)."""
    numbers: set[int] = set()
    waiting: dict[str, str | None] = dict.fromkeys(words)
    for _ in range(MAX_PAGES):
        data = api.graphql(repo, "labelled", _LabelledData, {}, labelled_query(waiting))
        if data is None:
            break
        pages = {word: data.repository[f"l{at}"] for at, word in enumerate(waiting)}
        numbers |= {issue.number for page in pages.values() for issue in page.nodes}
        infos = {word: page.page_info for word, page in pages.items()}
        waiting = {word: one.end_cursor for word, one in infos.items() if one.has_next_page}
        if not waiting:
            return numbers
    raise TryLater(f"The list of labelled issues of {repo} is incomplete.")


def requires_signatures(api: ApiClient, repo: str, branch: str) -> bool:
    """Whether branch protection or a ruleset requires signed commits."""
    variables = {"branch": f"refs/heads/{branch}"}
    data = api.graphql(repo, "signatures", _SignaturesData, variables)
    found = data.repository.ref if data else None
    if found is None:
        return False
    protected = found.ref_update_rule is not None and found.ref_update_rule.requires_signatures
    rules = found.rules.nodes if found.rules else ()
    return protected or any(rule.type == "REQUIRED_SIGNATURES" for rule in rules)
