"""A bot that freezes between the last check of an action and its effect, once for each kind.

    python -m tests.world.frozen_bot CONFIG FOLDER [workspace]

The effects of `EFFECTS`, each of its own session, create a file of their name in FOLDER and wait
until the file `gate` exists. With `workspace`, that of the first session is held before it is
made, which is the first effect. Exits with 1 if another bot has taken its place.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bot.app.application import App
from bot.github.transport import Transport
from bot.system.log import set_up_log
from bot.system.redaction import Redaction
from config.load import load
from runtimes.tmux import Tmux
from runtimes.workspaces.mirror import Mirror
from runtimes.workspaces.worktree import Worktree

#: What is frozen of the session with this number.
EFFECTS = {1: "start", 2: "comment", 3: "push", 4: "pull", 5: "workspace"}


class Ice:
    """Holds the first effect of each kind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def holds(self, number: int) -> None:
        file = self._folder / EFFECTS[number]
        if not file.exists():
            file.touch()
            while not (self._folder / "gate").exists():
                time.sleep(0.01)

    def before(self, target: type, name: str, number_of: Callable[..., int]) -> Any:
        """Patch a method so that it waits where its arguments name a session of `EFFECTS`."""
        original = getattr(target, name)

        def held(*args: Any) -> Any:
            if number := number_of(*args):
                self.holds(number)
            return original(*args)

        return patch.object(target, name, held)


def _request(_: Transport, request: Any, *__: object) -> int:
    if request.method == "POST" and request.url.endswith("issues/2/comments"):
        return 2
    if request.method == "POST" and request.url.endswith("/pulls"):
        return 4 if "mergewright/4-" in str(request.body) else 0
    return 0


def _git(_: Mirror, __: object, ___: object, *args: str) -> int:
    return 3 if args[0] == "push" and "mergewright/3-" in args[-1] else 0


def _start(_: Tmux, launch: Any) -> int:
    return 1 if launch.name == "widgets-1_r1" else 0


def _create(workspace: Worktree, *_: object) -> int:
    return 5 if "workspace" in sys.argv and workspace.session == "widgets-1" else 0


def main() -> None:
    settings, secrets = load(Path(sys.argv[1]), os.environ)
    set_up_log(settings.log, Redaction())
    ice = Ice(Path(sys.argv[2]))
    app = App(settings, secrets)
    with (
        ice.before(Transport, "send", _request),
        ice.before(Mirror, "_remote", _git),
        ice.before(Tmux, "start", _start),
        ice.before(Worktree, "create", _create),
    ):
        app.start()
        app.wait()
        time.sleep(1)  # The effects that were held come before the end.
        app.stop()
    os._exit(int(app.wiring.leader_lease.lost))


if __name__ == "__main__":
    main()
