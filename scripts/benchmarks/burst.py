"""Measures many issues labelled within a second: the work, the waiting and the order of sessions.

The sessions share all cores, so the last one ends when all work is done. If the oldest sessions go
first, half of all sessions end in half of the total time. Three figures have limits, none of which
depends on how fast the machine is or on what else it does before and after the burst:

- The work: the processor time of a session (bot, stand-in for GitHub, and the git of both; not its
  agent) divided by that of a session by hand, in which git clones, commits and pushes. Sessions by
  hand run beside the others, because a busy machine takes more processor time for the same work.
- The waiting: the time until half of the sessions have a pull request, divided by the time that all
  work takes if no core is ever idle. This ratio grows if sessions wait for anything but a core.
- The order: the time until half of the sessions have a pull request, divided by the time until all
  sessions have a pull request. The time that a session takes alone (its agent starts and is
  observed every few seconds) is subtracted from both times, because it is the same for every
  session and says nothing about their order.
"""

import os
import resource
import subprocess
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from statistics import mean, median

from bot.demo.scene import PERSON
from scripts.benchmarks.figure import Figure
from scripts.benchmarks.life import Life, bot_with_agents, until

SESSIONS, ALONE = 300, 3
BY_HAND = 5  #: A session by hand is played after each so many pull requests.
WORK, WAITING, MEDIAN_SHARE = 11.0, 0.9, 0.75
#: In seconds. The one second that GitHub requires between writes would hide everything else.
_WRITE_INTERVAL = 0.01
_BY_HAND = """
cd "$0"
git clone --quiet origin "$1" 2> /dev/null
cd "$1"
echo "$1" > greeting.txt
git add --all
git -c user.name=bench -c user.email=bench@localhost commit --quiet -m Greet
git status --porcelain
git log --patch -1 > /dev/null
git push --quiet origin HEAD
"""


def run() -> dict[str, Figure]:
    """Label all issues at once and wait for their pull requests."""
    with (
        tempfile.TemporaryDirectory(prefix="mw-") as name,
        bot_with_agents(SESSIONS + ALONE, _WRITE_INTERVAL) as life,
        ThreadPoolExecutor(1) as beside,
    ):
        folder = Path(name)
        subprocess.run(["git", "init", "--quiet", "--bare", folder / "origin"], check=True)
        alone = median([_alone(life) for _ in range(ALONE)])
        issues = [life.red.open_issue(f"Greet {number}", by=PERSON) for number in range(SESSIONS)]
        threads = [
            threading.Thread(target=issue.label, args=("mergewright",), kwargs={"by": PERSON})
            for issue in issues
        ]
        before, begun = _cpu_seconds(), time.monotonic()
        for thread in threads:
            thread.start()
        opened: list[float] = []
        plays: list[Future[float]] = []
        for number in range(1, SESSIONS + 1):
            until(lambda number=number: len(life.red.pulls) >= ALONE + number, "a pull request")  # type: ignore[misc]
            opened.append(time.monotonic() - begun)
            if number % BY_HAND == 0:
                plays.append(beside.submit(_by_hand, folder, number))
        by_hand = [play.result() for play in plays]
        used = _cpu_seconds() - before - sum(by_hand)
        for thread in threads:
            thread.join()
    half = median(opened)
    return {
        "burst.work": _held(used / SESSIONS / mean(by_hand), "by hand", WORK),
        "burst.waiting": _held(half * _cores() / used, "ratio", WAITING),
        "burst.order": _held((half - alone) / (opened[-1] - alone), "ratio", MEDIAN_SHARE),
        "burst.median": Figure(value=half, unit="s"),
        "burst.alone": Figure(value=alone, unit="s"),
        "burst.cpu": Figure(value=used / SESSIONS, unit="s each"),
        "burst.by_hand": Figure(value=mean(by_hand) * 1000, unit="ms each"),
    }


def _held(value: float, unit: str, most: float) -> Figure:
    return Figure(value=value, unit=unit, limit=f"<= {most:g}", holds=value <= most)


def _by_hand(folder: Path, number: int) -> float:
    """Do the git work of one session (clone, commit, push) without the bot.

    Returns the processor time that this takes, in seconds.
    """
    argv = ("sh", "-ec", _BY_HAND, str(folder), str(number))
    child = os.posix_spawnp("sh", argv, os.environ)
    _, status, used = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"a session by hand ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _alone(life: Life) -> float:
    """Return the seconds from label to pull request of a session that runs alone."""
    number = len(life.red.pulls) + 1
    issue, begun = life.red.open_issue(f"Greet alone {number}", by=PERSON), time.monotonic()
    issue.label("mergewright", by=PERSON)
    until(lambda: len(life.red.pulls) == number, "a pull request")
    return time.monotonic() - begun


def _cpu_seconds() -> float:
    """Return the processor time of this process (bot and stand-in) and its git commands."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)
