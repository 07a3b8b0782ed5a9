"""The busiest route, `POST /webhooks/github`, which receives webhook deliveries.

It is a plain ASGI application, which `bot.web.app` calls without Litestar. It counts and checks
the bytes itself, and answers 202 only after the delivery is committed. The order of its checks is
fixed: no body is parsed before its signature is verified.
"""

import asyncio
import concurrent.futures
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import cast

from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send
from msgspec import Struct

from bot.intake.inbox import Inbox
from bot.intake.signatures import is_well_formed, verify
from bot.store import Delivery, DeliveryOutcome
from bot.system.log import log_fields
from bot.system.metrics import WEBHOOKS
from bot.web.health import Health

PATH = "/webhooks/github"

#: A delivery and the future its connection waits for.
_Waiting = tuple[Delivery, asyncio.Future[DeliveryOutcome]]

_log = logging.getLogger(__name__)
_count_of = cache(WEBHOOKS.labels)
_DELIVERY = re.compile(r"[A-Za-z0-9-]{1,100}")
_EVENT = re.compile(r"[a-z0-9_]{1,100}")


class WebhookLimits(Struct, frozen=True, kw_only=True):
    """Limits for senders that are not verified yet."""

    body_bytes: int = 26_214_400  #: Of one delivery; GitHub sends no more than 25 MiB.
    unverified_bytes: int = 134_217_728  #: In memory for all connections, before verification.


class _Refused(Exception):
    """A delivery is refused. GitHub shows the text in the webhook's recent deliveries."""

    def __init__(self, status: int, text: str, **headers: str):
        super().__init__(text)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def webhook(
    inbox: Inbox, secrets: Sequence[str], health: Callable[[], Health], limits: WebhookLimits
) -> ASGIApp:
    """Return the application, which accepts deliveries that are signed with any of `secrets`.

    Empty secrets do not count. Without a secret, every delivery is refused with the status 401.
    """
    receiver = _Receiver(inbox, secrets, health, limits)

    async def receive_delivery(scope: Scope, receive: Receive, send: Send) -> None:
        headers: Mapping[str, str] = {}
        try:  # `bot.web.app` passes no websockets.
            status, text = await receiver.take(cast(HTTPScope, scope), receive)
        except _Refused as refusal:
            status, text, headers = refusal.status, str(refusal), refusal.headers
        _count_of(status).inc()
        await _answer(send, status, text, headers)

    return receive_delivery


