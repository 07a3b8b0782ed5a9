"""The bot as a process: logging, signals, exit status."""

import json
import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from bot.app.application import App
from bot.store import StoreDamaged, StoreFailure
from bot.system.clock import SteadyClock
from bot.system.descriptors import raise_limit
from bot.system.http_server import CannotListen
from bot.system.redaction import Redaction
from bot.text.prompts import PromptError
from config.load import VARIABLES, Secrets, secret_values
from config.settings import LogSettings, Settings
from lifecycle.model.text import plain
from runtimes.base import RuntimeFailure

log = logging.getLogger(__name__)

#: Failures that keep the bot from starting and that a person can fix; each names its remedy.
CANNOT_START = (CannotListen, OSError, PromptError, RuntimeFailure, StoreFailure)
#: With fewer open files a bot holds few connections.
_FEW_FILES = 4096
#: Credentials in URLs and headers.
_CREDENTIAL = re.compile(r"(?<=://)[^/@\s]+(?=@)|(?i:(?<=basic )|(?<=bearer ))[\w.~+/=-]{16,}")


def serve(settings: Settings, secrets: Secrets, *, new_database: bool = False) -> None:
    """Run the bot until a signal stops it.

    Exits with 1 if it lost its lease, and with `StoreDamaged.EXIT_CODE` if its database is damaged.
    `new_database`: whether an empty database may be created beside the files of sessions.
    """
    redact = Redaction(secret_values(settings, secrets, os.environ))
    set_up_log(settings.log, redact)
    if (files := raise_limit()) < _FEW_FILES:
        log.warning(
            "this process may have only %s files open: raise the limit of its service "
            "(LimitNOFILE, ulimit -n) to %s or more",
            *(files, _FEW_FILES),
        )
    for name in VARIABLES.values():
        # Child processes (git, tmux, agents) must not see them.
        os.environ.pop(name, None)
    app = App(settings, secrets, new_database=new_database, clock=SteadyClock())
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
    if damage := app.wiring.store.damage:
        # At once, like a crash: what is under way is repeated by the next bot, and agents run on.
        log.critical("the bot stops: %s", damage)
        logging.shutdown()
        os._exit(StoreDamaged.EXIT_CODE)
    if not app.stop():
        log.warning("stopped before running work had finished: the next start repeats it")
        logging.shutdown()
        os._exit(int(app.wiring.leader_lease.lost))  # Without waiting for the threads that hang.
    if app.wiring.leader_lease.lost:
        raise SystemExit(1)


class RedactingFormatter(logging.Formatter):
    """Formats lines as text or JSON, without known secrets and credentials."""

    def __init__(self, redact: Callable[[str], str], *, as_json: bool) -> None:
        super().__init__()
        self._redact = redact
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        message = _CREDENTIAL.sub("[secret]", self._redact(plain(message)))
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        if self._as_json:
            line = {"at": at, "level": record.levelname, "from": record.name, "message": message}
            return json.dumps(line, ensure_ascii=False)
        # A line break inside a message must not look like a second event.
        body = message.replace("\n", "\n    ")
        return f"{at} {record.levelname:<7} {record.name}: {body}"


def set_up_log(settings: LogSettings, redact: Redaction) -> None:
    """Log to standard error, without the request logs of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(redact, as_json=settings.format == "json"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for name in ("httpx", "httpcore", "githubkit", "libtmux", "git", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
