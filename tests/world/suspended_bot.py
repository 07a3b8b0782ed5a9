"""A bot that suspends itself in the middle of work: during a reconciliation and an action.

    python -m tests.world.suspended_bot CONFIG FOLDER

It waits at each decision about the session `widgets-2`, where it creates the file `reconcile` in
FOLDER, and at each action of any session, where it creates the file `action`. It continues once the
file `gate` exists there. It appends each crash point to the file `steps`. Exits with 1 if the bot
has lost its lease.
"""

import os
import sys
import time
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

from bot.app.application import App
from bot.decide import reconciler
from bot.system.crash_points import CrashPoint
from bot.system.log import set_up_log
from bot.system.redaction import Redaction
from config.load import load
from lifecycle.decide import Decision, decide
from lifecycle.model.facts import Facts
from lifecycle.model.policy import Policy

SECOND = "widgets-2"


class Gate:
    """Suspends the bot until the file `gate` exists."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def decides(self, facts: Facts, policy: Policy, now: datetime) -> Decision:
        decision = decide(facts, policy, now)
        if facts.session == SECOND:
            self._suspend("reconcile")
        return decision

    def notes(self, step: CrashPoint, about: str) -> None:
        with (self._folder / "steps").open("a") as file:
            file.write(f"{step} {about}\n")
        if step is CrashPoint.TAKEN:
            self._suspend("action")

    def _suspend(self, what: str) -> None:
        (self._folder / what).touch()
        while not (self._folder / "gate").exists():
            time.sleep(0.01)


def main() -> None:
    settings, secrets = load(Path(sys.argv[1]), os.environ)
    set_up_log(settings.log, Redaction())
    gate = Gate(Path(sys.argv[2]))
    app = App(settings, secrets, crash_point=gate.notes)
    with patch.object(reconciler, "decide", gate.decides):
        app.start()
        app.wait()
        app.stop()
    os._exit(int(app.wiring.leader_lease.lost))


if __name__ == "__main__":
    main()
