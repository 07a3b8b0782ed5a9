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
from tests.world.world import SECRET, TOKEN, World


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


def test_a_suspended_bot_leaves_the_workspace_that_its_successor_made(world: World) -> None:
    """It was suspended right before it made the workspace; the successor's agent works in it."""
    settings, folder = world.settings(), world.folder / "frozen"
    with a_bot("frozen_bot", folder) as frozen:
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
def a_bot(module: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A bot of `tests.world` as a process, with its own folder in the world's."""
    folder.mkdir()
    secrets = {"MERGEWRIGHT_GITHUB_TOKEN": TOKEN, "MERGEWRIGHT_WEBHOOK_SECRET": SECRET}
    config = str(folder.parent / "mergewright.toml")
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [sys.executable, "-m", f"tests.world.{module}", config, str(folder)],
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
    """Return a bot's steps except `taken`, which a bot records even if it refuses the action."""
    steps = (folder / "steps").read_text().splitlines()
    return [step for step in steps if not step.startswith(CrashPoint.TAKEN)]


def succeeds(world: World, settings: Settings) -> App:
    """Start the world's bot, which takes the lease of the suspended one."""
    world.app = App(replace(settings, server=replace(settings.server, port=0)), world.secrets)
    world.app.start()
    return world.app
