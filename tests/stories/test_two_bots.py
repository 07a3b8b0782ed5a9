"""Two bots on one database: one acts, the other is on standby and says so."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from msgspec.structs import replace

from bot.app.application import App
from bot.system.crash_points import CrashPoint
from config.settings import Settings
from lifecycle.model.key import KeyKind
from tests.world.waiting import PATIENCE, eventually
from tests.world.world import SECRET, TOKEN, IssueStory, World


def test_a_second_bot_waits_on_standby_and_takes_over(world: World) -> None:
    first = world.bot_starts()
    settings = world.settings()
    elsewhere = replace(settings, server=replace(settings.server, port=0))
    second = App(elsewhere, world.secrets)
    second.start()
    try:
        url = f"http://127.0.0.1:{second.server.port}/"
        eventually(lambda: "another bot" in second.health().standby_reason, "it is on standby")
        ready = httpx.get(f"{url}readyz")
        assert ready.status_code == 503
        assert "another bot" in ready.text
        assert httpx.get(f"{url}healthz").status_code == 200

        first.stop()
        world.app = None
        eventually(lambda: not second.health().standby_reason, "it takes over")
        eventually(lambda: httpx.get(f"{url}readyz").status_code == 200, "it is ready")
    finally:
        second.stop()


def test_a_suspended_bot_does_nothing_once_it_lost_its_lease(
    world: World,
) -> None:
    """It was suspended while it reconciled and acted; another bot did both, each once."""
    settings, first = world.settings(), world.folder / "first"
    with a_bot("suspended_bot", first) as frozen:
        issues = [world.issue("Add widgets").is_labelled()]
        eventually((first / "action").exists, "it is suspended in an action")
        issues.append(world.issue("Add more widgets").is_labelled())
        eventually((first / "reconcile").exists, "it is suspended while it reconciles")
        suspend(frozen)
        steps = steps_of(first)

        succeeds(world, settings)
        for number, issue in enumerate(issues):
            issue.agent.commits({f"widgets-{number}.txt": "one\n"}).ends_its_turn()
        pulls = [issue.pull for issue in issues]
        for issue in issues:
            issue.becomes("review_pending")

        resume(frozen, first)

    assert steps_of(first) == steps, "it wrote nothing down and did nothing more"
    assert "another bot has taken the lease" in (first / "log").read_text()
    for issue, pull in zip(issues, pulls, strict=True):
        assert [entry["kind"] for entry in issue.agent.received] == ["prompt"]
        assert len(issue.comments_by()) == 1
        branch = pull.pull.head_branch
        assert len([move for move in world.repo.moves if move.branch == branch]) == 1
        orders = world.store.outbox.of(issue.id)
        assert {order.state for order in orders} == {"done"}
        kinds = [order.key.kind for order in orders]
        assert sorted(set(kinds)) == ["open_pull", "push", "report", "start"]
        assert len(kinds) - kinds.count(KeyKind.REPORT) == 3, "each once; a report tells news again"
    assert len(world.repo.pulls) == 2


def test_what_a_frozen_bot_does_late_is_removed(world: World) -> None:
    """It froze after the last check of four actions; another bot did all of them meanwhile."""
    settings, folder = world.settings(resync_seconds=1), world.folder / "frozen"
    with a_bot("frozen_bot", folder) as frozen:
        issues = [world.issue(f"Add widget {number}").is_labelled() for number in range(1, 5)]
        for number, issue in enumerate(issues):
            issue.agent.commits({f"widget-{number}.txt": "one\n"})
        for effect, place in {"start": 0, "comment": 1, "pull": 3, "push": 2}.items():
            # The push comes last, because it keeps others from fetching and pushing.
            if effect in ("pull", "push"):
                issues[place].agent.ends_its_turn()
            eventually((folder / effect).exists, f"it is frozen before its {effect}")
        suspend(frozen)
        app = succeeds(world, settings)
        for issue in issues[:2]:
            issue.agent.ends_its_turn()
        pulls = [issue.pull for issue in issues]
        for pull in pulls:
            pull.ci_passes().reviewer_approves()
        for issue in issues:
            issue.becomes("merged")
        eventually(lambda: set(world.repo.heads) == {"main"}, "the branches are deleted")

        facts = world.store.facts
        eventually(lambda: not any(facts.get(one.id).pending for one in issues), "all is done")
        commented = len(posts(world, issues[1]))
        resume(frozen, folder)

    pushed = pulls[2].pull.head_branch
    assert len(posts(world, issues[1])) == commented + 1, "the comment was posted again"
    eventually(
        lambda: len([move for move in world.repo.moves if move.branch == pushed]) == 4,
        "the branch was pushed and deleted twice",
    )
    assert set(world.repo.heads) == {"main"}
    eventually(lambda: len(issues[1].comments_by()) == commented, "the comment is there once")
    assert len(world.repo.pulls) == 4
    workspaces = world.folder / "data" / "workspaces"
    runtime = app.wiring.locations.host.runtime
    eventually(lambda: not any(workspaces.iterdir()), "no workspace is left")
    eventually(lambda: not runtime.look(), "no program is left")


def test_a_suspended_bot_leaves_the_workspace_that_its_successor_made(world: World) -> None:
    """It was suspended right before it made the workspace; the successor's agent works in it."""
    settings, folder = world.settings(), world.folder / "frozen"
    with a_bot("frozen_bot", folder, "workspace") as frozen:
        issue = world.issue("Add a widget").is_labelled()
        eventually((folder / "workspace").exists, "it is frozen before it makes the workspace")
        suspend(frozen)
        succeeds(world, settings)
        issue.agent.commits({"widget.txt": "one\n"})
        checkout = world.folder / "data" / "workspaces" / issue.id / "checkout"
        eventually((checkout / "widget.txt").exists, "the agent works")
        made = checkout.stat()
        resume(frozen, folder)

    assert (checkout.stat().st_ino, (checkout / "widget.txt").exists()) == (made.st_ino, True)
    issue.agent.ends_its_turn()
    issue.becomes("review_pending")


