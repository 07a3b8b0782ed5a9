"""Verifies webhook signatures. The functions do no I/O.

GitHub sends the HMAC-SHA256 of the raw body as `sha256=` and 64 hexadecimal digits in the header
`X-Hub-Signature-256`:
https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

import hmac
import re
from collections.abc import Sequence

_FORMAT = re.compile(rb"sha256=[0-9a-f]{64}")


def is_well_formed(signature: bytes) -> bool:
    """Whether the header has the form of a signature. Checked before the body is read."""
    return _FORMAT.fullmatch(signature) is not None


def verify(secrets: Sequence[str], body: bytes, signature: bytes) -> bool:
    """Whether `signature`, the header's value, signs `body` with one of the secrets.

    Two secrets allow rotation: deliveries signed with either are accepted. An empty secret never
    matches. All secrets are tried, so that the time taken does not reveal which one matches.
    """
    genuine = False
    for secret in filter(None, secrets):
        expected = "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex()
        genuine |= hmac.compare_digest(expected.encode(), signature)
    return genuine
