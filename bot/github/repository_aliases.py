"""The current names of configured repositories, which may be renamed while the bot runs."""

from msgspec import Struct


class RepositoryIdentity(Struct, frozen=True, kw_only=True):
    """A repository's id, which never changes, and its current name."""

    id: int
    name: str  #: `owner/name`.
    archived: bool = False


class RepositoryAliases:
    """Identities by configured name. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, RepositoryIdentity] = {}

    def record(self, repository: str, identity: RepositoryIdentity) -> None:
        """Set the identity of a configured repository."""
        self._known[repository] = identity

    def get(self, repository: str) -> RepositoryIdentity | None:
        """The identity of a configured repository; None if it was not read yet."""
        return self._known.get(repository)

    def name(self, repository: str) -> str:
        """Return a repository's current name, or the configured name if it was not read yet."""
        known = self._known.get(repository)
        return known.name if known else repository
