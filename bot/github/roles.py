"""Reads the role of a person in a repository from GitHub."""

from urllib.parse import quote

from msgspec import Struct

from bot.github import rest
from bot.github.api_client import ApiClient
from bot.github.errors import IgnoreRefused
from lifecycle.model.roles import Role

_LEVELS = {"admin": Role.ADMIN, "maintain": Role.WRITE, "write": Role.WRITE, "read": Role.READ}


class RepositoryRole(Struct, frozen=True):
    """A person's role in a repository."""

    role: Role
    user: int = 0  #: GitHub's ID of the account, which another account never gets; if 0, unknown.


class RoleReader:
    """Reads roles. Its methods raise `TryLater` or `Refused`."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def of(self, repository: str, login: str) -> RepositoryRole:
        """Return an account's role. An unknown account has no role. Not cached.

        Everybody can read a public repository, so only collaborators have the role of a reader:
        people who were invited, and members of the organization whose teams or base permission
        allow it.

        https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
        """
        path = f"collaborators/{quote(login, safe='')}"
        with IgnoreRefused(404):
            found = self._api.get(repository, f"{path}/permission", rest.PermissionResponse)
            role = _LEVELS.get(found.permission, Role.NONE)
            if role is Role.READ and found.user.permissions.triage:
                role = Role.TRIAGE
            if role is Role.READ and not self._is_collaborator(repository, path):
                role = Role.NONE
            return RepositoryRole(role, found.user.id)
        return RepositoryRole(Role.NONE)

    def _is_collaborator(self, repository: str, path: str) -> bool:
        """Whether the account at `path`, such as `collaborators/alice`, is a collaborator.

        https://docs.github.com/en/rest/collaborators/collaborators#check-if-a-user-is-a-repository-collaborator
        """
        with IgnoreRefused(404):
            self._api.do(repository, "GET", path)
            return True
        return False
