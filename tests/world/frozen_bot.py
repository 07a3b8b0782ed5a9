"""A bot that freezes right before it makes the workspace of the first session.

    python -m tests.world.frozen_bot CONFIG FOLDER

It creates the file `workspace` in FOLDER then, and waits until the file `gate` exists. Exits with 1
if another bot has taken its place.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bot.app.application import App
from bot.system.log import set_up_log
from bot.system.redaction import Redaction
from config.load import load
from runtimes.workspaces.worktree import Worktree


def main() -> None:
    settings, secrets = load(Path(sys.argv[1]), os.environ)
    folder, create = Path(sys.argv[2]), Worktree.create
    set_up_log(settings.log, Redaction())

    def held(workspace: Worktree, *args: Any) -> Any:
        if not (folder / "workspace").exists():
            (folder / "workspace").touch()
            while not (folder / "gate").exists():
                time.sleep(0.01)
        return create(workspace, *args)

    app = App(settings, secrets)
    with patch.object(Worktree, "create", held):
        app.start()
        app.wait()
        time.sleep(1)  # What was held comes before the end.
        app.stop()
    os._exit(int(app.wiring.leader_lease.lost))


if __name__ == "__main__":
    main()
