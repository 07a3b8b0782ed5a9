"""The store: everything Mergewright remembers, in one SQLite file."""

from bot.store.commands import Outsider, OutsidersTable
from bot.store.decisions import FactsReader
from bot.store.deliveries import DeliveriesTable
from bot.store.errors import (
    CorruptRow,
    Fenced,
    SessionChanged,
    StoreBusy,
    StoreClosed,
    StoreFailure,
    StoreFull,
    StoreUnusable,
)
from bot.store.history import BOT
from bot.store.incidents import Freeze, Incident, IncidentsTable
from bot.store.lease import LeaseTable, this_process
from bot.store.observations import ObservationsTable
from bot.store.outbox import OutboxTable
from bot.store.refreshes import CursorsTable, RefreshesTable
from bot.store.repositories import (
    Configuration,
    ConfigurationsTable,
    FetchedFile,
    RepositoriesTable,
    RepositoryRecord,
)
from bot.store.sessions import SessionsTable
from bot.store.store import Store
from bot.store.usage import USAGE_GROUPS, UsageTable
from bot.store.values import (
    ACCESS,
    AgentRecord,
    AwaitedReceipt,
    DecisionRecord,
    Delivery,
    DeliveryOutcome,
    DueAction,
    DueRefresh,
    HistoryKind,
    HistoryRow,
    LiveSession,
    LoadedSession,
    NewCommand,
    NewSession,
    Observation,
    OutboxEntry,
    QueuedSession,
    Receipt,
    RefreshRequest,
    ReplayableDecision,
    ResourceOwner,
    Session,
    SessionDecision,
    UsageTotal,
)
