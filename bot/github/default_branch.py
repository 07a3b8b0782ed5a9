"""Reads files of a repository's default branch."""

from collections.abc import Mapping

from msgspec import Struct

from bot.github.api_client import ApiClient
from bot.github.shapes import AtObject, BranchTip, GraphQLShape


class BranchFile(Struct, frozen=True, kw_only=True):
    """A file of the default branch, and the branch's head."""

    branch: str  #: The default branch; empty for a repository without commits.
    head: str = ""
    blob: str = ""  #: The id of its content; empty if there is no such file.
    text: str | None = ""  #: None for a binary file.


class Blob(GraphQLShape, frozen=True):
    """A file's content."""

    oid: str = ""
    text: str | None = None


class DefaultBranch(BranchTip, frozen=True):
    name: str


class FileAtHead(AtObject[Blob], frozen=True):
    """default_branch_file.graphql"""

    default_branch_ref: DefaultBranch | None


class TreeEntry(GraphQLShape, frozen=True):
    name: str
    object: Blob | None = None


class Tree(GraphQLShape, frozen=True):
    """workflows.graphql"""

    entries: tuple[TreeEntry, ...] = ()


class DefaultBranchFiles:
    """Reads files of default branches. Methods raise `TryLater` or `Refused`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def get(self, repo: str, path: str) -> BranchFile:
        """Read one file."""
        found = self._api.query(repo, "default_branch_file", FileAtHead, {"file": f"HEAD:{path}"})
        if found is None or found.default_branch_ref is None:
            return BranchFile(branch="")
        branch, file = found.default_branch_ref, found.object or Blob()
        return BranchFile(
            branch=branch.name,
            head=branch.target.oid if branch.target else "",
            blob=file.oid,
            text=file.text if file.oid else "",
        )

    def workflows(self, repo: str) -> Mapping[str, str]:
        """The text of each GitHub Actions workflow, by its path."""
        found = self._api.query(repo, "workflows", AtObject[Tree])
        folder = found.object if found else None
        return {
            f".github/workflows/{entry.name}": entry.object.text or ""
            for entry in (folder.entries if folder else ())
            if entry.object is not None and entry.name.endswith((".yml", ".yaml"))
        }
