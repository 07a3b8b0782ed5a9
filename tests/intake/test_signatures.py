"""Webhook signatures. The example is the one in GitHub's documentation."""

import hmac

import pytest

from bot.intake.signatures import is_well_formed, verify

SECRET = "It's a Secret to Everybody"
BODY = b"Hello, World!"
SIGNATURE = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


def test_the_documented_example_is_genuine() -> None:
    assert verify([SECRET], BODY, SIGNATURE)


@pytest.mark.parametrize("secrets", [["new", SECRET], [SECRET, "old"]])
def test_each_secret_of_a_rotation_is_tried(secrets: list[str]) -> None:
    assert verify(secrets, BODY, SIGNATURE)


@pytest.mark.parametrize(
    ("secrets", "body", "signature"),
    [
        pytest.param([], BODY, SIGNATURE, id="no secrets"),
        pytest.param([], BODY, b"", id="no secrets and no signature"),
        pytest.param(["other"], BODY, SIGNATURE, id="another secret"),
        pytest.param([SECRET], BODY + b" ", SIGNATURE, id="another body"),
        pytest.param([SECRET], BODY, b"", id="unsigned"),
        pytest.param([SECRET], BODY, SIGNATURE.removeprefix(b"sha256="), id="no scheme"),
        pytest.param([SECRET], BODY, SIGNATURE.replace(b"256", b"1"), id="another scheme"),
        pytest.param([SECRET], BODY, SIGNATURE[:-1], id="cut off"),
        pytest.param([SECRET], BODY, "sha256=ä".encode(), id="not ASCII"),
    ],
)
def test_any_other_signature_is_refused(secrets: list[str], body: bytes, signature: bytes) -> None:
    assert not verify(secrets, body, signature)


def test_an_empty_secret_signs_nothing() -> None:
    signed = b"sha256=" + hmac.digest(b"", BODY, "sha256").hex().encode()
    assert not verify(["", ""], BODY, signed)


@pytest.mark.parametrize(
    "signature",
    [b"", b"sha256=", SIGNATURE[:-1], SIGNATURE + b"0", SIGNATURE.upper(), b"sha1=" + b"0" * 40],
)
def test_a_malformed_signature_is_known_without_the_body(signature: bytes) -> None:
    assert is_well_formed(SIGNATURE)
    assert not is_well_formed(signature)
