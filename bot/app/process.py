"""The bot as a process: logging, signals, exit status."""

import logging
import os
import signal

from bot.app.application import App
from bot.store import StoreFailure
from bot.system import log as logs
from bot.system.http_server import CannotListen
from bot.system.redaction import Redaction
from bot.text.prompts import PromptError
from config.load import VARIABLES, Secrets, secret_values
from config.settings import Settings
from runtimes.base import RuntimeFailure

log = logging.getLogger(__name__)

#: Failures that keep the bot from starting and that a person can fix; each names its remedy.
CANNOT_START = (CannotListen, OSError, PromptError, RuntimeFailure, StoreFailure)


def serve(settings: Settings, secrets: Secrets) -> None:
    """Run the bot until a signal stops it. Exits with 1 if it cannot run or lost its lease."""
    redact = Redaction(secret_values(settings, secrets, os.environ))
    logs.set_up(settings.log.level, as_json=settings.log.format == "json", redact=redact)
    for name in VARIABLES.values():
        # Child processes (git, tmux, agents) must not see them.
        os.environ.pop(name, None)
    app = App(settings, secrets)
    if settings.runtime.sandbox == "":
        log.warning(
            "agents run with the rights of this user, without a sandbox; "
            'say so with sandbox = "none" under [runtime] to have this accepted'
        )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: app.end())
    app.start()
    host, port = settings.server.host, app.server.port
    log.info("listening on %s, port %s, for %s", host, port, settings.public_url)
    app.wait()
    if not app.stop():
        log.warning("stopped before running work had finished: the next start repeats it")
        logging.shutdown()
        os._exit(int(app.wiring.leader_lease.lost))  # Without waiting for the threads that hang.
    if app.wiring.leader_lease.lost:
        raise SystemExit(1)
