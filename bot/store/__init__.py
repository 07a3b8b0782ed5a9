"""The store: the database of the bot, one SQLite file."""

import sqlite3
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.store.commands import CommandsTable, Outsider, OutsidersTable, requested_by
from bot.store.database import DatabaseFile, Writer
from bot.store.decisions import DecisionsTable, FactsReader
from bot.store.deliveries import (
    DeliveriesTable,
    DeliveryEffect,
    DeliveryQuery,
    DeliveryRecord,
    Ignored,
)
from bot.store.errors import (
    CorruptRow,
    Fenced,
    SessionChanged,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreFailure,
    StoreFull,
    StoreUnusable,
)
from bot.store.expiry import DatedKind, ExpiryTable
from bot.store.history import BOT, HistoryTable
from bot.store.incidents import Freeze, FreezesTable, Incident, IncidentsTable
from bot.store.lease import CLEANUP, LeaseTable, may_run, runs_here, this_process
from bot.store.notifications import (
    DueNotification,
    EndedSession,
    NewNotification,
    NotificationEvent,
    NotificationsTable,
    RaisedNotification,
    WaitingSession,
)
from bot.store.observations import ObservationsTable
from bot.store.opening import (
    check_version,
    check_whole,
    copy_database,
    open_second_writer,
    open_writer,
)
from bot.store.outbox import OutboxTable
from bot.store.refreshes import CursorsTable, RefreshesTable
from bot.store.refused import Destination, RefusedHost, RefusedTable
from bot.store.repositories import (
    Configuration,
    ConfigurationsTable,
    FetchedFile,
    InstalledProject,
    InstalledTable,
    RepositoriesTable,
    RepositoryRecord,
)
from bot.store.rows import utc_now
from bot.store.session_list import (
    CURSOR,
    SessionListTable,
    SessionPage,
    SessionPlace,
    SessionQuery,
    SessionScope,
    SessionSort,
)
from bot.store.sessions import SESSION_OPENED, MetadataTable, SessionsTable
from bot.store.sign_ins import (
    NewToken,
    PersonalToken,
    PersonalTokensTable,
    SignedIn,
    SignInsTable,
    TokenScope,
)
from bot.store.slots import AgentEnd, AgentsTable, SlotsTable
from bot.store.statistics import Backlog, StatisticsTable
from bot.store.usage import (
    STEP_SECONDS,
    USAGE_GROUPS,
    UsageFilter,
    UsageRow,
    UsageStep,
    UsageTable,
    UsageTotal,
)
from bot.store.values import (
    ACCESS,
    AgentRecord,
    AwaitedReceipt,
    DecisionRecord,
    Delivery,
    DeliveryOutcome,
    DueAction,
    DueRefresh,
    FailedDelivery,
    HistoryKind,
    HistoryRow,
    InheritedAction,
    LiveSession,
    LoadedSession,
    NewCommand,
    NewSession,
    Observation,
    OutboxEntry,
    ProcessedDelivery,
    QueuedSession,
    Receipt,
    RefreshRequest,
    ReplayableDecision,
    ResourceOwner,
    Session,
    SessionDecision,
    SessionEvent,
)


class Store:
    """The bot's database, with an attribute for each kind of data, such as `sessions`. Thread-safe.

    One thread writes, and commits pending writes together. Reads run in parallel and see committed
    data only.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], datetime] = utc_now,
        redact: Callable[[Any], Any] = lambda value: value,
        refuse_new: str = "",
    ) -> None:
        """Open the file for the bot, as `open_writer` does: create it, or update an older schema.

        `redact` masks secrets in texts and observations before they are written. `refuse_new` is
        the reason why no new database may be created; empty if one may. With a reason, a missing or
        empty database raises `StoreUnusable`, whose message ends with the reason.

        Raises `StoreFailure`, such as `StoreUnusable` or `StoreDamaged`; the message names the
        fault and the remedy.
        """
        writer = Writer(lambda: open_writer(path, redact, refuse_new), path)
        self._use(DatabaseFile(path, writer, clock, redact))

    @classmethod
    def reading(cls, path: Path) -> "Store":
        """Open the file for reading only, whether or not a bot is running.

        Raises `StoreUnusable` if the file is missing or has the schema of another version.
        """
        store = cls.__new__(cls)
        store._use(DatabaseFile(path, None, utc_now))
        store._check_version()
        return store

    @classmethod
    def beside(cls, path: Path, redact: Callable[[str], str]) -> "Store":
        """Open the file for small writes by the command line, whether or not a bot is running.

        `redact` masks secrets in texts. Raises `StoreUnusable` if the file is missing or has the
        schema of another version.
        """
        store = cls.reading(path)
        store.db.writer = Writer(lambda: open_second_writer(path, redact), path)
        return store

    def _use(self, db: DatabaseFile) -> None:
        self.db = db
        self.path = db.path
        self.clock = db.clock
        self.agents = AgentsTable(db)
        self.commands = CommandsTable(db)
        self.configurations = ConfigurationsTable(db)
        self.cursors = CursorsTable(db)
        self.decisions = DecisionsTable(db)
        self.deliveries = DeliveriesTable(db)
        self.expiry = ExpiryTable(db)
        self.facts = FactsReader(db)
        self.freezes = FreezesTable(db)
        self.history = HistoryTable(db)
        self.incidents = IncidentsTable(db)
        self.installed = InstalledTable(db)
        self.lease = LeaseTable(db)
        self.metadata = MetadataTable(db)
        self.notifications = NotificationsTable(db)
        self.observations = ObservationsTable(db)
        self.outbox = OutboxTable(db)
        self.outsiders = OutsidersTable(db)
        self.personal_tokens = PersonalTokensTable(db)
        self.refreshes = RefreshesTable(db)
        self.refused = RefusedTable(db)
        self.repositories = RepositoriesTable(db)
        self.session_list = SessionListTable(db)
        self.sessions = SessionsTable(db)
        self.sign_ins = SignInsTable(db)
        self.slots = SlotsTable(db)
        self.statistics = StatisticsTable(db)
        self.usage = UsageTable(db)

    @property
    def on_change(self) -> list[Callable[[str], None]]:
        """Listeners, called with a session's id once a change through this object is on disk."""
        return self.db.on_change

    @property
    def on_damage(self) -> list[Callable[[], None]]:
        """Listeners, called once when a read or a write finds the file damaged."""
        return self.db.on_damage

    @property
    def damage(self) -> str:
        """The damage that a read or a write found in the file, with the remedy, or ""."""
        return self.db.damage

    @property
    def engine(self) -> str:
        """The name and version of the database engine, e.g. `SQLite 3.46.1`."""
        return f"SQLite {sqlite3.sqlite_version}"

    def writable(self) -> bool:
        """Whether this bot can write to the database now; may make a small test write."""
        return self.db.writable()

    def copy_to(self, target: Path) -> None:
        """Copy the database into the file `target`, which is replaced.

        Raises `StoreFailure` or `OSError`.
        """
        with self.db.read() as connection:
            copy_database(connection, target)

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
