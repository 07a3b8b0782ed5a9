"""Measures many issues labelled within a second: the time from the label to the pull request.

The sessions share two cores, so the last one ends when all work is done. If the oldest go first,
half of them end in half of that time. The limit of that half is a number of starts of git, which
is measured before and after the burst, because most of a burst is the work of git's processes and
machines differ in it by more than the limit may allow.

The time of a session alone (its agent starts and is observed every few seconds) is subtracted from
both: it is the same for every session and says nothing about their order.
"""

import os
import resource
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import mean, median

from bot.demo.scene import PERSON
from scripts.benchmarks.figure import Figure
from scripts.benchmarks.life import Life, bot_with_agents, until

SESSIONS, ALONE = 300, 3
#: The median may take as long as this many starts of git for each session.
MEDIAN_STARTS, MEDIAN_SHARE = 150.0, 0.75
#: In seconds. The one second that GitHub requires between writes would hide everything else.
_WRITE_INTERVAL = 0.01


def run() -> dict[str, Figure]:
    """Label all issues at once and wait for their pull requests."""
    starts = [_git_start_seconds()]
    with bot_with_agents(SESSIONS + ALONE, _WRITE_INTERVAL) as life:
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
        for number in range(1, SESSIONS + 1):
            until(lambda number=number: len(life.red.pulls) >= ALONE + number, "a pull request")  # type: ignore[misc]
            opened.append(time.monotonic() - begun)
        used = _cpu_seconds() - before
        for thread in threads:
            thread.join()
    starts.append(_git_start_seconds())
    half = median(opened)
    in_starts = half / mean(starts) / SESSIONS
    share = (half - alone) / (opened[-1] - alone)
    return {
        "burst.median_of_300": Figure(
            value=in_starts,
            unit="git starts each",
            limit=f"<= {MEDIAN_STARTS:g}",
            holds=in_starts <= MEDIAN_STARTS,
        ),
        "burst.median": Figure(value=half, unit="s"),
        "burst.git_start": Figure(value=mean(starts) * 1000, unit="ms"),
        "burst.median_to_last": Figure(
            value=share, unit="ratio", limit=f"<= {MEDIAN_SHARE:g}", holds=share <= MEDIAN_SHARE
        ),
        "burst.alone": Figure(value=alone, unit="s"),
        "burst.cpu": Figure(value=used / SESSIONS, unit="s each"),
    }


def _git_start_seconds() -> float:
    """Return the seconds for each of many starts of git that use all cores."""
    count, cores = 1000, len(os.sched_getaffinity(0))

    def start(_: int) -> None:
        subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True)

    begun = time.monotonic()
    with ThreadPoolExecutor(cores) as threads:
        list(threads.map(start, range(count)))
    return (time.monotonic() - begun) / count


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
