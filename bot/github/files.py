"""Files of a repository's default branch: what it says of itself, and what runs there."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from bot.github.calls import ApiClient
from bot.github.shapes import CommitNode, GraphQLShape


class BranchFile(Struct, frozen=True, kw_only=True):
    """A file as it stands on the default branch, with where that branch is."""

    branch: str  #: The default branch; empty: the repository has no commit.
    head: str = ""
    blob: str = ""  #: Git's name for what is in it; empty: there is no such file.
    text: str | None = ""  #: None: it is no text.


class _Blob(GraphQLShape, frozen=True):
    oid: str = ""
    text: str | None = None


class _Branch(GraphQLShape, frozen=True):
    name: str
    target: CommitNode | None


class _OneFile(GraphQLShape, frozen=True):
    default_branch_ref: _Branch | None
    object: _Blob | None


class _OneFileData(GraphQLShape, frozen=True):
    """The answer to configuration.graphql."""

    repository: _OneFile


class _Entry(GraphQLShape, frozen=True):
    name: str
    object: _Blob | None = None


class _Tree(GraphQLShape, frozen=True):
    entries: tuple[_Entry, ...] = ()


class _Folder(GraphQLShape, frozen=True):
    object: _Tree | None


class _FolderData(GraphQLShape, frozen=True):
    """The answer to workflows.graphql."""

    repository: _Folder


_NOWHERE: Final = BranchFile(branch="")


class DefaultBranchFiles:
    """Reading files of the default branch alone. Every method raises `TryLater` or `Refused`."""

    def __init__(self, calls: ApiClient) -> None:
        self._calls = calls

    def one(self, repo: str, path: str) -> BranchFile:
        """A file of the default branch."""
        asked = {"file": f"HEAD:{path}"}
        data = self._calls.graphql(repo, "configuration", _OneFileData, asked)
        found = data.repository if data else None
        if found is None or found.default_branch_ref is None:
            return _NOWHERE
        branch, file = found.default_branch_ref, found.object or _Blob()
        return BranchFile(
            branch=branch.name,
            head=branch.target.oid if branch.target else "",
            blob=file.oid,
            text=file.text if file.oid else "",
        )

    def workflows(self, repo: str) -> Mapping[str, str]:
        """The text of each workflow of GitHub Actions, by its path."""
        data = self._calls.graphql(repo, "workflows", _FolderData, {})
        folder = data.repository.object if data else None
        return {
            f".github/workflows/{entry.name}": entry.object.text or ""
            for entry in (folder.entries if folder else ())
            if entry.object is not None and entry.name.endswith((".yml", ".yaml"))
        }
