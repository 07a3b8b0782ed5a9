"""Measures the memory and the processor time of runs.

For a run in a container, the engine measures both. Otherwise they are sums over the processes below
the run's supervisor (proc(5)); memory shared by several processes counts once for each. The
processor time includes that of the supervisor.
"""

import marshal
import os
from pathlib import Path
from typing import Any

from runtimes import supervised
from runtimes.containers.engine import Engine, EngineError
from runtimes.files import read_bytes
from runtimes.host import Resources
from runtimes.supervise import descendants, stat

_MB = 1024 * 1024
_SECONDS = 2.0  #: Time-out for an engine: a person waits for the page.
#: Fields of /proc/PID/stat, counted from the third: utime to cstime, and rss.
_TIMES, _PAGES = slice(11, 15), 21
#: The names that control groups of versions 1 and 2 give to page cache that can be dropped. Engines
#: do not count it as used.
_CACHED = ("total_inactive_file", "inactive_file")


def resources_of(run: Path) -> Resources | None:
    """Return what the run with this folder uses; None if it does not run or cannot be measured."""
    container = run / "sandbox" / "container"
    return _of_container(container) if container.exists() else _of_processes(run)


def _of_container(file: Path) -> Resources | None:
    """Return what the container in a run's file `container` uses, or None if that is unknown.

    See https://docs.docker.com/reference/api/engine/version/v1.41/ (ContainerStats).
    """
    try:
        spec = marshal.loads(read_bytes(file))  # noqa: S302 - the bot wrote it.
        engine, once = Engine(spec["engine"], _SECONDS), "stream=0&one-shot=1"
        found: Any = engine.call("GET", f"/containers/{spec['name']}/stats?{once}")
        memory = found["memory_stats"]
        kept = memory.get("stats") or {}
        cached = next((kept[name] for name in _CACHED if name in kept), 0)
        return Resources(
            memory_mb=(memory["usage"] - cached) // _MB,
            cpu_seconds=found["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
        )
    except (OSError, EngineError, KeyError, TypeError, ValueError, EOFError):
        return None


def _of_processes(run: Path) -> Resources | None:
    supervisor = supervised.supervisor(run)
    if supervisor is None:
        return None
    pids = descendants(supervisor)
    found = [fields for pid in pids if (fields := stat(pid))]
    pages = sum(int(fields[_PAGES]) for fields in found)
    # The supervisor's own count, too: it includes ended processes whose parent ended before them.
    ticks = sum(int(one) for fields in (*found, stat(supervisor) or []) for one in fields[_TIMES])
    return Resources(
        memory_mb=pages * os.sysconf("SC_PAGE_SIZE") // _MB,
        cpu_seconds=ticks / os.sysconf("SC_CLK_TCK"),
    )
