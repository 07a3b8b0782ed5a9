"""Secrets are taken out of whatever others may read."""

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
def test_a_secret_goes_in_every_writing(secret: str) -> None:
    assert redact(f"before {secret} after") == "before [secret] after"


def test_of_a_key_every_line_is_one() -> None:
    assert redact(json.dumps({"key": KEY})).count("[secret]") == 2
    assert "key" in redact("second line of the key")


def test_what_holds_none_stays_as_it_is() -> None:
    agent = Agent(run=1, question="A short question about ghs_ and github_pat_?")
    assert redact(agent) is agent


def test_a_value_loses_what_its_texts_hold() -> None:
    agent = Agent(run=1, question=f"Is {ODD} right?", summary=PLAIN)
    assert redact(agent) == Agent(run=1, question="Is [secret] right?", summary="[secret]")
    assert redact({"body": [PLAIN, 1, None]}) == {"body": ["[secret]", 1, None]}


@pytest.mark.parametrize("secret", [PLAIN, ODD, MADE])
def test_a_mask_is_as_long_as_what_it_hides(secret: str) -> None:
    data = f"before {secret} after".encode()
    stars = b"*" * len(secret.encode())
    assert redact.masked(data) == b"before " + stars + b" after"
    assert redact.longest >= len(stars)


def test_a_secret_that_holds_another_goes_whole() -> None:
    assert (
        Redaction(["inner-secret", "the-inner-secret-and-more"])("the-inner-secret-and-more")
        == "[secret]"
    )
