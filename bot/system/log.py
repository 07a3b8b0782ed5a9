"""The bot's own log: one line an event, and no secret in any of them."""

import json
import logging
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from lifecycle.model.text import plain

#: What stands in addresses and headers.
_CREDENTIAL = re.compile(r"(?<=://)[^/@\s]+(?=@)|(?i:(?<=basic )|(?<=bearer ))[\w.~+/=-]{16,}")


class RedactingFormatter(logging.Formatter):
    """Writes a line as text or JSON, without what `redact` takes out and what looks like one."""

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
    """Send everything to standard error. Libraries that log each request are kept quiet."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(redact, as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("httpx", "httpcore", "githubkit", "libtmux", "git", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It warns of every tick that comes while the one before it still runs, which is meant.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
