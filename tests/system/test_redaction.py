"""Secrets are redacted in text that others may read."""

import json
from urllib.parse import quote

import pytest

from bot.system.redaction import Redaction
from lifecycle.model.facts import Agent

PLAIN, ODD = "hunter2-of-the-page", 'a"b\\c/d+\u00e9'
KEY = "-----BEGIN KEY-----\nMIIEowIBAAKCAQEAtest\nsecond0line0of0the0key\n-----END KEY-----\n"
MADE = "ghs_" + "a1B2.c3-D4" * 9
redact = Redaction([PLAIN, ODD, KEY, "short", ""])


@pytest.mark.parametrize(
    "secret",
    [PLAIN, ODD, json.dumps(ODD, ensure_ascii=False)[1:-1], quote(ODD, safe=""), MADE],
)
def test_every_form_of_a_secret_is_redacted(secret: str) -> None:
    assert redact(f"before {secret} after") == "before [secret] after"


def test_every_line_of_a_key_is_redacted() -> None:
    assert redact(json.dumps({"key": KEY})).count("[secret]") == 2
    assert "key" in redact("second line of the key")


def test_text_without_secrets_is_unchanged() -> None:
    agent = Agent(run=1, question="A short question about ghs_ and github_pat_?")
    assert redact(agent) is agent


def test_secrets_in_nested_values_are_redacted() -> None:
    agent = Agent(run=1, question=f"Is {ODD} right?", summary=PLAIN)
    assert redact(agent) == Agent(run=1, question="Is [secret] right?", summary="[secret]")
    assert redact({"body": [PLAIN, 1, None]}) == {"body": ["[secret]", 1, None]}


@pytest.mark.parametrize("secret", [PLAIN, ODD, MADE])
def test_masked_data_keeps_its_length(secret: str) -> None:
    data = f"before {secret} after".encode()
    stars = b"*" * len(secret.encode())
    assert redact.masked(data) == b"before " + stars + b" after"
    assert redact.longest >= len(stars)


def test_a_secret_that_contains_another_is_redacted_whole() -> None:
    assert (
        Redaction(["inner-secret", "the-inner-secret-and-more"])("the-inner-secret-and-more")
        == "[secret]"
    )
