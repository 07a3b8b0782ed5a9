"""What repositories say of themselves: the file last seen, and the last one that could be used."""

from msgspec import Struct

from bot.store.database import StoreTable

CONFIGURATIONS = "SELECT repository, blob, good FROM configurations ORDER BY repository"
_KEEP = """INSERT INTO configurations (repository, blob, good) VALUES (?, ?, ?)
    ON CONFLICT (repository) DO UPDATE SET blob = excluded.blob, good = excluded.good"""


class Configuration(Struct, frozen=True, kw_only=True):
    """The file of one repository."""

    repository: str
    blob: str = ""  #: Git's name for the one last seen; empty: there was none.
    good: str = ""  #: The text of the last one that could be used.


class ConfigurationsTable(StoreTable):
    """The table of what repositories say."""

    def all(self) -> list[Configuration]:
        """All of them."""
        with self._db.read() as connection:
            return [
                Configuration(repository=row["repository"], blob=row["blob"], good=row["good"])
                for row in connection.execute(CONFIGURATIONS)
            ]

    def set(self, seen: Configuration) -> None:
        """Write down what a repository says now."""
        values = (seen.repository, seen.blob, seen.good)
        self._db.write(lambda connection: connection.execute(_KEEP, values))
