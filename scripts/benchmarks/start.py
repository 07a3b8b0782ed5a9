"""Compares three ways to start an agent: by a label, by a label in a sandbox, and by hand.

What a sandbox adds is compared with the time of a bare `bwrap` that starts Python.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bot.app.application import App
from bot.demo.bot_process import free_port
from bot.demo.github import GitHubServer
from bot.demo.github.repository import Repository
from config.load import Secrets, load_settings
from runtimes.isolation import ISOLATIONS
from runtimes.isolation.programs import python
from scripts.benchmarks.figure import Figure

#: Other load of the machine changes a start by more than a sandbox does: so there are many rounds.
ROUNDS = 61
TIMES_BY_HAND, PLUS_MS = 1.5, 250.0
#: What a sandbox may add, in times of a bare `bwrap`: the ratio hardly depends on the machine.
TIMES_BARE = 2.0
_NONE, _SANDBOX = "none", "bubblewrap"
#: A sandbox made by hand, with the namespaces of an agent's. It starts Python, as that one does.
_BARE = (
    *("bwrap", "--unshare-all", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"),
    *("--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"),
    *("--tmpfs", "/tmp", "--", python(), "-I", "-S", "-c", "pass"),
)
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
isolation = "{isolation}"
[limits]
sessions = 100
memory-per-session-mb = 0
"""


def run() -> dict[str, Figure]:
    """Start agents by a label, without and in a sandbox, and by hand, in alternation.

    What a sandbox adds is the median difference between a round's starts with and without it. These
    two starts swap their order from round to round.
    """
    kinds = [_NONE]
    if why := ISOLATIONS[_SANDBOX].unavailable():
        sys.stderr.write(f"start.sandbox_adds is left out: {why}\n")
    else:
        kinds.append(_SANDBOX)
    by_hand: list[float] = []
    bare: list[float] = []
    by_label: dict[str, list[float]] = {kind: [] for kind in kinds}
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="mw-"))
        bots = {kind: stack.enter_context(_bot(Path(name, kind), kind)) for kind in kinds}
        for turn in range(ROUNDS):
            by_hand.append(_by_hand(Path(name), bots[_NONE][0], turn))
            if _SANDBOX in kinds:
                bare.append(_bare())
            for kind in kinds if turn % 2 else reversed(kinds):
                by_label[kind].append(_by_label(*bots[kind]))
    hand, label = median(by_hand) * 1000, median(by_label[_NONE]) * 1000
    most = TIMES_BY_HAND * hand + PLUS_MS
    figures = {
        "start.by_hand": Figure(value=hand, unit="ms"),
        "start.label_to_agent": Figure(
            value=label,
            unit="ms",
            limit=f"<= {most:.0f} ({TIMES_BY_HAND:g} x by hand + {PLUS_MS:g})",
            holds=label <= most,
        ),
    }
    if _SANDBOX in by_label:
        pairs = zip(by_label[_SANDBOX], by_label[_NONE], strict=True)
        adds = median(sandboxed - plain for sandboxed, plain in pairs) * 1000
        once = median(bare) * 1000
        most = TIMES_BARE * once
        figures["start.bare_sandbox"] = Figure(value=once, unit="ms")
        figures["start.sandbox_adds"] = Figure(
            value=adds,
            unit="ms",
            limit=f"<= {most:.0f} ({TIMES_BARE:g} x a bare sandbox)",
            holds=adds <= most,
        )
    return figures


@contextmanager
def _bot(folder: Path, isolation: str) -> Iterator[tuple[Repository, Path]]:
    """Run a bot whose agent only creates a file; yield also the folder of all runs."""
    folder.mkdir()
    command = ["/bin/sh", "-c", ': > "$MERGEWRIGHT_RUN_DIR/spool/started"; exec sleep 600']
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
                port=port,
                data=folder / "data",
                url=github.url,
                command=json.dumps(command),
                isolation=isolation,
            )
        )
        secrets = Secrets(token=_TOKEN, webhook_secret=_SECRET, page_token="page")
        app = App(load_settings(config), secrets)
        app.start()
        try:
            while app.health().standby_reason:
                time.sleep(0.01)
            repo.webhook(f"http://127.0.0.1:{port}/webhooks/github", _SECRET)
            yield repo, folder / "data" / "sessions"
        finally:
            app.stop()
            for name in app.wiring.locations.host.runtime.look():
                app.wiring.locations.host.runtime.stop(name, grace_seconds=0.1)


def _by_label(repo: Repository, runs: Path) -> float:
    """Return the seconds from the label to the first action of the agent."""
    issue = repo.open_issue("Bench", by="alice")
    begun = time.perf_counter()
    issue.label("mergewright", by="alice")
    until_exists(runs / f"bench-{issue.number}_r1" / "spool" / "started")
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
    until_exists(mark)
    took = time.perf_counter() - begun
    if turn == ROUNDS - 1:
        subprocess.run([*tmux, "kill-server"], check=True)
    return took


def _bare() -> float:
    """Return the seconds that a bare sandbox takes to start and end."""
    begun = time.perf_counter()
    subprocess.run(_BARE, check=True)
    return time.perf_counter() - begun


def until_exists(path: Path) -> None:
    """Wait for a file; end the benchmark if it does not exist after half a minute."""
    deadline = time.monotonic() + 30
    while not path.exists():
        if time.monotonic() > deadline:
            sys.exit(f"{path.name} did not start")
        time.sleep(0.002)
