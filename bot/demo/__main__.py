"""`scripts/demo`: plays an issue from label to merged pull request on a stand-in for GitHub."""

import argparse
import contextlib
import json
import random
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct, to_builtins

from bot.demo.agent import LOG
from bot.demo.audit import left_over, merges, messages, problems, prompts
from bot.demo.bot_process import BotProcess
from bot.demo.github import GitHubServer
from bot.demo.programs import MODELS, SCRIPTED, lacking
from bot.demo.scene import REVIEWER, Scene
from bot.demo.stage import staged
from bot.system.locations import Paths
from lifecycle.model.status import Status
from lifecycle.model.text import counted
from runtimes import RUNTIMES
from runtimes.base import Options
from runtimes.host import run_name
from runtimes.isolation import ISOLATIONS

SESSION = "greetings-1"
#: The files that the issues of `--keep` ask for.
_TO_TRY = ("greeting-french.txt", "greeting-dutch.txt", "greeting-latin.txt")
#: Time limits in seconds, with the scripted agent and with any other agent.
_PATIENCE, _LONG_PATIENCE = 120.0, 1200.0


class Summary(Struct, kw_only=True):
    """The result of one run of the demo."""

    merged: bool = False
    clean: bool = False
    seconds: float = 0.0
    kills: int = 0
    problems: list[str] = []
    steps: list[dict[str, str | float]] = []


class Telling:
    """Prints each event with its time and, if given, where to see it: mostly a URL or a command.

    The times are in seconds since the start and since the previous event.
    """

    def __init__(self) -> None:
        self._begun = self._last = time.monotonic()
        self.steps: list[dict[str, str | float]] = []
        self._lock = threading.Lock()

    def __call__(self, what: str, where: str = "") -> None:
        with self._lock:
            now = time.monotonic()
            at, took, self._last = now - self._begun, now - self._last, now
            self.steps.append({"at": round(at, 2), "took": round(took, 2), "what": what})
            print(f"{at:6.2f} s  +{took:5.2f}  {what}")
            if where:
                print(f"{'':18}{where}")
            sys.stdout.flush()


class Killer(threading.Thread):
    """Kills and restarts the bot at random moments, up to a given number of times."""

    def __init__(self, bot: BotProcess, kills: int, tell: Callable[[str], None]) -> None:
        super().__init__(name="killer", daemon=True)
        self._bot = bot
        self._kills = kills
        self._tell = tell
        self._over = threading.Event()
        self.done = 0

    def run(self) -> None:
        while self.done < self._kills:
            # One kill in four happens while the bot starts, the others while it is ready.
            if random.random() > 0.25:
                self._bot.wait_until_ready()
            if self._over.wait(random.uniform(0.0, 1.2)):
                return
            self._bot.kill()
            self.done += 1
            self._tell(f"the bot is killed (kill {self.done})")
            self._bot.start()

    def stop(self) -> None:
        self._over.set()
        self.join()


def play(
    agent: str,
    model: str,
    kills: int,
    tell: Telling,
    port: int = 0,
    isolation: str = "",
    *,
    keep: bool = False,
) -> Summary:
    """Run the demo once: from the label to a closed issue and a clean machine.

    `agent` and `model` are as on the command line; `tell` prints the steps. The bot is killed at up
    to `kills` random moments. Port 0 picks a free port. `isolation` is that of the agents, or empty
    for the strongest that works here. With `keep`, everything keeps running until the person at the
    terminal presses Ctrl-C, and problems are not reported.
    """
    summary = Summary()
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="mergewright-"))
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(
            staged(folder, tell, agent=agent, model=model, port=port, isolation=isolation)
        )
        scene, bot, github = stage.scene, stage.bot, stage.github
        tell("the bot is ready", f"the link at the top of {github.url} opens its page, signed in")
        killer = Killer(bot, kills, tell)
        if kills:
            killer.start()
        task = scene.tasks[scene.open_issue().number]
        patience = _PATIENCE if agent == "scripted" else _LONG_PATIENCE
        deadline = time.monotonic() + patience + 5 * kills
        for status in follow(bot, lambda: time.monotonic() > deadline):
            tell(status, _where(bot) if status.startswith("spawning") else "")
        if kills:
            killer.stop()
            summary.kills = killer.done
            bot.wait_until_ready()
        if agent == "scripted" or model == SCRIPTED:
            summary.problems += [*problems(scene, task), *merges(scene)]
        if agent == "scripted":
            summary.problems += messages(task, folder.glob(f"data/sessions/*/spool/{LOG}"))
        elif model == SCRIPTED:
            summary.problems += prompts(stage.model)
        summary.merged = any(pull.merged for pull in scene.repo.pulls)
        if keep:
            _keep_running(scene, bot, github, asks=agent == "scripted")
            summary.problems.clear()
    summary.problems += [] if keep else left_over(bot, SESSION)
    summary.clean = not summary.problems
    summary.seconds = round(time.monotonic() - begun, 2)
    summary.steps = tell.steps
    if keep or (summary.merged and summary.clean):
        shutil.rmtree(folder, ignore_errors=keep)
    else:
        print(f"files kept in {folder}; the end of the bot's log:\n{bot.tail()}", file=sys.stderr)
    return summary


