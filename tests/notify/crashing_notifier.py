"""A bot that sends its notifications, and may be killed in the middle; run as a program.

    python -m tests.notify.crashing_notifier DATABASE KIND URL SECRET [POINT]

It ends by itself once nothing is left to send, or is killed at a crash point. SECRET is `-` for
kinds that have none.
"""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bot.notify.notifier import Notifications, Notifier
from bot.notify.senders import sender_of
from bot.store import Store
from bot.system.clock import utc_now
from bot.system.crash_points import CrashPoint
from bot.system.redaction import Redaction
from config.tables import NotifierSettings


def main(database: Path, kind: str, url: str, secret: str, point: str = "") -> None:
    def crash(reached: CrashPoint, about: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = NotifierSettings(kind=kind, url="URL", secret="SECRET")  # type: ignore[arg-type]
    sender = sender_of("team", settings, {"URL": url, "SECRET": secret}, utc_now)
    store = Store(database)
    executor = ThreadPoolExecutor(1)
    notifications = Notifications(
        store,
        [Notifier("team", settings, sender)],
        "https://bot.example/",
        Redaction(),
        0.1,
        utc_now,
        crash,
        lambda: True,
        executor,
    )
    notifications.look()
    while store.notifications.undelivered():
        notifications.rest(60)
        notifications.look()
    executor.shutdown()
    store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
