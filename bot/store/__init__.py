"""The store: everything Mergewright remembers, in one SQLite file."""

from bot.store.configurations import Configuration
from bot.store.errors import (
    BadRow,
    Fenced,
    StoreBusy,
    StoreClosed,
    StoreFailure,
    StoreFull,
    StoreUnusable,
)
from bot.store.freezes import Freeze
from bot.store.history import BOT
from bot.store.incidents import Incident
from bot.store.judgements import Kept
from bot.store.lease import this_process
from bot.store.outsiders import Outsider
from bot.store.places import KnownRepository
from bot.store.retention import Tenant
from bot.store.store import Store
from bot.store.usage import GROUPS
from bot.store.values import (
    RIGHTS,
    Accepted,
    Delivery,
    Due,
    DueRefresh,
    HistoryRow,
    Judgement,
    Kind,
    Ledger,
    Live,
    LoadedSession,
    NewCommand,
    NewSession,
    Observed,
    Ordered,
    Queued,
    Recorded,
    RefreshRequest,
    Session,
    Used,
)

__all__ = [
    "BOT",
    "GROUPS",
    "RIGHTS",
    "Accepted",
    "BadRow",
    "Configuration",
    "Delivery",
    "Due",
    "DueRefresh",
    "Fenced",
    "Freeze",
    "HistoryRow",
    "Incident",
    "Judgement",
    "Kept",
    "Kind",
    "KnownRepository",
    "Ledger",
    "Live",
    "LoadedSession",
    "NewCommand",
    "NewSession",
    "Observed",
    "Ordered",
    "Outsider",
    "Queued",
    "Recorded",
    "RefreshRequest",
    "Session",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreFailure",
    "StoreFull",
    "StoreUnusable",
    "Tenant",
    "Used",
    "this_process",
]
