"""Where repositories are today: their number stays, while names change under a running bot."""

from msgspec import Struct


class RepositoryIdentity(Struct, frozen=True, kw_only=True):
    """One repository, as GitHub has it."""

    id: int
    now: str  #: `owner/name` today.
    archived: bool = False


class RepositoryAliases:
    """Repositories by the name they are configured with. May be used from any thread."""

    def __init__(self) -> None:
        self._known: dict[str, RepositoryIdentity] = {}

    def record(self, repository: str, place: RepositoryIdentity) -> None:
        """From now on this is where a configured repository is."""
        self._known[repository] = place

    def of(self, repository: str) -> RepositoryIdentity | None:
        """What is known of it; None: nothing yet."""
        return self._known.get(repository)

    def now(self, repository: str) -> str:
        """Its name today, as far as that is known."""
        place = self._known.get(repository)
        return place.now if place else repository
