"""The store: everything Mergewright remembers, in one SQLite file."""

from bot.store.commands import Outsider
from bot.store.errors import (
    CorruptRow,
    Fenced,
    StoreBusy,
    StoreClosed,
    StoreFailure,
    StoreFull,
    StoreUnusable,
)
from bot.store.history import BOT
from bot.store.incidents import Freeze, Incident
from bot.store.lease import this_process
from bot.store.repositories import Configuration, RepositoryFile, RepositoryRecord
from bot.store.retention import ResourceOwner
from bot.store.store import Store
from bot.store.usage import GROUPS
from bot.store.values import (
    RIGHTS,
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
    Session,
    SessionDecision,
    UsageTotal,
)

__all__ = [
    "BOT",
    "GROUPS",
    "RIGHTS",
    "AgentRecord",
    "AwaitedReceipt",
    "Configuration",
    "CorruptRow",
    "DecisionRecord",
    "Delivery",
    "DeliveryOutcome",
    "DueAction",
    "DueRefresh",
    "Fenced",
    "Freeze",
    "HistoryKind",
    "HistoryRow",
    "Incident",
    "LiveSession",
    "LoadedSession",
    "NewCommand",
    "NewSession",
    "Observation",
    "OutboxEntry",
    "Outsider",
    "QueuedSession",
    "Receipt",
    "RefreshRequest",
    "ReplayableDecision",
    "RepositoryFile",
    "RepositoryRecord",
    "ResourceOwner",
    "Session",
    "SessionDecision",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreFailure",
    "StoreFull",
    "StoreUnusable",
    "UsageTotal",
    "this_process",
]
