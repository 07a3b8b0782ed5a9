"""The bot's log: one event per line, without secrets and control characters."""

import json
import logging
import sys

import pytest

from bot.app.process import RedactingFormatter
from bot.system.redaction import Redaction


def line(message: str, *, as_json: bool = False, secrets: tuple[str, ...] = ()) -> str:
    record = logging.LogRecord("bot.x", logging.INFO, "x.py", 1, "%s", (message,), None)
    return RedactingFormatter(Redaction(secrets), as_json=as_json).format(record)


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
    said = RedactingFormatter(Redaction(["the-known-secret"]), as_json=False).format(record)
    assert "bad [secret]" in said
