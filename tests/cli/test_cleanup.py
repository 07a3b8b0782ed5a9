"""`mergewright cleanup`, with and without a running bot."""

import json
import re
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.archive.retention import Busy, Item, Retention
from bot.store import Delivery, Store, this_process
from runtimes.workspaces.git import git, init
from tests.cli.conftest import CommandLine, Deployment
from tests.world.waiting import eventually


@pytest.fixture
def over(deployment: Deployment) -> Path:
    """The output of a session that was stopped eight days ago."""
    now, deployment.now = deployment.now, deployment.now - timedelta(days=8)
    session = deployment.has_session()
    printed = deployment.printed(session, "x" * 5000)
    deployment.has_ended(session)
    (deployment.paths.workspaces / session).mkdir(parents=True)
    deployment.now = now
    (deployment.paths.sessions / "widgets-99_r1").mkdir()
    return printed


def test_a_dry_run_lists_expired_data_and_changes_nothing(
    mergewright: CommandLine, deployment: Deployment, over: Path
) -> None:
    output = mergewright("cleanup", "--dry-run")
    assert output.code == 0, output.err
    assert re.search(r"2 would be deleted, \d+\.\d KB", output.out)
    assert "widgets-12_r1" in output.out
    assert "ended 8.0 days ago" in output.out
    assert "1 kept" in output.out
    assert over.exists()
    assert (deployment.paths.sessions / "widgets-99_r1").exists()


def test_the_plan_can_be_printed_as_json(mergewright: CommandLine, over: Path) -> None:
    items = json.loads(mergewright("cleanup", "--dry-run", "--json").out)
    assert {"thing", "name", "goes", "why", "bytes"} == items[0].keys()
    assert [item["name"] for item in items if item["goes"]] == ["widgets-12_r1", "widgets-99_r1"]
    gone = json.loads(mergewright("cleanup", "--json").out)
    assert [item["name"] for item in gone] == ["widgets-12_r1", "widgets-99_r1"]
    assert not over.exists()


@pytest.mark.parametrize("bot_runs", [True, False])
def test_cleanup_beside_a_running_bot_keeps_its_lease(
    mergewright: CommandLine, deployment: Deployment, over: Path, bot_runs: bool
) -> None:
    store = Store(deployment.paths.database)
    leader = f"{this_process()}:bot"
    if bot_runs:
        assert store.lease.acquire(leader, deployment.now, 60)
    output = mergewright("cleanup")
    assert "2 deleted" in output.out
    assert not over.exists()
    led = store.lease.holder()
    assert led is not None if bot_runs else led is None
    store.close()


def test_a_long_cleanup_renews_its_lease_and_stops_once_a_bot_has_taken_it(
    mergewright: CommandLine, deployment: Deployment, over: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.cli.cleanup._LEASE_SECONDS", 0.3)

    def apply(retention: Retention, *, orphans: bool) -> list[Item]:
        held = store.lease.holder()
        assert held is not None
        eventually(lambda: (store.lease.holder() or held)[1] > held[1], "it is renewed")
        later = deployment.now + timedelta(days=1000)
        assert store.lease.acquire("elsewhere:bot", later, 60)
        release: Any = retention.release
        eventually(lambda: _is_refused(release), "it is noticed")
        release(None)
        return []

    with closing(Store(deployment.paths.database)) as store:
        monkeypatch.setattr(Retention, "apply", apply)
        output = mergewright("cleanup")
        assert output.code == 1
        assert "a bot has started on this database" in output.err
        assert (store.lease.holder() or ("", None))[0] == "elsewhere:bot"


def _is_refused(release: Any) -> bool:
    try:
        release(SimpleNamespace(id="widgets-99"))
    except Busy:
        return True
    return False


def test_cleanup_without_a_database_is_refused(mergewright: CommandLine) -> None:
    output = mergewright("cleanup")
    assert output.code == 1
    assert "no database for this user" in output.err


def test_preserved_work_is_shown_with_the_command_to_fetch_it(
    mergewright: CommandLine, deployment: Deployment
) -> None:
    session = deployment.has_session()
    assert "kept when" not in mergewright("show", session).out
    mirror = deployment.paths.mirror("widgets")
    mirror.parent.mkdir()
    init(mirror)
    tree = git(mirror, "mktree").strip()
    sha = git(mirror, "commit-tree", tree, "-m", "Keep").strip()
    git(mirror, "update-ref", "refs/mergewright/preserved/widgets-12/1", sha)
    shown = " ".join(mergewright("show", session).out.split())
    assert re.search(
        r"preserved when the workspace was removed; fetch it with: run 1, \w+ ago: git fetch", shown
    )
    assert "refs/mergewright/preserved/widgets-12/1" in shown
    (kept,) = json.loads(mergewright("show", session, "--json").out)["preserved"]
    assert (kept["run"], kept["sha"]) == (1, sha)


def test_a_broken_mirror_does_not_prevent_cleanup_or_show(
    mergewright: CommandLine,
    deployment: Deployment,
    over: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    mirror = deployment.paths.mirror("widgets")
    mirror.mkdir(parents=True)
    (mirror / "HEAD").write_text("broken")
    output = " ".join(mergewright("cleanup", "--dry-run").out.split())
    assert "not a git repository" in output
    assert "2 deleted" in mergewright("cleanup").out
    assert not over.exists()
    shown = mergewright("show", "widgets-12")
    assert shown.code == 0
    assert "cannot list preserved work" in caplog.text


def test_a_system_error_is_one_line(mergewright: CommandLine, deployment: Deployment) -> None:
    deployment.has_session()
    (deployment.paths.run("widgets-12", 1) / "output.log").mkdir(parents=True)
    output = mergewright("logs", "widgets-12")
    assert output.code == 1
    assert output.err.endswith(": Is a directory\n")


def test_without_a_bot_the_installation_is_not_healthy(
    deployment: Deployment, mergewright: CommandLine
) -> None:
    deployment.has_session(12)
    result = mergewright("health")
    assert result.code == 1
    assert "No bot is running: start it with `mergewright serve`." in result.out
    assert re.search(r"slots +0 of ", result.out)
    with closing(Store(deployment.paths.database)) as store:
        assert store.lease.acquire(this_process(), deployment.now, 3600) is not None
        assert mergewright("health").out.startswith("healthy\n")


def test_undecodable_deliveries_are_listed_and_processed_again(
    deployment: Deployment, mergewright: CommandLine
) -> None:
    deployment.has_session(12)
    assert "no delivery failed" in mergewright("deliveries").out
    with closing(Store(deployment.paths.database)) as store:
        one = Delivery(id="a-1", event="issues", at=deployment.now, body=b"odd")
        store.deliveries.add([one]).result()
        store.deliveries.mark_failed("a-1", "DecodeError: odd")
    listed = mergewright("deliveries").out
    assert re.search(r"issues +a-1 +DecodeError: odd", listed)
    assert "--retry" in listed
    (everything,) = json.loads(mergewright("deliveries", "--all", "--json").out)
    assert (everything["id"], everything["state"]) == ("a-1", "failed")
    assert "failed" in mergewright("deliveries", "--all").out
    assert "--all only lists deliveries" in mergewright("deliveries", "--all", "--retry").err
    assert json.loads(mergewright("deliveries", "--retry", "--json").out)["retried"] == 1
    with closing(Store(deployment.paths.database)) as store:
        assert [one.id for one in store.deliveries.waiting()] == ["a-1"]
