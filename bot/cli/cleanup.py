"""Implements `mergewright cleanup`: deletes expired data, whether a bot runs or not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from threading import Event, Thread

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bot.act.runs import release
from bot.archive.archiver import Archive
from bot.archive.retention import Busy, Item, Retention
from bot.cli import context
from bot.cli.screens import table
from bot.store import CLEANUP, ResourceOwner, Store, StoreFailure, this_process
from bot.system.clock import utc_now
from bot.system.isolation import isolation_of
from bot.system.locations import Locations, Paths, programs
from bot.system.redaction import Redaction
from config.settings import Settings
from lifecycle.model.text import plain

#: If this process hangs, a bot can take the lease on the database after this time.
_LEASE_SECONDS = 60.0


@contextmanager
def retention(settings: Settings, redact: Redaction, *, writing: bool) -> Iterator[Retention]:
    """Yield the `Retention` that finds and deletes expired data in the server's data folder.

    With `writing` and no bot running, this process takes the lease on the database, so that no bot
    starts meanwhile. It then releases workspaces itself, except for projects with `teardown`
    commands.
    """
    with context.store(settings, redact if writing else None) as store:
        paths, base = Paths(settings.data), settings.github.git_base
        runtime, adapters = context.runtime(settings), programs(settings)
        isolation = partial(isolation_of, settings)
        locations = Locations(
            paths, settings.projects, base, lambda _: "", runtime, adapters, isolation
        )
        archive = Archive(locations, redact)

        def give_back(tenant: ResourceOwner) -> None:
            if lost.is_set():
                raise Busy("a bot has started on this database; it removes workspaces itself")
            session = store.sessions.get(tenant.id)
            if session is None:
                return
            if settings.projects[session.project].teardown:  # Needs the bot's proxy.
                store.sessions.wake(tenant.id)
                return
            release(locations, archive, session, session.run)

        lost, policies = Event(), context.policies(settings, store)
        with _leading(store, lost) if writing else nullcontext(False) as leads:
            yield Retention(
                *(store, locations, archive, settings.retention, policies.of, utc_now),
                release=give_back if leads else None,
            )


@contextmanager
def _leading(store: Store, lost: Event) -> Iterator[bool]:
    """Hold the lease on the database during the block, if it was free; yield whether it was.

    Sets `lost` if a bot takes the lease nevertheless, for example while this process is suspended.
    """
    owner, over = f"{this_process()}{CLEANUP}", Event()

    def held() -> bool:
        return store.lease.acquire(owner, utc_now(), _LEASE_SECONDS) is not None

    def renew() -> None:
        while not over.wait(_LEASE_SECONDS / 6):
            with suppress(StoreFailure):  # The next renewal may succeed.
                if not held():
                    lost.set()
                    return

    if not held():
        yield False
        return
    renewal = Thread(target=renew, name="lease", daemon=True)
    renewal.start()
    try:
        yield True
    finally:
        over.set()
        renewal.join()
        store.lease.release(owner)


def screen(items: Sequence[Item], *, done: bool) -> RenderableType:
    """Return tables of what is deleted and what is kept. `done` is False for a dry run."""
    going, kept = [i for i in items if i.goes], [i for i in items if not i.goes]
    total = size(sum(item.bytes for item in going))
    verb = "deleted (some workspaces perhaps later, by the bot)" if done else "would be deleted"
    parts: list[RenderableType] = [Text(f"{len(going)} {verb}, {total}", "bold"), _table(going)]
    if kept:
        heading = "could not be deleted" if done else "kept"
        parts += [Text(f"\n{len(kept)} {heading}", "bold"), _table(kept)]
    return Group(*parts)


def size(count: int) -> str:
    """Return a number of bytes as text with few digits and a unit."""
    number = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"


def _table(items: Sequence[Item]) -> Table:
    rows = table()
    for item in items:
        name, why = (Text(plain(text), overflow="fold") for text in (item.name, item.why))
        bytes_ = Text(size(item.bytes), justify="right", no_wrap=True)
        rows.add_row(Text(item.thing, "dim"), name, bytes_, why)
    return rows
