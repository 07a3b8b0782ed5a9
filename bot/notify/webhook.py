"""Sends messages as signed webhooks.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime

import httpx
import msgspec

from bot.notify.message import Notification, NotSent
from config.notifier_secrets import signing_keys

_SECONDS = 10.0
#: Failures before anything of a request was sent.
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class WebhookSender:
    """Sends to one URL. The receiver recognises a repeated message by the header `webhook-id`."""

    def __init__(self, url: str, secret: str, clock: Callable[[], datetime]) -> None:
        self._url = url
        self._keys = signing_keys(secret)
        self._clock = clock

    def send(self, message: Notification, *, repeated: bool) -> None:
        """Send a message. Raises `NotSent` unless the response's status is 2xx."""
        what = {"type": message.type, "timestamp": message.at, "data": message.data}
        body = msgspec.json.encode(what)
        at = int(self._clock().timestamp())
        headers = {
            "content-type": "application/json",
            "user-agent": "Mergewright",
            "webhook-id": message.id,
            "webhook-timestamp": str(at),
            "webhook-signature": signature(self._keys, message.id, at, body),
        }
        try:
            # The response's body is not read. Redirects are not followed.
            with httpx.stream(
                "POST", self._url, content=body, headers=headers, timeout=_SECONDS
            ) as response:
                status = response.status_code
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as failure:
            perhaps = isinstance(failure, httpx.TransportError) and not isinstance(failure, _UNSENT)
            raise NotSent(str(failure) or type(failure).__name__, perhaps=perhaps) from None
        if not 200 <= status < 300:
            raise NotSent(f"the receiver answers {status}")

    def address(self) -> tuple[str, int]:
        """Return the URL's host and port. Raises `NotSent`."""
        try:
            url = httpx.URL(self._url)
            host = url.host
        except (httpx.InvalidURL, UnicodeError) as failure:
            raise NotSent(str(failure)) from None
        return host, url.port or (443 if url.scheme == "https" else 80)


def signature(keys: tuple[bytes, ...], id: str, at: int, body: bytes) -> str:
    """Return the header `webhook-signature`, with one signature for each key.

    `at` is the Unix time in the header `webhook-timestamp`.
    """
    signed = b".".join((id.encode(), str(at).encode(), body))
    made = (b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    return " ".join(f"v1,{one}" for one in made)