class _Receiver:
    def __init__(
        self,
        inbox: Inbox,
        secrets: Sequence[str],
        health: Callable[[], Health],
        limits: WebhookLimits,
    ):
        self._inbox = inbox
        self._secrets = [secret for secret in secrets if secret]
        self._health = health
        self._limits = limits
        self._unverified = 0
        self._waiting: list[_Waiting] = []
        self._keeping = False

    async def take(self, scope: HTTPScope, receive: Receive) -> tuple[int, str]:
        """Verify a request and store its delivery; return status and text. Raises `_Refused`."""
        if scope["method"] != "POST":
            raise _Refused(405, "use POST for deliveries", allow="POST")
        headers = dict(scope["headers"])
        body = await self._genuine_body(headers, receive)
        delivery = _delivery(headers, body)
        if reason := self._health().standby_reason:
            raise _Refused(503, f"this instance does not act: {reason}", retry_after="10")
        try:
            accepted = await self._keep(delivery)
        except Exception as problem:
            with log_fields(delivery=delivery.id, event=delivery.event):
                _log.exception("delivery %s could not be stored", delivery.id)
            raise _Refused(
                503,
                "the delivery could not be stored; see the server's log, then redeliver it",
                retry_after="10",
            ) from problem
        if accepted is DeliveryOutcome.DUPLICATE:
            return 200, "duplicate delivery"
        return 202, "accepted"

    def _keep(self, delivery: Delivery) -> asyncio.Future[DeliveryOutcome]:
        """Store a delivery, in one transaction with others that arrive at the same time."""
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[DeliveryOutcome] = loop.create_future()
        self._waiting.append((delivery, kept))
        if not self._keeping:
            self._keeping = True
            loop.call_soon(self._hand_over, loop)
        return kept

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, self._waiting = self._waiting, []
        self._keeping = bool(waiting)
        if not waiting:
            return
        try:
            done = self._inbox.accept([delivery for delivery, _ in waiting])
        except Exception as problem:  # noqa: BLE001 - reported by each connection
            done = concurrent.futures.Future()
            done.set_exception(problem)
        done.add_done_callback(
            lambda done: loop.call_soon_threadsafe(self._settle, loop, waiting, done)
        )

    def _settle(
        self,
        loop: asyncio.AbstractEventLoop,
        waiting: list[_Waiting],
        done: concurrent.futures.Future[list[DeliveryOutcome]],
    ) -> None:
        problem = done.exception()
        for place, (_, kept) in enumerate(waiting):
            if kept.done():  # Its connection was closed after the commit.
                continue
            if problem is not None:
                kept.set_exception(problem)
            else:
                kept.set_result(done.result()[place])
        self._hand_over(loop)

    async def _genuine_body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read the body and verify its signature. If possible, raises `_Refused` before reading."""
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._limits.body_bytes:
            raise self._too_long()
        if not self._secrets:
            raise _Refused(401, "this server has no webhook secret: set MERGEWRIGHT_WEBHOOK_SECRET")
        signature = headers.get(b"x-hub-signature-256", b"")
        if not is_well_formed(signature):
            raise _Refused(401, "no SHA-256 signature: set a secret in the webhook's settings")
        chunks: list[bytes] = []
        try:
            await self._read(receive, chunks)
            body = b"".join(chunks)
            genuine = verify(self._secrets, body, signature)
        finally:
            self._unverified -= sum(map(len, chunks))
        if not genuine:
            raise _Refused(
                401, "wrong signature: the webhook's secret differs from MERGEWRIGHT_WEBHOOK_SECRET"
            )
        return body

    async def _read(self, receive: Receive, chunks: list[bytes]) -> None:
        """Read the body into `chunks`.

        Its size is added to `_unverified`; the caller subtracts it.
        """
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise _Refused(400, "the client disconnected")
            chunk, more = message.get("body", b""), message.get("more_body", False)
            size += len(chunk)
            self._unverified += len(chunk)
            chunks.append(chunk)
            if size > self._limits.body_bytes:
                raise self._too_long()
            if self._unverified > self._limits.unverified_bytes:
                raise _Refused(503, "too many concurrent deliveries", retry_after="5")

    def _too_long(self) -> _Refused:
        return _Refused(413, f"deliveries are limited to {self._limits.body_bytes} bytes")


def _delivery(headers: Mapping[bytes, bytes], body: bytes) -> Delivery:
    """Build the delivery from a request whose signature is valid. The body is not parsed.

    Raises `_Refused` if a header is missing or invalid: content type, event or delivery ID.
    """
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise _Refused(415, "set the webhook's content type to application/json")
    event = headers.get(b"x-github-event", b"").decode("latin-1")
    if not _EVENT.fullmatch(event):
        raise _Refused(400, "the header X-GitHub-Event is missing or invalid")
    name = headers.get(b"x-github-delivery", b"").decode("latin-1")
    if not _DELIVERY.fullmatch(name):
        raise _Refused(400, "the header X-GitHub-Delivery is missing or invalid")
    return Delivery(id=name, event=event, at=datetime.now(UTC), body=body)


async def _answer(send: Send, status: int, text: str, headers: Mapping[str, str]) -> None:
    body = f"{text}\n".encode()
    fields = {
        "content-type": "text/plain; charset=utf-8",
        "content-length": str(len(body)),
        **headers,
    }
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        }
    )
    await send({"type": "http.response.body", "body": body, "more_body": False})
