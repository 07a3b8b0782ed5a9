"""A bot that freezes once between the last check of each kind of action and its effect.

    python -m tests.world.freezing_bot CONFIG FOLDER

A life is one process of the bot. At an action whose kind has no file in FOLDER, it creates the file
and is stopped, and the next life takes its place. Once the file `thaw` exists, all stopped lives
continue, the last one first. Each writes the effect's outcome, `done` or an exception, to the file
that it created. In the end the file `thawed` has their exit codes: 1 for each that saw that it was
replaced.
Everything is killed when standard input is closed; the bot needs a process group of its own.
"""

import os
import select
import signal
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from msgspec.structs import replace

from bot.act.dispatch import ActionDispatcher
from bot.app.application import App
from bot.github import transport
from bot.github.errors import TryLater
from bot.github.transport import Transport
from bot.store.database import Writer
from bot.system.log import set_up_log
from bot.system.redaction import Redaction
from config.load import load
from lifecycle.model import actions
from runtimes.tmux import Tmux
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.worktree import Worktree
from tests.world.crashing_bot import warm_up

#: Where actions on the host have their effect; all others write to GitHub.
_ON_HOST = {
    actions.Start: (Tmux, "start"),
    actions.SendMessage: (Tmux, "send"),
    actions.Stop: (Tmux, "stop"),
    actions.Publish: (Mirror, "_remote"),
    actions.AdoptCommits: (Worktree, "adopt"),
    actions.MergeRemote: (Worktree, "move"),
    actions.Release: (Worktree, "remove"),
}
#: Nobody competes with a life that is not stopped.
_LEASE_SECONDS = 0.5


class Ice:
    """Freezes the bot's process right before the effect of an action.

    Each process is frozen once, at a kind of action at which no earlier process was frozen.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._here = threading.local()  # Which kind of action a thread carries out.
        #: Held while the database is written: a stopped writer would keep the next life from it.
        self.writing = threading.RLock()
        self.late = threading.Event()  #: Set once the effect has come late.

    def carries_out(self, original: Any) -> Any:
        """Wrap the function that carries out an action, to know its kind while it runs."""

        def do(dispatcher: ActionDispatcher, due: Any, check: Any) -> Any:
            self._here.kind = type(due.action)
            try:
                return original(dispatcher, due, check)
            finally:
                self._here.kind = None

        return do

    def writes(self, original: Any) -> Any:
        """Wrap the function that writes to the database: no freeze begins during a write."""

        def write(*args: Any) -> Any:
            with self.writing:
                return original(*args)

        return write

    def before(self, original: Any, *kinds: type) -> Any:
        """Wrap a function to freeze the bot before the effect of an action of these kinds.

        No kinds: any kind that has its effect on GitHub.
        """

        def held(*args: Any, **options: Any) -> Any:
            kind = getattr(self._here, "kind", None)
            here = kind in kinds if kinds else kind is not None and kind not in _ON_HOST
            if not (here and _changes_something(args) and self._freezes(kind)):
                return original(*args, **options)
            outcome = "done"
            try:
                with suppress(TryLater):  # The connection was closed meanwhile.
                    return original(*args, **options)
                return original(*args, **options)
            except Exception as failure:
                outcome = repr(failure)
                raise
            finally:
                (self._folder / name_of(kind)).write_text(outcome)
                self.late.set()

        return held

    def _freezes(self, kind: Any) -> bool:
        """Stop the process until the thaw; False if an earlier life was stopped at this kind."""
        with self.writing:
            file = self._folder / name_of(kind)
            if file.exists():
                return False
            file.touch()
            os.kill(os.getpid(), signal.SIGSTOP)
            while not (self._folder / "thaw").exists():
                time.sleep(0.01)
        return True


def name_of(kind: Any) -> str:
    """Return the tag of an action type, such as `merge_remote`."""
    name: str = kind.__struct_config__.tag
    return name


def _changes_something(args: tuple[Any, ...]) -> bool:
    """Return False for a git command or a request that only reads, True for any other call."""
    if isinstance(args[0], Mirror):
        return "push" in args
    if not isinstance(args[0], Transport):
        return True
    request = args[1]
    if isinstance(request.body, dict) and "query" in request.body:
        return str(request.body["query"]).startswith("mutation")
    return request.method != "GET" and not request.url.endswith("/access_tokens")


def live(config: Path, folder: Path) -> None:
    """Run the bot until it was stopped and has seen that it was replaced."""
    settings, secrets = load(config, os.environ)
    set_up_log(settings.log, Redaction())
    settings = replace(
        settings,
        server=replace(settings.server, port=0),  # A stopped process keeps its port.
        timing=replace(settings.timing, lease_seconds=_LEASE_SECONDS),
    )
    ice = Ice(folder)
    changes: list[tuple[object, str, Any]] = [
        (target, name, ice.before(getattr(target, name), kind))
        for kind, (target, name) in _ON_HOST.items()
    ]
    # GitHub closes a connection that a stopped process does not use.
    changes.append((transport, "_POOL", httpx.Limits(max_keepalive_connections=0)))
    changes.append((Transport, "send", ice.before(Transport.send)))
    changes.append((ActionDispatcher, "do", ice.carries_out(ActionDispatcher.do)))
    changes.append((Writer, "_done", ice.writes(Writer._done)))
    with ExitStack() as patches:
        for target, name, changed in changes:
            patches.enter_context(patch.object(target, name, changed))
        app = App(settings, secrets)
        app.start()
        app.wait()
        ice.late.wait(60)
    os._exit(int(app.wiring.leader_lease.lost))


def main() -> None:
    config, folder = Path(sys.argv[1]), Path(sys.argv[2])
    warm_up(config)
    lives = [_born(config, folder)]
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        if os.waitpid(lives[-1], os.WUNTRACED | os.WNOHANG)[0]:
            lives.append(_born(config, folder))
        if (folder / "thaw").exists() and not (folder / "thawed").exists():
            # A push that came late would make a late pull request possible.
            codes = [_code_of(pid) for pid in reversed(lives[:-1])]
            (folder / "thawed").write_text(" ".join(map(str, codes)))
    os.killpg(0, signal.SIGKILL)


def _born(config: Path, folder: Path) -> int:
    pid = os.fork()
    if not pid:
        live(config, folder)
    return pid


def _code_of(pid: int) -> int:
    """Continue a bot process that was frozen by SIGSTOP; return its exit code once it has ended."""
    os.kill(pid, signal.SIGCONT)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    main()
