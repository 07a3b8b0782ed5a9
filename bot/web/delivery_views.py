"""Reads webhook deliveries for pages and the API. Raises HTTP errors for missing deliveries."""

import logging
from copy import copy

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
from bot.web.reach import Reach, refused
from config.settings import Settings
from lifecycle.model.roles import Role

_log = logging.getLogger(__name__)


class DeliveryViews:
    """Reads deliveries, tries them without any effect, and orders retries of failed deliveries.

    Visitors who may not see all projects see the deliveries that name a repository of their
    projects.
    """

    reach: Reach  #: Of the visitor.

    def __init__(self, store: Store, settings: Settings, inbox: Inbox) -> None:
        self._store = store
        self._settings = settings
        self._inbox = inbox

    def seen_by(self, reach: Reach) -> "DeliveryViews":
        """Return views that are limited to the deliveries that a visitor may see."""
        theirs = copy(self)
        theirs.reach = reach
        return theirs

    def page(self, query: DeliveryQuery, project: str = "") -> tuple[list[DeliveryEntry], str]:
        """Return a page of deliveries, and the next page's cursor, which is empty on the last page.

        `project` selects the deliveries that name its repository; if empty, all are selected.
        """
        known = self._settings.projects.get(project)
        seen = self._seen()
        among = replace(query, repository=known.repository if known else project, repositories=seen)
        records, cursor = self._store.deliveries.page(among)
        return delivery_entries(self._store, [_within(one, seen) for one in records]), cursor

    def detail(self, id: str) -> DeliveryDetail:
        """Return a delivery with what happened after it, or raise 404."""
        seen = self._seen()
        return delivery_detail(self._store, _within(self._record(id), seen))

    def dry_run(self, id: str) -> DryRun:
        """Return what a delivery would cause now, or raise 404.

        Raises 403 unless the visitor may see all projects, because the delivery may concern other
        projects than the one it names.
        """
        if not self.reach.everywhere():
            raise refused(Role.READ, "the repositories of all projects")
        record, delivery = self._record(id), self._store.deliveries.get(id)
        if delivery is None:
            raise _missing(id)
        return dry_run(self._store, self._inbox, delivery, record.repository)

    def retry(self, id: str, by: str) -> bool:
        """Put a failed delivery back into the inbox; return False if the delivery has not failed.

        `by` is the person who asks for this. The name is logged, because a delivery may concern no
        session. Raises 404.
        """
        self._record(id)
        retried = self._store.deliveries.retry([id]) == 1
        if retried:
            with log_fields(delivery=id):
                _log.info("delivery %s is processed again, as %s asked", id, by)
        return retried

    def _seen(self) -> tuple[str, ...] | None:
        """Return the repositories whose deliveries the visitor sees.

        Returns None if the visitor sees all deliveries, including those that name no repository.
        """
        return None if self.reach.everywhere() else self.reach.repositories()

    def _record(self, id: str) -> DeliveryRecord:
        record, seen = self._store.deliveries.record(id), self._seen()
        if record is None or (seen is not None and record.repository not in seen):
            raise _missing(id)
        return record


def _within(record: DeliveryRecord, seen: tuple[str, ...] | None) -> DeliveryRecord:
    """Leave out effects outside of the repositories `seen`. If that is None, keep all effects."""
    if seen is None:
        return record
    effects = tuple(one for one in record.effects if one.repository in seen)
    return replace(record, effects=effects)


def _missing(id: str) -> NotFoundException:
    remedy = (
        "It may have been deleted after `retention.transient-days`. To get it again, redeliver it"
        " in the webhook's settings at GitHub, under Recent Deliveries."
    )
    return NotFoundException(f"No delivery {id[:100]}.", extra={"remedy": remedy})
