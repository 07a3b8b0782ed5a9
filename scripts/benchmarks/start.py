"""Compares the time from a label to a running agent with that of doing the same by hand."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from bot.app.application import App
from bot.demo.bot_process import free_port
from bot.demo.github import GitHubServer
from bot.demo.github.repository import Repository
from config.load import Secrets, load_settings
from scripts.benchmarks.figure import Figure

ROUNDS = 7
TIMES_BY_HAND, PLUS_MS = 1.5, 250.0
_FILES = {f"src/module_{number}.py": "pass\n" * 20 for number in range(50)}
_TOKEN, _SECRET = "token-of-the-bench", "secret-of-the-bench"
_CONFIG = """
[server]
port = {port}
data = "{data}"
[github]
api-url = "{url}api/v3/"
[projects.bench]
repository = "acme/bench"
agent = "toucher"
[agent-types.toucher]
program = "shell"
command = {command}
[runtime]
isolation = "none"
[limits]
sessions = 100
memory-per-session-mb = 0
"""


def run() -> dict[str, Figure]:
    """Start agents by a label and by hand, in alternation."""
    with tempfile.TemporaryDirectory(prefix="mw-") as name, _bot(Path(name)) as (repo, started):
        by_hand, by_label = [], []
        for turn in range(ROUNDS):
            by_hand.append(_by_hand(Path(name), repo, turn))
            by_label.append(_by_label(repo, started))
    hand, label = median(by_hand) * 1000, median(by_label) * 1000
    most = TIMES_BY_HAND * hand + PLUS_MS
    return {
        "start.by_hand": Figure(value=hand, unit="ms"),
        "start.label_to_agent": Figure(
            value=label,
            unit="ms",
            limit=f"<= {most:.0f} ({TIMES_BY_HAND:g} x by hand + {PLUS_MS:g})",
            holds=label <= most,
        ),
    }


@contextmanager
def _bot(folder: Path) -> Iterator[tuple[Repository, Path]]:
    """Run a bot whose agent only creates a file named after its session."""
    started = folder / "started"
    started.mkdir()
    command = ["/bin/sh", "-c", f': > "{started}/$MERGEWRIGHT_SESSION"; exec sleep 600']
    with GitHubServer(folder / "github") as github:
        github.bot_account("bot", token=_TOKEN)
        repo = github.repository("acme/bench", files=_FILES)
        repo.permission("bot", "write")
        github.user("alice")
        repo.permission("alice", "write")
        port = free_port()
        config = folder / "mergewright.toml"
        config.write_text(
            _CONFIG.format(
                port=port, data=folder / "data", url=github.url, command=json.dumps(command)
            )
        )
        secrets = Secrets(token=_TOKEN, webhook_secret=_SECRET, page_token="page")
        app = App(load_settings(config), secrets)
        app.start()
        try:
            while app.health().standby_reason:
                time.sleep(0.01)
            repo.webhook(f"http://127.0.0.1:{port}/webhooks/github", _SECRET)
            yield repo, started
        finally:
            app.stop()
            for name in app.wiring.locations.host.runtime.look():
                app.wiring.locations.host.runtime.stop(name, grace_seconds=0.1)


def _by_label(repo: Repository, started: Path) -> float:
    """Return the seconds from the label to the first action of the agent."""
    issue = repo.open_issue("Bench", by="alice")
    begun = time.perf_counter()
    issue.label("mergewright", by="alice")
    _until_exists(started / f"bench-{issue.number}")
    return time.perf_counter() - begun


def _by_hand(folder: Path, repo: Repository, turn: int) -> float:
    """Return the seconds that `git worktree add` and `tmux new-session` take to start a program."""
    mark, tree = folder / f"by-hand-{turn}", folder / f"tree-{turn}"
    tmux = ["tmux", "-L", f"mw-bench-{folder.name}", "-f", "/dev/null"]
    begun = time.perf_counter()
    subprocess.run(
        ["git", "worktree", "add", "-q", "-b", f"by-hand-{turn}", str(tree), "main"],
        cwd=repo.git.path,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    program = f": > {mark}; exec sleep 600"
    subprocess.run([*tmux, "new-session", "-d", "-s", f"t{turn}", "-c", tree, program], check=True)
    _until_exists(mark)
    took = time.perf_counter() - begun
    if turn == ROUNDS - 1:
        subprocess.run([*tmux, "kill-server"], check=True)
    return took


def _until_exists(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > deadline:
            sys.exit(f"{path.name} did not start")
        time.sleep(0.002)
