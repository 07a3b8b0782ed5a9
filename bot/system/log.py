"""The bot's log: one line per event, without secrets."""

import json
import logging
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from lifecycle.model.text import plain

#: Credentials in URLs and headers.
_CREDENTIAL = re.compile(r"(?<=://)[^/@\s]+(?=@)|(?i:(?<=basic )|(?<=bearer ))[\w.~+/=-]{16,}")


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


def set_up(level: str, *, as_json: bool, redact: Callable[[str], str]) -> None:
    """Set up logging to standard error, without the request logs of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(redact, as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("httpx", "httpcore", "githubkit", "libtmux", "git", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns of every skipped tick, which is intended.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
