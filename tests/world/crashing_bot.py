"""A bot that kills itself once at every crash point, and is started again.

    python -m tests.world.crashing_bot CONFIG CROSSED

At a crash point that is not in the file CROSSED, the bot adds the point to that file and kills
itself. The parent process imports all modules and then forks, so that a restart takes little time.
The parent process ends when its standard input is closed.
"""

import gc
import os
import re
import select
import signal
import sys
import tempfile
import threading
from pathlib import Path

from msgspec.structs import replace

from bot.app.application import App
from bot.system.crash_points import CrashPoint
from bot.system.log import set_up_log
from bot.system.redaction import Redaction
from bot.system.struct_types import prepare_struct_types
from config.load import load
from tests.world.repeated_work import cache_certificates_and_keys, cache_routes

#: Commits and times differ between runs; the rest of a line identifies the crash point.
_CHANGING = re.compile(r"[0-9a-f]{12,}|\d{4}-\d\d-\d\dT[^:\s]*:[^:\s]*:[^:\s]*")
#: The number of crash points at steps that are not distinguished by their subject.
_UNNAMED = {CrashPoint.DELIVERED: 4, CrashPoint.SORTED: 4, CrashPoint.OBSERVED: 8}


class Mortal:
    """A crash point handler that kills the process at each crash point it has not seen.

    `CrashPoint` explains the points. If another thread caused a kill while an action is between
    `taken` and `marked`, the next bot could find the action done and never reach the action's
    remaining points. So during this time, the points `delivered`, `sorted` and `observed` cause no
    kill, and a thread at `recorded` is blocked for up to five seconds. Before each kill, the
    handler waits for up to two seconds while another action is between `done` and `marked`.
    """

    def __init__(self, crossed: Path) -> None:
        self._path = crossed
        self._crossed = crossed.read_text().splitlines() if crossed.exists() else []
        self._changed = threading.Condition()
        self._on_its_way = False
        self._being_marked: set[str] = set()

    def __call__(self, step: CrashPoint, about: str) -> None:
        line = f"{step} {_CHANGING.sub('*', about)}" if step not in _UNNAMED else step.value
        with self._changed:
            if step is CrashPoint.RECORDED:
                self._changed.wait_for(lambda: not self._on_its_way, 5)
            elif step in _UNNAMED and self._on_its_way:
                return
            if self._crossed.count(line) < _UNNAMED.get(step, 1):
                self._crossed.append(line)
                with self._path.open("a") as file:
                    file.write(line + "\n")
                self._being_marked.discard(about)
                self._changed.wait_for(lambda: not self._being_marked, 2)
                os.kill(os.getpid(), signal.SIGKILL)
            if step in (CrashPoint.TAKEN, CrashPoint.DONE, CrashPoint.MARKED):
                self._on_its_way = step is not CrashPoint.MARKED
                self._being_marked.discard(about)
                if step is CrashPoint.DONE:
                    self._being_marked.add(about)
                self._changed.notify_all()


def live(config: Path, crossed: Path) -> None:
    """Run the bot until it is killed or gets SIGTERM, then exit the process."""
    settings, secrets = load(config, os.environ)
    set_up_log(settings.log, Redaction())
    app = App(settings, secrets, crash_point=Mortal(crossed))
    signal.signal(signal.SIGTERM, lambda *_: app.end())
    app.start()
    app.wait()
    app.stop()
    os._exit(0)


def warm_up(config: Path) -> None:
    """Import every module of the bot by running it once in a temporary folder.

    Processes that are forked later inherit its modules and caches, and their garbage collector
    skips these objects.
    """
    cache_certificates_and_keys()
    cache_routes()
    settings, secrets = load(config, os.environ)
    with tempfile.TemporaryDirectory(prefix="mw-") as folder:
        elsewhere = replace(settings.server, data=folder, port=0)
        app = App(replace(settings, server=elsewhere, projects={}), secrets)
        app.start()
        app.stop()
    prepare_struct_types()
    gc.collect()
    gc.freeze()


def main() -> None:
    config, crossed = Path(sys.argv[1]), Path(sys.argv[2])
    warm_up(config)
    while True:
        child = os.fork()
        if child == 0:
            live(config, crossed)
        ended = os.pidfd_open(child)
        ready, _, _ = select.select([ended, sys.stdin], [], [])
        if ended not in ready:
            os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        os.close(ended)
        if os.WTERMSIG(status) != signal.SIGKILL or sys.stdin in ready:
            return


if __name__ == "__main__":
    main()
