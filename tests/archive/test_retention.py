"""Tests of retention over real files and real git."""

import fcntl
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.act.runs import release
from bot.archive.retention import Busy, Item, Retention, Thing
from bot.store import Delivery
from config.settings import RetentionSettings as Days
from lifecycle.model.actions import CloseIssue
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from runtimes.base import Launch
from runtimes.workspaces.preparation import prepare
from tests.harness.site import Site

DAYS = Days(transient_days=7, durable_days=30, preserved_days=20)
DAY = 86_400.0


class Keeper:
    """Retention over one site without a running bot, which releases workspaces at once."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.clock = site.scenario.clock
        self.policy = Policy()
        self.clock.now = datetime.now(UTC)  # Git has its own clock.
        site.paths.data.mkdir()
        self.retention = Retention(
            *(
                site.scenario.store,
                site.locations,
                site.archive,
                DAYS,
                lambda _: self.policy,
                self.clock,
            ),
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

    @property
    def log(self) -> Path:
        return self.site.paths.run(self.site.id, 1) / "output.log"

    @property
    def copies(self) -> Path:
        return self.site.paths.archive / self.site.id


@pytest.fixture
def keeper(site: Site) -> Keeper:
    return Keeper(site)


def test_processed_webhooks_expire(keeper: Keeper) -> None:
    store, now = keeper.site.scenario.store, keeper.clock()
    for name in ("worked through", "waiting"):
        store.deliveries.add([Delivery(id=name, event="issues", at=now, body=b"{}")]).result()
    store.deliveries.mark_done("worked through", [], [])
    assert keeper.planned(Thing.DELIVERIES)[0].name == "0 webhooks"
    keeper.clock.passes(8 * DAY)
    assert keeper.planned(Thing.DELIVERIES) == [
        Item(
            thing=Thing.DELIVERIES,
            name="1 webhooks",
            goes=True,
            why="processed more than 7 days ago",
            bytes=2,
        )
    ]
    assert keeper.cleans() == {Thing.DELIVERIES: ["1 webhooks"]}
    assert [waiting.id for waiting in store.deliveries.waiting()] == ["waiting"]


def test_output_and_transcripts_expire_seven_days_after_the_end(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.clock.passes(6.9 * DAY)
    assert keeper.cleans() == {}
    assert (keeper.copies / "widgets-12_r1" / "output.log.gz").exists(), "it is packed at least"
    assert "ended 6.9 days ago, kept for 7" in keeper.planned(Thing.RUN)[0].why
    keeper.clock.passes(0.2 * DAY)
    assert keeper.cleans() == {Thing.RUN: ["widgets-12_r1"], Thing.ARCHIVE: ["widgets-12"]}
    assert not keeper.log.exists()
    assert not keeper.copies.exists()
    assert keeper.site.workspace.made
    assert keeper.cleans() == {}


def test_data_of_a_session_that_is_not_over_is_kept(keeper: Keeper) -> None:
    keeper.site.starts()
    keeper.log.write_text("it works\n")
    keeper.site.locations.mirror("widgets").refresh()
    (keeper.site.workspace.path / "b").write_text("not committed")
    keeper.site.locations.mirror("widgets").preserve(keeper.site.workspace, 1)
    keeper.clock.passes(999 * DAY)
    assert keeper.cleans(orphans=True) == {}
    kept = {item.thing: item.why for item in keeper.retention.plan()}
    for thing in (Thing.RUN, Thing.WORKSPACE, Thing.PRESERVED):
        assert kept[thing] == "its session is not over"


def test_data_of_an_ended_session_with_pending_actions_is_kept(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.site.scenario.orders(keeper.site.id, CloseIssue(key=parse("close_issue"), number=12))
    keeper.clock.passes(999 * DAY)
    assert keeper.cleans() == {}


def test_a_workspace_expires_after_fourteen_days_and_its_work_is_preserved(keeper: Keeper) -> None:
    keeper.a_session_ends()
    home = keeper.site.paths.home("widgets-12")
    (home / "notes").write_text("of the agent " * 20_000)
    keeper.clock.passes(13 * DAY)
    keeper.cleans()
    assert keeper.site.workspace.made
    assert home.exists()
    keeper.clock.passes(1 * DAY)
    (planned,) = (item for item in keeper.planned(Thing.WORKSPACE) if item.goes)
    assert planned.bytes > 260_000
    assert Thing.WORKSPACE in keeper.cleans()
    assert not keeper.site.workspace.place.exists()
    assert not home.exists()
    (kept,) = keeper.planned(Thing.PRESERVED)
    assert (kept.name, kept.goes) == ("widgets-12 run 1", False)


def test_preserved_work_expires_after_its_own_period(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.site.agents.release(keeper.site.session, 1)
    keeper.clock.passes(19.9 * DAY)
    assert Thing.PRESERVED not in keeper.cleans()
    keeper.clock.passes(0.2 * DAY)
    assert keeper.cleans() == {Thing.PRESERVED: ["widgets-12 run 1"]}
    assert keeper.site.locations.mirror("widgets").preserved() == []


def test_the_history_of_a_session_expires_last_and_the_session_stays_known(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.clock.passes(29 * DAY)
    keeper.cleans()
    assert keeper.site.scenario.store.history.of("widgets-12")
    keeper.clock.passes(2 * DAY)
    assert keeper.cleans() == {Thing.HISTORY: ["widgets-12"]}
    assert keeper.site.scenario.store.history.of("widgets-12") == []
    assert keeper.site.session.ended
    assert keeper.cleans() == {}


def test_a_session_restored_during_a_cleanup_keeps_its_data(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.clock.passes(8 * DAY)
    found = list(keeper.retention._found(orphans=True))
    keeper.site.scenario.orders(keeper.site.id, CloseIssue(key=parse("close_issue"), number=12))
    for one in found:
        one.remove()
    assert keeper.log.exists()


def test_beside_a_running_bot_the_bot_releases_the_workspace(keeper: Keeper) -> None:
    keeper.a_session_ends()
    store = keeper.site.scenario.store
    beside = Retention(
        store,
        keeper.site.locations,
        keeper.site.archive,
        DAYS,
        lambda _: keeper.policy,
        keeper.clock,
    )
    keeper.clock.passes(14 * DAY)
    assert store.sessions.due(keeper.clock()) == []
    beside.apply()
    assert store.sessions.due(keeper.clock()) == ["widgets-12"]
    assert keeper.site.workspace.made


# -- orphans ---------------------------------------------------------------------------------------


def leftovers(keeper: Keeper) -> None:
    """Data of an unknown session, and an interrupted removal."""
    paths = keeper.site.paths
    keeper.site.starts()
    other = keeper.site.worktree("widgets-99", "mergewright/99-x")
    prepare(keeper.site.locations.mirror("widgets"), other, "main")
    (other.path / "new").write_text("nobody's")
    for folder in (
        *(paths.run("widgets-99", 1), paths.home("widgets-99")),
        *(paths.archive / "widgets-99", paths.workspaces / ".widgets-98.gone"),
        paths.workspaces / "gadgets-1",
    ):
        folder.mkdir(parents=True)
    for name in ("widgets-99_r1", "stray"):
        launch = Launch(name=name, argv=("x",), cwd=paths.data, env={}, dir=paths.data)
        keeper.site.runtime.start(launch)


def test_orphans_are_listed_and_removed_only_on_request(
    keeper: Keeper,
) -> None:
    leftovers(keeper)
    assert keeper.cleans() == {}
    names = {item.name for item in keeper.retention.plan() if item.goes}
    assert keeper.cleans(orphans=True) == {
        Thing.RUN: ["widgets-99_home", "widgets-99_r1"],
        Thing.ARCHIVE: ["widgets-99"],
        Thing.WORKSPACE: [".widgets-98.gone", "widgets-99"],
        Thing.PROGRAM: ["stray", "widgets-99_r1"],
    }
    assert names == {
        *("widgets-99_home", "widgets-99_r1", "widgets-99", ".widgets-98.gone", "stray")
    }
    assert list(keeper.site.runtime.look()) == ["widgets-12_r1"]
    (kept,) = keeper.site.locations.mirror("widgets").preserved("widgets-99")
    assert kept.run == 0


def test_a_workspace_is_kept_as_long_as_its_projects_policy_says(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.policy = Policy(workspace_days=1)
    keeper.clock.passes(1 * DAY)
    assert Thing.WORKSPACE in keeper.cleans()


def test_a_workspace_is_kept_while_its_project_is_gone(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.clock.passes(14 * DAY)
    projects, keeper.site.locations.projects = keeper.site.locations.projects, {}
    assert Thing.WORKSPACE not in keeper.cleans()
    (item,) = keeper.planned(Thing.WORKSPACE)
    assert item.why == "widgets is no project any more, so its work cannot be preserved"
    keeper.site.locations.projects = projects
    assert Thing.WORKSPACE in keeper.cleans()


def test_an_orphaned_workspace_without_a_mirror_is_kept(keeper: Keeper) -> None:
    leftovers(keeper)
    (item,) = (item for item in keeper.planned(Thing.WORKSPACE) if item.name == "gadgets-1")
    assert not item.goes
    assert "no project has a mirror" in item.why
    keeper.cleans(orphans=True)
    assert (keeper.site.paths.workspaces / "gadgets-1").exists()


def test_a_program_that_outlives_its_session_is_ended(keeper: Keeper) -> None:
    keeper.a_session_ends()
    folder = keeper.log.parent
    launch = Launch(name="widgets-12_r2", argv=("x",), cwd=folder, env={}, dir=folder)
    keeper.site.runtime.start(launch)
    (item,) = keeper.planned(Thing.PROGRAM)
    assert (item.name, item.why) == ("widgets-12_r2", "its session is over")
    keeper.cleans(orphans=True)
    assert not keeper.site.runtime.look()


# -- concurrency and failures ----------------------------------------------------------------------


def test_concurrent_cleanups_are_refused(keeper: Keeper) -> None:
    with (keeper.site.paths.data / "retention.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="another cleanup is under way"):
            keeper.retention.apply()
    assert keeper.cleans() == {}


def test_a_failed_removal_is_reported_and_the_rest_removed(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.a_session_ends()
    keeper.clock.passes(8 * DAY)

    def refused(path: Path, *args: object, **given: object) -> None:
        if "_r1" in str(path):
            raise OSError("read-only file system")
        shutil.rmtree(path)

    monkeypatch.setattr("runtimes.local_records.remove_tree", refused)
    printed = {item.thing: item for item in keeper.retention.apply()}
    assert printed[Thing.RUN].why == "could not be removed: read-only file system"
    assert not printed[Thing.RUN].goes
    assert printed[Thing.ARCHIVE].goes


def test_an_interrupted_removal_is_continued(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.a_session_ends()
    keeper.clock.passes(8 * DAY)

    def killed(path: Path) -> None:
        (path / "output.log").unlink(missing_ok=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("runtimes.local_records.remove_tree", killed)
        with pytest.raises(KeyboardInterrupt):
            keeper.retention.apply()
    assert keeper.cleans() == {Thing.RUN: ["widgets-12_r1"], Thing.ARCHIVE: ["widgets-12"]}
