"""Secrets are redacted in text that others may read."""

import contextlib
import html
import json
import string
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from random import Random
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import msgspec
import pytest

from bot.system.redaction import Redaction
from bot.system.secret_forms import looks_like_secret
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


# -- any secret, anywhere -------------------------------------------------------------------------

#: How a text is written inside another one.
ESCAPES: Mapping[str, Callable[[str], str]] = {
    "JSON": json.dumps,
    "JSON without ASCII escapes": lambda text: json.dumps(text, ensure_ascii=False),
    "a URL": lambda text: quote(text, safe=""),
    "a form": quote_plus,
    "HTML": html.escape,
    "Python": repr,
    "a field of JSON": lambda text: json.dumps({"nested": [text]}),
    "Base64": lambda text: b64encode(text.encode()).decode(),
}
#: What may stand before a secret; a token also has a boundary.
BEFORE = ("", " ", "\n", "\t", "\r\n", "\x1b[31m", "\x1b[0m", "=", ": '", '"', "\\", "%", "é", "/")
ALPHABET = "abcdefgXYZ0123456789" * 3 + "\"'\\/+=&<>%$#-_.:;,!? \té\N{SNOWMAN}\N{GRINNING FACE}"


class Nested(msgspec.Struct, frozen=True):
    """A frozen struct with nested structs, like those in `lifecycle.model.facts`."""

    question: str
    models: dict[str, "Nested"] = {}
    notes: tuple[str, ...] = ()
    at: datetime | None = None


def _secret(random: Random) -> str:
    if random.random() < 0.3:
        return "".join(random.choices(string.ascii_letters + string.digits, k=20))
    return "".join(random.choices(ALPHABET, k=random.randint(8, 40))).strip() + "x1"


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        with contextlib.suppress(msgspec.DecodeError):
            inner = msgspec.json.decode(value)
            yield from _strings(inner) if not isinstance(inner, int | float) else ()
    elif isinstance(value, msgspec.Struct):
        yield from _strings(msgspec.to_builtins(value))
    elif isinstance(value, Mapping):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


@pytest.mark.parametrize("seed", range(300))
def test_a_secret_is_redacted_at_any_position_nesting_and_escape(seed: int) -> None:
    random = Random(seed)
    secret, other = _secret(random), _secret(random)
    redaction = Redaction([other, secret], common_forms=True)
    token = seed % 3 == 0
    if token:
        secret = random.choice(("ghp_", "ghs_", "github_pat_")) + "Ab1" * 12
    before = random.choice(BEFORE if not token else [one for one in BEFORE if one != "é"])
    text = f"{before}{secret}{random.choice(BEFORE)}"
    words = [*(one for one in ESCAPES if one != "Base64")]
    shown = secret
    for escape in random.choices(words, k=random.randint(0, 3)):
        text, shown = ESCAPES[escape](text), ESCAPES[escape](shown)
    if not token and random.random() < 0.2:
        text = ESCAPES["Base64"]("ab"[: random.randint(0, 2)] + text)
    value = Nested(question="", models={"a": Nested(question=text, notes=("b", text))})
    plain = [text, {"body": text, text: [None, 1, text]}, value, json.dumps({"a": [text]})]
    for one in plain:
        safe = redaction(one)
        assert type(safe) is type(one)
        for found in _strings(safe):
            assert secret not in found
            assert shown not in found
            assert secret not in unquote(html.unescape(found))
            with contextlib.suppress(ValueError):
                assert secret not in b64decode(found, validate=True).decode("utf-8", "replace")
    masked = redaction.masked(text.encode())
    assert len(masked) == len(text.encode())
    assert shown.encode() not in masked


FORMS = (
    "sk-ant-api03-" + "Ab1_-" * 10,
    "sk-proj-" + "Ab1_-" * 10,
    "sk-" + "Ab1" * 16,
    "AKIA" + "IOSFODNN7EXAMPLE"[:16],
    "xoxb-12345678901-" + "Ab1" * 8,
    "xapp-1-A0123-123-" + "ab1" * 20,
    "https://hooks.slack.com/services/T01234567/B01234567/" + "Ab1" * 8,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "Ab1_-" * 8,
    "github_pat_" + "Ab1" * 7 + "A_" + "Ab1" * 19 + "Ab",
    "AIza" + "Ab1_-" * 7,
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAtest\nabcd==\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nAAAAQwAAAAdz",
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["", "\n", "\t", "\x1b[1;31m", "key=", '"'])
def test_the_common_forms_of_secrets_do_not_leave_the_machine(form: str, before: str) -> None:
    outgoing = Redaction(common_forms=True)
    assert form not in outgoing(f"a {before}{form} b")
    safe = outgoing({"body": f"a{before}{form} b" if before else form})
    assert "[secret]" in safe["body"]
    assert form.splitlines()[-1] not in safe["body"]
    assert form not in json.loads(outgoing(json.dumps({"a": f"{before}{form}"})))["a"]


@pytest.mark.parametrize(
    "text",
    [
        "task-ant-colony and sk-some-long-css-class-name-that-is-no-secret",
        "highs_and_lows_of_a_long_summer and laughs_and_giggles_forever",
        "-----BEGIN CERTIFICATE-----\nMIIEowIBAAKCAQEAtest\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIEowIBAAKCAQEAtest\n-----END PUBLIC KEY-----",
        "eyJ.eyJ.abc and a sha 0123456789abcdef0123456789abcdef01234567",
        "ghs_ and github_pat_ and AKIA",
    ],
)
def test_what_only_resembles_a_secret_is_kept(text: str) -> None:
    assert Redaction(common_forms=True)(text) == text


def test_beginnings_of_tokens_without_an_end_are_read_in_bounded_time() -> None:
    assert not looks_like_secret("-eyJ" * 60_000)
    token = f"eyJ{'a' * 20}.eyJ{'b' * 20}.{'c' * 20}"
    for text in (token, f"x-{token}", f"-eyJ-{token}", f"\\n{token}"):
        assert looks_like_secret(text), text
    assert looks_like_secret(f"x {token.replace('a' * 20, 'a' * 20_000)}")
