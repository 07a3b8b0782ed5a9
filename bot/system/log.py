"""The log on standard error: lines of text or JSON, without secrets, with fields of context."""

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from pythonjsonlogger.json import JsonFormatter

from bot.system.redaction import Redaction
from config.tables import LogSettings
from lifecycle.model.text import plain
from lifecycle.model.times import from_seconds

#: Credentials in URLs and headers.
_CREDENTIAL = re.compile(r"(?<=://)[^/@\s]+(?=@)|(?i:(?<=basic )|(?<=bearer ))[\w.~+/=-]{16,}")
#: The levels of libraries that would log every request, every retry or every skipped tick.
NOISY = {
    **dict.fromkeys(("httpx", "httpcore", "githubkit", "hishel"), logging.WARNING),
    **dict.fromkeys(("libtmux", "git", "uvicorn", "urllib3"), logging.WARNING),
    **dict.fromkeys(("apscheduler", "opentelemetry"), logging.ERROR),
}
_about: ContextVar[dict[str, str | int]] = ContextVar("about", default={})  # noqa: B039 - replaced


@contextmanager
def log_fields(**fields: str | int) -> Iterator[None]:
    """Add fields such as `session` to every line that this thread or task logs in the block.

    Empty ones are omitted. Only lines of JSON have the fields; in lines of text, the message itself
    names its subject.
    """
    token = _about.set(_about.get() | {name: value for name, value in fields.items() if value})
    try:
        yield
    finally:
        _about.reset(token)


def set_up_log(settings: LogSettings, redact: Redaction) -> None:
    """Log to standard error, without the request logs of libraries."""
    handler = logging.StreamHandler(sys.stderr)
    json = settings.format == "json"
    handler.setFormatter(RedactingJsonFormatter(redact) if json else RedactingFormatter(redact))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for name, level in NOISY.items():
        logging.getLogger(name).setLevel(level)


class RedactingFormatter(logging.Formatter):
    """Formats a line of text, without known secrets and credentials."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        at = from_seconds(record.created).isoformat(timespec="milliseconds")
        # A line break inside a message must not look like a second event.
        body = _clean(self._redact, message).replace("\n", "\n    ")
        return f"{at} {record.levelname:<7} {record.name}: {body}"


class RedactingJsonFormatter(JsonFormatter):
    """Formats a line of JSON, without known secrets and credentials in any field.

    Uses python-json-logger rather than structlog, because all code and libraries here use
    `logging`.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__(
            ["levelname", "name", "message"],
            rename_fields={"levelname": "level", "name": "from", "exc_info": "error"},
            timestamp="at",
            json_ensure_ascii=False,
        )
        self._redact = redact

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        """Add the fields of `log_fields`, and remove secrets from every text."""
        return {
            name: _clean(self._redact, value) if isinstance(value, str) else value
            for name, value in {**log_data, **_about.get()}.items()
        }


def _clean(redact: Callable[[str], str], text: str) -> str:
    return _CREDENTIAL.sub("[secret]", redact(plain(text)))
