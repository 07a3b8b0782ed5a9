"""Runs many sessions to their merges: a stand-in GitHub, people, agents, bots on one database."""

import contextlib
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from bot.demo.agent import LOG
from bot.demo.audit import (
    control_groups_of,
    merges,
    messages,
    notes,
    problems,
    processes_of,
)
from bot.demo.bot_process import BotProcess, configuration
from bot.demo.github import GitHubServer
from bot.demo.scene import Scene
from bot.system.locations import Paths
from runtimes import RUNTIMES
from runtimes.base import Options, Runtime
from runtimes.isolation import ISOLATIONS, strongest
from scripts.faults.proxy import Proxy
from tests.runtimes.engines import Daemon

#: A resync period, in which the bot removes doubled effects, and time for its actions: one that
#: failed because GitHub did not answer is tried again after 30 s (`bot.act.outages`).
_SETTLE_SECONDS = 60.0
#: The time in which a bot that was suspended may still act.
_LATE_SECONDS = 3.0
#: The hidden key of a comment the bot posted.
_MARKER = re.compile(r"<!-- \S+ -->")


class Lives:
    """Sessions from their labels to their merges, and checks of all effects from outside."""

    def __init__(
        self,
        folder: Path,
        sessions: int,
        log: Callable[[str], None],
        *,
        disk_mb: int = 0,
        descriptors: int = 0,
        app: bool = False,
        isolation: str = "",
        engine: Daemon | None = None,
    ) -> None:
        """`sessions` is their number; `log` is called with a line for each fault and its result.

        `disk_mb` gives the data a small disk, `descriptors` limits the open files of each bot (0:
        as on this machine). The bot is an `app`, or has a token. `isolation` is that of the agents;
        empty: the strongest that works here. `engine` is the one that makes their containers.
        """
        self.folder = folder
        self.sessions = sessions
        self.moved_at = 0.0  #: `time.monotonic()` at the last change of a session or fault.
        self._log = log
        self.paths = Paths(folder / "data")
        self.bots: list[BotProcess] = []
        self.module = "bot.cli"  #: The Python module that the bots run.
        self.clock = folder / "clock"  #: The file with the clock's jumps; see `shifted_bot`.
        self.violations_seen: list[str] = []  #: Violations that a fault found itself.
        self.engine = engine
        self._disk_mb = disk_mb
        self._descriptors = descriptors
        self._app = app
        self._isolation = isolation or strongest()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self.github = self._stack.enter_context(GitHubServer(self.folder / "github"))
        self.scene = Scene(self.github, lambda what, where: None, app=self._app)
        self.proxy = self._stack.enter_context(Proxy(self.github.url))
        if self._disk_mb:
            self._mount()
        self._stack.callback(self._end)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def log(self, line: str) -> None:
        """Log a fault or its result, which counts as progress for `wait_until_over`."""
        self.moved_at = time.monotonic()
        self._log(line)

    @property
    def runtime(self) -> Runtime:
        """The runtime of the agents, seen from outside."""
        return RUNTIMES["tmux"](Options(data=self.paths.runtime))

    @property
    def leader(self) -> BotProcess | None:
        """The bot that acts now; None: none does."""
        return next((bot for bot in self.bots if _is_ready(bot)), None)

    def wait_for_leader(self) -> BotProcess:
        """Return the bot that acts, as soon as one does. Raises `RuntimeError` after a minute."""
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            if leader := self.leader:
                return leader
            time.sleep(0.05)
        raise RuntimeError(f"no bot acts; the end of its log:\n{self.bots[0].tail()}")

    def start_bot(self) -> BotProcess:
        """Start a bot; the second bot of a database is on standby."""
        config = configuration(
            *(self.folder, self.proxy.url),
            isolation=self._isolation,
            sessions=self.sessions,
            app_id=self.scene.app_id,
        )
        name, secrets = f"bot-{len(self.bots)}", self.scene.secrets
        bot = BotProcess(
            self.folder,
            config,
            {**secrets, "SHIFTED_CLOCK": str(self.clock), "PYTHONFAULTHANDLER": "1"},
            name,
            self._descriptors,
            self.module,
        )
        self.bots.append(bot)
        bot.start()
        self.scene.repo.webhook(f"{bot.url}webhooks/github", self.scene.secret)
        return bot

    def api_requests(self) -> int:
        """Return the number of API requests that the stand-in GitHub has answered."""
        return sum("/api/" in seen.path for seen in self.github.requests)

    def messages_received(self) -> int:
        """Return the number of messages in the logs of the agents."""
        return sum(note["kind"] == "message" for note in notes(self._agent_logs()))

    def label_issues(self) -> None:
        """Have the person open and label all issues at once."""
        threads = [
            threading.Thread(target=self.scene.open_issue, args=(f"greeting-{number}.txt",))
            for number in range(1, self.sessions + 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def statuses(self) -> dict[str, str]:
        """Return the status of each session; empty while no bot answers."""
        for bot in self.bots:
            with contextlib.suppress(httpx.TransportError, ValueError):
                answer = httpx.get(
                    f"{bot.url}api/v1/sessions?limit=200",
                    headers={"Authorization": f"Bearer {bot.page_token}"},
                    timeout=2,
                )
                if answer.status_code == 200:
                    return {row["id"]: row["status"] for row in answer.json()["items"]}
        return {}

    def wait_until_over(self, seconds: float, most_seconds: float) -> bool:
        """Wait until all sessions are merged and their workspaces removed; return whether they are.

        Progress and logged faults restart the time-out of `seconds`, so that a slow machine gets
        enough time; `most_seconds` limits the whole wait. After a time-out, logs what is left.
        """
        began = time.monotonic()
        known = set[object]()
        while time.monotonic() - max(began, self.moved_at) < seconds:
            statuses, workspaces = self.statuses(), self._workspaces()
            merged = len(statuses) == self.sessions and set(statuses.values()) == {"merged"}
            if merged and not workspaces:
                return True
            if time.monotonic() - began > most_seconds:
                break
            if not (now := {*statuses.items(), len(workspaces)}) <= known:
                known |= now
                self.moved_at = time.monotonic()
            time.sleep(0.1)
        left = Counter(status for status in self.statuses().values())
        if not left:  # No bot answers.
            for bot in self.bots:
                bot.abort()
        after = time.monotonic() - began
        self.log(f"after {after:.0f} s not over: {dict(left)}, workspaces: {self._workspaces()}")
        return False

    def settled_violations(self, *, runs_may_repeat: bool = False) -> list[str]:
        """Return the violations that remain after a resync period; see `violations`."""
        time.sleep(_LATE_SECONDS)
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            if not any(self._visible_violations(runs_may_repeat=runs_may_repeat)):
                break
            time.sleep(0.5)
        return list(self.violations(runs_may_repeat=runs_may_repeat))

    def violations(self, *, runs_may_repeat: bool = False) -> Iterator[str]:
        """Yield a sentence for each effect that is missing, happened twice or was left over.

        `runs_may_repeat`: the fault kills agents, so that a prompt may be sent again in a new run;
        each run still gets each message once.
        """
        yield from self.violations_seen
        yield from self._visible_violations(runs_may_repeat=runs_may_repeat)
        for task in self.scene.tasks.values():
            yield from self._not_replayed(task.session)

    def _visible_violations(self, *, runs_may_repeat: bool) -> Iterator[str]:
        """Yield the violations in the stand-in GitHub, the agents' logs and the workspaces."""
        for task in self.scene.tasks.values():
            yield from problems(self.scene, task)
            if runs_may_repeat:
                yield from self._received_twice(task.session)
            else:
                yield from messages(task, self._agent_logs())
        yield from merges(self.scene)
        yield from self._duplicate_keys()
        for workspace in self._workspaces():
            yield f"the workspace {workspace} is left"

    def left_over(self) -> Iterator[str]:
        """Yield a sentence for each process or control group left, after all bots have stopped."""
        for pid, command in processes_of(self.folder):
            yield f"process {pid} still runs: {command}"
        for group in control_groups_of(self.paths.host):
            yield f"the control group {group} is left"
        if ISOLATIONS[self._isolation].remove_orphans(self.paths.host / "sessions"):
            yield f"containers of {self._isolation} are left"

    def _agent_logs(self) -> list[Path]:
        """Return the files in which agents log what they receive."""
        return list(self.paths.host.glob(f"sessions/*/spool/{LOG}"))

    def _received_twice(self, session: str) -> Iterator[str]:
        """Return a sentence for each message that one run received more than once."""
        times = Counter(
            (note["run"], note["mark"])
            for note in notes(self._agent_logs())
            if note["session"] == session and note["kind"] == "message"
        )
        for (run, mark), count in times.items():
            if count > 1:
                yield f"{session}: run {run} received the message {mark} {count} times"

    def _duplicate_keys(self) -> Iterator[str]:
        """Return a sentence for each key that several comments carry."""
        items = self.scene.repo.issues_and_pulls.values()
        bodies = [
            one.body for item in items for one in item.comments if one.user.login == self.scene.bot
        ]
        keys = Counter(key for body in bodies for key in _MARKER.findall(body))
        for key, times in keys.items():
            if times > 1:
                yield f"{times} comments carry the key {key}"

    def _workspaces(self) -> list[str]:
        folder = self.paths.host / "workspaces"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def _not_replayed(self, session: str) -> Iterator[str]:
        run = subprocess.run(
            [
                *(sys.executable, "-m", "bot.cli", "replay", session),
                *("--config", str(self.bots[0].config)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            output = (run.stdout + run.stderr)[-500:]
            yield f"replay of {session} exits with {run.returncode}: {output}"

    def _mount(self) -> None:
        """Mount a small disk for the data. Raises `CalledProcessError` without permission."""
        self.paths.data.mkdir()
        size = f"size={self._disk_mb}m"
        command = ("mount", "-t", "tmpfs", "-o", size, "mergewright-faults", str(self.paths.data))
        subprocess.run(command, check=True)
        self._stack.callback(subprocess.run, ("umount", "--lazy", self.paths.data), check=True)

    def _end(self) -> None:
        """Stop the bots and the terminals, which outlive the bots by design."""
        for bot in self.bots:
            bot.stop()
        runtime = self.runtime
        for handle in runtime.look():
            runtime.stop(handle)


def _is_ready(bot: BotProcess) -> bool:
    try:
        return bot.alive and httpx.get(f"{bot.url}readyz", timeout=1).status_code == 200
    except httpx.TransportError:
        return False