@contextmanager
def a_bot(module: str, folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A bot of `tests.world` as a process, with its own folder in the world's."""
    folder.mkdir()
    secrets = {"MERGEWRIGHT_GITHUB_TOKEN": TOKEN, "MERGEWRIGHT_WEBHOOK_SECRET": SECRET}
    config = str(folder.parent / "mergewright.toml")
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", f"tests.world.{module}", config, str(folder), *more],
            env={**os.environ, **secrets},
            stdout=log,
            stderr=log,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def suspend(bot: subprocess.Popen[bytes]) -> None:
    """Stop the process where it is, and wait until it has stopped: until then it may write."""
    bot.send_signal(signal.SIGSTOP)
    os.waitpid(bot.pid, os.WUNTRACED)


def resume(bot: subprocess.Popen[bytes], folder: Path) -> None:
    """Let the process continue past the place where it waits, and wait for its end."""
    (folder / "gate").touch()
    bot.send_signal(signal.SIGCONT)
    assert bot.wait(PATIENCE) == 1, "it saw that it had lost its place"


def steps_of(folder: Path) -> list[str]:
    """The steps of a bot, without actions that it took up and then refused for want of a lease."""
    steps = (folder / "steps").read_text().splitlines()
    return [step for step in steps if not step.startswith(CrashPoint.TAKEN)]


def succeeds(world: World, settings: Settings) -> App:
    """Start the world's bot, which takes the lease of the suspended one."""
    world.app = App(replace(settings, server=replace(settings.server, port=0)), world.secrets)
    world.app.start()
    return world.app


def posts(world: World, issue: IssueStory) -> list[str]:
    """The comments that were posted on an issue, also those deleted since."""
    end = f"issues/{issue.issue.number}/comments"
    requests = world.github.requests
    return [one.path for one in requests if one.method == "POST" and one.path.endswith(end)]
