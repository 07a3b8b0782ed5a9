"""The store: everything Mergewright remembers, in one SQLite file."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.store.agents import Agents
from bot.store.commands import Commands
from bot.store.configurations import Configurations
from bot.store.database import DatabaseFile
from bot.store.decisions import Decisions
from bot.store.deliveries import Cursors, Deliveries
from bot.store.errors import StoreFailure
from bot.store.facts import SessionFacts
from bot.store.freezes import Freezes
from bot.store.history import History
from bot.store.incidents import Incidents
from bot.store.judgements import Judgements
from bot.store.lease import Lease
from bot.store.metadata import Metadata
from bot.store.observe import Observations
from bot.store.opening import check_version, open_guest, open_writer
from bot.store.outbox import Outbox
from bot.store.outsiders import Outsiders
from bot.store.places import Repositories
from bot.store.refreshes import Refreshes
from bot.store.retention import Retention
from bot.store.rows import utc_now
from bot.store.sessions import Sessions
from bot.store.slots import Slots
from bot.store.usage import UsageTable
from bot.store.writer import Writer


class Store:
    """Everything Mergewright remembers, a table each. May be used from any thread.

    One thread writes, and commits all pending writes together; reads run beside it and see
    what was committed.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], datetime] = utc_now,
        redact: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        """Open the file for the bot, and create it with its tables if it is missing.

        `redact` takes secrets out of texts and observations before they are written.
        Raises `StoreUnusable`, which says what is wrong with the file and what to do.
        """
        self._use(DatabaseFile(path, Writer(open_writer(path, redact), path), clock, redact))

    @classmethod
    def reading(cls, path: Path) -> "Store":
        """Open the file for reading only, beside a running bot or without one.

        Raises `StoreUnusable` if it is missing or of another version.
        """
        store = cls.__new__(cls)
        store._use(DatabaseFile(path, None, utc_now))
        store._check_version()
        return store

    @classmethod
    def beside(cls, path: Path, redact: Callable[[str], str]) -> "Store":
        """Open the file for a person's small writes, beside a running bot or without one.

        `redact` takes secrets out of texts. Raises `StoreUnusable` if the file is missing or of
        another version.
        """
        store = cls.reading(path)
        store.db.writer = Writer(open_guest(path, redact), path)
        return store

    def _use(self, db: DatabaseFile) -> None:
        self.db = db
        self.path = db.path
        self.clock = db.clock
        self.agents = Agents(db)
        self.commands = Commands(db)
        self.configurations = Configurations(db)
        self.cursors = Cursors(db)
        self.decisions = Decisions(db)
        self.deliveries = Deliveries(db)
        self.facts = SessionFacts(db)
        self.freezes = Freezes(db)
        self.history = History(db)
        self.incidents = Incidents(db)
        self.judgements = Judgements(db)
        self.lease = Lease(db)
        self.metadata = Metadata(db)
        self.observations = Observations(db)
        self.outbox = Outbox(db)
        self.outsiders = Outsiders(db)
        self.refreshes = Refreshes(db)
        self.repositories = Repositories(db)
        self.retention = Retention(db)
        self.sessions = Sessions(db)
        self.slots = Slots(db)
        self.usage = UsageTable(db)

    @property
    def on_change(self) -> list[Callable[[str], None]]:
        """Listeners: called with a session's id after a change of it is on disk."""
        return self.db.on_change

    def writable(self) -> bool:
        """Whether writes reach the disk now."""
        return self.db.writable()

    def close(self) -> None:
        """Finish the pending writes and close the file."""
        self.db.close()

    def _check_version(self) -> None:
        try:
            with self.db.read() as connection:
                check_version(connection, self.path)
        except StoreFailure:
            self.close()
            raise