def _keep_running(scene: Scene, bot: BotProcess, github: GitHubServer, *, asks: bool) -> None:
    """Open more issues, print where to look at everything, and keep it running.

    Returns when the person ends the demo, or when the bot has exited. If `asks`, the agent of the
    last issue asks a question.
    """
    print("\nEverything keeps running until you press Ctrl-C.")
    print(f"  Issues, pull requests and Mergewright's page, signed in: {github.url}")
    program = Path(sys.executable).with_name("mergewright")  # It need not be on the PATH.
    print(f"  On the command line: {program} ls --config {bot.config}")
    print(f"Issues to try; add the label on their page, comment, and review as @{REVIEWER}:")
    for file in _TO_TRY:
        issue = scene.open_issue(file, played=False, asks=asks and file == _TO_TRY[-1])
        print(f"  {issue.url}  {issue.title}")
    sys.stdout.flush()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        while bot.alive:
            time.sleep(0.5)
    print("\nEnding the demo ...", flush=True)


def follow(bot: BotProcess, too_long: Callable[[], bool]) -> Iterator[str]:
    """Yield each new status with its reason, until the workspace is removed after the merge.

    Also ends once the session's last retry has failed, because nobody in the demo starts the
    session again. When `too_long` returns True, yields a sentence that says so, and ends.
    """
    last = ""
    while not too_long():
        row = bot.session(SESSION).get("session", {})
        now = f"{row['status']}: {row['because']}" if row else last
        if now != last:
            last = now
            yield now
        if row and row["status"] == "merged" and not _workspace(bot).exists():
            return
        if row and row["status"] == Status.ERRORED:
            return
        time.sleep(0.05)
    yield "not done within the time limit"


def _workspace(bot: BotProcess) -> Path:
    return Paths(bot.folder / "data").host / "workspaces" / SESSION


def _where(bot: BotProcess) -> str:
    runtime = RUNTIMES["tmux"](Options(data=Paths(bot.folder / "data").runtime))
    return shlex.join(runtime.attach(run_name(SESSION, 1)))


def main() -> int:
    """Run the demo and return the exit code.

    With `--kill-random`, run it until all kills have happened or a run has failed.
    """
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the summary as the last line")
    parser.add_argument("--agent", choices=["scripted", *MODELS], default="scripted")
    parser.add_argument(
        "--model",
        default="",
        help="the agent's model; `scripted` is this demo's scripted stand-in for a model",
    )
    parser.add_argument(
        "--kill-random",
        type=int,
        default=0,
        metavar="N",
        help="kill the bot with SIGKILL at N random moments, over as many runs as that takes",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="leave everything running, with pages to look at and more issues to try",
    )
    parser.add_argument(
        "--isolation",
        choices=ISOLATIONS,
        help="isolation of the agents (default: the strongest that works)",
    )
    parser.add_argument("--port", type=int, default=0, help="port of Mergewright's page")
    options = parser.parse_args()
    if options.agent != "scripted" and (problems := lacking(options.agent, options.model)):
        print("\n".join(problems), file=sys.stderr)
        return 1
    print(
        "An issue becomes a merged pull request, on a stand-in for GitHub on this machine"
        " (label, agent, failed check, fix, review, another fix, approval, merge):\n"
    )
    left = options.kill_random
    summaries: list[Summary] = []
    while left > 0 or not summaries:
        tell = Telling()
        now = play(
            options.agent,
            options.model,
            left,
            tell,
            options.port,
            options.isolation,
            keep=options.keep,
        )
        summaries.append(now)
        left -= summaries[-1].kills
        if options.keep or not (summaries[-1].merged and summaries[-1].clean):
            break
        if options.kill_random:
            print(
                f"-- run {len(summaries)} merged and clean; {counted(max(0, left), 'kill')} to go"
            )
    return _report(summaries, as_json=options.json)


def _report(summaries: list[Summary], *, as_json: bool) -> int:
    merged = all(summary.merged for summary in summaries)
    clean = all(summary.clean for summary in summaries)
    kills = sum(summary.kills for summary in summaries)
    for problem in (problem for summary in summaries for problem in summary.problems):
        print(f"PROBLEM: {problem}")
    seconds = sum(summary.seconds for summary in summaries)
    print("\nThis demo waits less than usual: see THRESHOLDS in bot/demo/bot_process.py.")
    print(
        f"{'merged and clean' if merged and clean else 'NOT merged and clean'}: "
        f"{len(summaries)} run(s), {kills} kill(s), {seconds:.1f} s"
    )
    if as_json:
        runs = [to_builtins(summary) for summary in summaries]
        total = {"merged": merged, "clean": clean, "kills": kills, "seconds": seconds}
        print(json.dumps({**total, "runs": runs}))
    return 0 if merged and clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
