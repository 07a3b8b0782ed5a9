"""The bot's log: one event per line, without secrets and control characters."""

import json
import logging
import sys
from datetime import datetime

import pytest

from bot.system.log import RedactingFormatter, RedactingJsonFormatter, log_fields
from bot.system.redaction import Redaction


def line(message: str, *, as_json: bool = False, secrets: tuple[str, ...] = ()) -> str:
    record = logging.LogRecord("bot.x", logging.INFO, "x.py", 1, "%s", (message,), None)
    formatter = RedactingJsonFormatter if as_json else RedactingFormatter
    return formatter(Redaction(secrets)).format(record)


def test_a_line_break_cannot_forge_a_log_line() -> None:
    forged = "a\n2030-01-01T00:00:00.000+00:00 INFO bot: b\rc\x85d\u2028e\x0bf"
    first, *rest = line(forged).splitlines()
    assert first.endswith("bot.x: a")
    assert len(rest) == 1
    assert rest[0].startswith("    ")
    assert len(line(forged, as_json=True).splitlines()) == 1


def test_control_characters_are_removed() -> None:
    assert line("\x1b]0;title\x07red \x1b[31mtext").endswith("bot.x: red text")
    assert json.loads(line("\x1b[31mred", as_json=True))["message"] == "red"


@pytest.mark.parametrize(
    "secret",
    [
        "the-known-secret",
        "ghs_" + "a1B2" * 9,
        "github_pat_" + "a1B2" * 9,
        "eC1hY2Nlc3MtdG9rZW46Z2hz",
        "user:pass-word",
    ],
)
def test_secrets_are_redacted_also_those_created_at_run_time(secret: str) -> None:
    said = f"known {secret} basic {secret}, https://{secret}@github.com/a/b"
    if secret.startswith("eC1"):
        said = f"Authorization: Basic {secret}"
    if secret.startswith("user"):
        said = f"https://{secret}@github.com/a/b"
    assert secret not in line(said, secrets=("the-known-secret",))


def test_secrets_are_redacted_in_exceptions() -> None:
    try:
        raise ValueError("bad the-known-secret")
    except ValueError:
        record = logging.LogRecord("bot.x", logging.ERROR, "x", 1, "failed", (), sys.exc_info())
    redact = Redaction(["the-known-secret"])
    assert "bad [secret]" in RedactingFormatter(redact).format(record)
    assert "bad [secret]" in json.loads(RedactingJsonFormatter(redact).format(record))["error"]


def test_a_line_of_json_has_time_level_origin_and_what_it_is_about() -> None:
    with log_fields(session="widgets-12", delivery=""), log_fields(pull_request=34):
        fields = json.loads(line("it breaks", as_json=True))
    assert datetime.fromisoformat(fields.pop("at")).tzinfo is not None
    assert fields == {
        "level": "INFO",
        "from": "bot.x",
        "message": "it breaks",
        "session": "widgets-12",
        "pull_request": 34,
    }
    assert "session" not in json.loads(line("else", as_json=True))


def test_secrets_are_redacted_in_fields() -> None:
    with log_fields(branch="the-known-secret"):
        assert "known" not in line("x", as_json=True, secrets=("the-known-secret",))
