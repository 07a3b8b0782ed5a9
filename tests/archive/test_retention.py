"""Tests of retention over real files and real git."""

import fcntl
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from bot.archive.retention import Busy, Item, Retention, Thing
from bot.store import Delivery, ExpiryTable, NewCommand, Outsider, StoreFull
from lifecycle.model.actions import CloseIssue
from lifecycle.model.facts import Usage
from lifecycle.model.key import parse
from lifecycle.model.policy import Policy
from runtimes.base import Launch
from runtimes.workspaces.preparation import prepare
from tests.harness.keeper import DAY, DAYS, Keeper


def costs(keeper: Keeper, usd: float) -> None:
    store, used = keeper.site.scenario.store, Usage(input=100)
    store.usage.record_response(
        keeper.site.id, 1, "a-model", used, lambda used: replace(used, cost_usd=usd)
    )
    (loaded,) = store.facts.load([keeper.site.id])
    settled = replace(loaded.before, recheck_at=None)
    store.decisions.record([(loaded, settled)], keeper.clock())[0].result()


def test_processed_webhooks_expire(keeper: Keeper) -> None:
    store, now = keeper.site.scenario.store, keeper.clock()
    for name in ("worked through", "waiting"):
        store.deliveries.add([Delivery(id=name, event="issues", at=now, body=b"{}")]).result()
    store.deliveries.mark_done("worked through", [], [])
    assert keeper.planned(Thing.DELIVERIES) == []
    keeper.clock.passes(8 * DAY)
    assert keeper.planned(Thing.DELIVERIES) == [
        Item(
            thing=Thing.DELIVERIES,
            name="1 row",
            goes=True,
            why="older than 7 days",
            bytes=2,
        )
    ]
    assert keeper.cleans() == {Thing.DELIVERIES: ["1 row"]}
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


def test_the_history_of_a_session_expires_and_its_cost_is_kept(keeper: Keeper) -> None:
    store = keeper.site.scenario.store
    keeper.a_session_ends()
    costs(keeper, 3.5)
    keeper.clock.passes(29 * DAY)
    keeper.cleans()
    assert store.history.of("widgets-12")
    keeper.clock.passes(2 * DAY)
    assert keeper.cleans() == {Thing.HISTORY: ["widgets-12"]}
    assert store.history.of("widgets-12") == []
    assert [total.cost_usd for total in store.usage.totals("session")] == [3.5]
    assert keeper.cleans() == {}


def test_a_session_is_forgotten_once_its_issue_asks_for_nothing(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.clock.passes(31 * DAY)
    keeper.cleans()
    (kept,) = keeper.planned(Thing.SESSION)
    assert (kept.goes, kept.why) == (False, "its issue is open and still asks for an agent")
    keeper.issue_is_closed()
    assert keeper.cleans()[Thing.SESSION] == ["widgets-12"]
    assert keeper.site.scenario.store.sessions.get("widgets-12") is None
    assert keeper.cleans() == {}


def test_a_session_that_is_woken_meanwhile_is_not_reported_as_removed(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.clock.passes(31 * DAY)
    keeper.cleans()
    keeper.issue_is_closed()
    keeper.site.scenario.store.sessions.wake("widgets-12")
    (kept,) = [one for one in keeper.retention.apply() if one.thing is Thing.SESSION]
    assert (kept.goes, kept.why) == (False, "deleted or in use again since it was listed")
    assert keeper.site.scenario.store.sessions.get("widgets-12") is not None


def test_rows_that_cannot_be_deleted_do_not_end_a_cleanup(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise StoreFull("the disk is full")

    keeper.a_session_ends()
    keeper.clock.passes(31 * DAY)
    monkeypatch.setattr(ExpiryTable, "delete_history", fails)
    kept, went = {}, set()
    for item in keeper.retention.apply():
        if item.goes:
            went.add(item.thing)
        else:
            kept[item.thing] = item.why
    assert kept == {Thing.HISTORY: "could not be removed: the disk is full"}
    assert Thing.ARCHIVE in went


def test_a_session_is_known_as_long_as_work_of_it_is_preserved(keeper: Keeper) -> None:
    keeper.a_session_ends()
    keeper.issue_is_closed()
    keeper.days = replace(DAYS, preserved_days=100)
    keeper.clock.passes(31 * DAY)
    assert Thing.WORKSPACE in keeper.cleans()
    assert Thing.SESSION not in keeper.cleans()
    assert keeper.site.session.ended
    keeper.clock.passes(70 * DAY)
    assert Thing.PRESERVED in keeper.cleans()
    assert keeper.cleans() == {Thing.SESSION: ["widgets-12"]}


def test_refused_commands_outsiders_and_incidents_expire(keeper: Keeper) -> None:
    store, now = keeper.site.scenario.store, keeper.clock()
    for text in ("closed", "open"):
        store.incidents.report(text, text, now)
    store.incidents.clear("closed", now)
    for key in ("refused", "new"):
        store.commands.add(
            NewCommand(
                key=key, repository="acme/widgets", number=12, kind="stop", actor="ada", at=now
            )
        )
    store.commands.refuse("refused", "no")
    for name in ("notified", "new"):
        one = Outsider(repository="acme/widgets", issue=12, login=name, number=12)
        store.outsiders.add(one, now)
        if name == "notified":
            store.outsiders.settle(one, (), now)
    keeper.clock.passes(29 * DAY)
    assert keeper.cleans() == {}
    keeper.clock.passes(2 * DAY)
    gone = (Thing.COMMANDS, Thing.OUTSIDERS, Thing.INCIDENTS)
    assert keeper.cleans() == {thing: ["1 row"] for thing in gone}
    assert [one.key for one in store.incidents.recent()] == ["open"]
    assert [one.key for one in store.commands.new()] == ["new"]
    assert [one.login for one in store.outsiders.unnotified()] == ["new"]


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
    assert item.why == "widgets is no longer a project, so its work cannot be preserved"
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
