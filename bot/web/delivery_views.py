"""Reads webhook deliveries for pages and the API; raises HTTP errors for missing ones."""

import logging

from litestar.exceptions import NotFoundException
from msgspec.structs import replace

from bot.intake.dry_run import DryRun, dry_run
from bot.intake.inbox import Inbox
from bot.show.deliveries import (
    DeliveryDetail,
    DeliveryEntry,
    delivery_detail,
    delivery_entries,
)
from bot.store import DeliveryQuery, DeliveryRecord, Store
from bot.system.log import log_fields
from config.settings import Settings

_log = logging.getLogger(__name__)


class DeliveryViews:
    """Reads deliveries, does dry runs of them, and has failed ones processed again."""

    def __init__(self, store: Store, settings: Settings, inbox: Inbox) -> None:
        self._store = store
        self._settings = settings
        self._inbox = inbox

    def page(self, query: DeliveryQuery, project: str = "") -> tuple[list[DeliveryEntry], str]:
        """Return a page of deliveries and the cursor for the next page; empty: there are no more.

        `project` selects the deliveries that name its repository; empty: all.
        """
        known = self._settings.projects.get(project)
        among = replace(query, repository=known.repository if known else project)
        records, cursor = self._store.deliveries.page(among)
        return delivery_entries(self._store, records), cursor

    def detail(self, id: str) -> DeliveryDetail:
        """Return a delivery with what happened next, or raise 404."""
        return delivery_detail(self._store, self._record(id))

    def dry_run(self, id: str) -> DryRun:
        """Return what a delivery would cause now, or raise 404."""
        record, delivery = self._record(id), self._store.deliveries.get(id)
        if delivery is None:
            raise _missing(id)
        return dry_run(self._store, self._inbox, delivery, record.repository)

    def retry(self, id: str, by: str) -> bool:
        """Process a failed delivery again; False if it has not failed. Raises 404.

        `by` is who asked for it, for the log: a delivery may concern no session.
        """
        self._record(id)
        retried = self._store.deliveries.retry([id]) == 1
        if retried:
            with log_fields(delivery=id):
                _log.info("delivery %s is processed again, as %s asked", id, by)
        return retried

    def _record(self, id: str) -> DeliveryRecord:
        record = self._store.deliveries.record(id)
        if record is None:
            raise _missing(id)
        return record


def _missing(id: str) -> NotFoundException:
    remedy = "Deliveries are kept for `retention.transient-days`. GitHub can send one again."
    return NotFoundException(f"No delivery {id[:100]}.", extra={"remedy": remedy})
