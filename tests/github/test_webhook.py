"""The signature of a delivery. The example is the one in GitHub's own documentation."""

import hmac

import pytest

from bot.intake.signatures import verify

SECRET = "It's a Secret to Everybody"
BODY = b"Hello, World!"
SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


def test_the_documented_example_is_genuine() -> None:
    assert verify([SECRET], BODY, SIGNATURE)


@pytest.mark.parametrize("secrets", [["new", SECRET], [SECRET, "old"]])
def test_each_secret_of_a_rotation_is_tried(secrets: list[str]) -> None:
    assert verify(secrets, BODY, SIGNATURE)


@pytest.mark.parametrize(
    ("secrets", "body", "signature"),
    [
        pytest.param([], BODY, SIGNATURE, id="no secrets"),
        pytest.param([], BODY, "", id="no secrets and no signature"),
        pytest.param(["other"], BODY, SIGNATURE, id="another secret"),
        pytest.param([SECRET], BODY + b" ", SIGNATURE, id="another body"),
        pytest.param([SECRET], BODY, None, id="unsigned"),
        pytest.param([SECRET], BODY, "", id="an empty signature"),
        pytest.param([SECRET], BODY, SIGNATURE.removeprefix("sha256="), id="no scheme"),
        pytest.param([SECRET], BODY, SIGNATURE.replace("256", "1"), id="another scheme"),
        pytest.param([SECRET], BODY, SIGNATURE[:-1], id="cut off"),
        pytest.param([SECRET], BODY, "sha256=ä\udc80", id="no ASCII"),
    ],
)
def test_anything_else_is_not(secrets: list[str], body: bytes, signature: str | None) -> None:
    assert not verify(secrets, body, signature)


def test_an_empty_secret_signs_nothing() -> None:
    signed = "sha256=" + hmac.digest(b"", BODY, "sha256").hex()
    assert not verify(["", ""], BODY, signed)
