"""The store: everything Mergewright remembers, in one SQLite file."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.store.agents import Agents
from bot.store.answers import Answers
from bot.store.commands import Commands
from bot.store.configurations import Configurations
from bot.store.deliveries import Deliveries
from bot.store.errors import StoreFailure
from bot.store.freezes import Freezes
from bot.store.history import History
from bot.store.incidents import Incidents
from bot.store.judgements import Judgements
from bot.store.lease import Lease
from bot.store.metadata import Metadata
from bot.store.observe import Observing
from bot.store.opening import check_version, open_guest, open_writer
from bot.store.outbox import Outbox
from bot.store.outsiders import Outsiders
from bot.store.places import Places
from bot.store.reconciling import Reconciling
from bot.store.refreshes import Refreshes
from bot.store.retention import Retaining
from bot.store.rows import utc_now
from bot.store.sessions import Sessions
from bot.store.slots import Slots
from bot.store.spent import Spent
from bot.store.writer import Writer


class Store(
    Deliveries,
    Refreshes,
    Commands,
    Sessions,
    Slots,
    Agents,
    Observing,
    Reconciling,
    Outbox,
    History,
    Judgements,
    Freezes,
    Metadata,
    Incidents,
    Outsiders,
    Places,
    Configurations,
    Retaining,
    Spent,
    Answers,
    Lease,
):
    """Everything Mergewright remembers. May be used from any thread.

    One thread writes, and commits together whatever waits; reads go on beside it and see what
    was committed. Every table has its methods in a file of its own.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], datetime] = utc_now,
        redact: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """Open the file, making it and bringing its tables up to date where needed.

        `redact` takes secrets out of texts and of what was seen. Raises `StoreUnusable`, which
        says what is wrong with the file and what to do.
        """
        super().__init__(path, Writer(open_writer(path, redact), path), clock, redact)

    @classmethod
    def reading(cls, path: Path) -> "Store":
        """Open the file for reading only, beside a running bot or without one.

        Raises `StoreUnusable` where it is missing or of another version.
        """
        store = cls.__new__(cls)
        super(Store, store).__init__(path, None, utc_now)
        store._check_version()
        return store

    @classmethod
    def beside(cls, path: Path, redact: Callable[[str], str]) -> "Store":
        """Open the file for what a person writes, beside a running bot or without one.

        `redact` takes secrets out of texts. Raises `StoreUnusable` where it is missing or of
        another version.
        """
        store = cls.reading(path)
        store._writer = Writer(open_guest(path, redact), path)
        return store

    def _check_version(self) -> None:
        try:
            with self._read() as connection:
                check_version(connection, self.path)
        except StoreFailure:
            self.close()
            raise
