"""Runs retention for one bot's data while the test's clock advances by days."""

from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from bot.act.runs import release
from bot.archive.retention import Item, Retention, Thing
from bot.store import Observation
from config.tables import RetentionSettings as Days
from lifecycle.model.policy import Policy
from tests.harness.site import Site

DAYS = Days(transient_days=7, durable_days=30, preserved_days=20)
DAY = 86_400.0


class Keeper:
    """Runs retention on the data of a `Site`. Releases workspaces itself, because no bot runs."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.clock = site.scenario.clock
        self.policy = Policy()
        self.clock.now = datetime.now(UTC)  # Git has its own clock.
        site.paths.data.mkdir()
        self.days = DAYS

    @property
    def retention(self) -> Retention:
        site = self.site
        return Retention(
            *(site.scenario.store, site.locations, site.archive, self.days),
            *(lambda _: self.policy, self.clock),
            lambda tenant: release(site.locations, site.archive, site.session, site.session.run),
        )

    def planned(self, thing: Thing) -> list[Item]:
        return [item for item in self.retention.plan() if item.thing is thing]

    def cleans(self, *, orphans: bool = False) -> dict[Thing, list[str]]:
        """The removed data, by kind."""
        went: dict[Thing, list[str]] = {}
        for item in self.retention.apply(orphans=orphans):
            assert item.goes, item
            went.setdefault(item.thing, []).append(item.name)
        return went

    def a_session_ends(self) -> None:
        """An ended session with output, a home, a commit and an uncommitted file."""
        self.site.starts()
        self.log.write_text("it worked\n" * 1000)
        self.site.commits("a")
        (self.site.workspace.path / "b").write_text("not committed")
        self.site.ends()

    def issue_is_closed(self) -> None:
        store, name = self.site.scenario.store, self.site.id
        closed = replace(self.site.session.issue, open=False)
        store.observations.record([Observation(session=name, issue=closed)], self.clock())
        (loaded,) = store.facts.load([name])
        settled = replace(loaded.before, recheck_at=None)
        store.decisions.record([(loaded, settled)], self.clock())[0].result()

    @property
    def log(self) -> Path:
        return self.site.paths.run(self.site.id, 1) / "output.log"

    @property
    def copies(self) -> Path:
        return self.site.paths.archive / self.site.id
