"""`POST /webhooks/github`: receives webhook deliveries. The hot route of the server.

A plain ASGI route: it counts and checks the bytes itself, and answers 202 only after the delivery
is committed. The order of its checks is fixed: no body is parsed before its signature is verified.
"""

import asyncio
import concurrent.futures
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import cast

from litestar import asgi
from litestar.handlers import ASGIRouteHandler
from litestar.types import HTTPScope, Receive, Scope, Send
from msgspec import Struct

from bot.intake.inbox import Inbox
from bot.intake.signatures import is_well_formed, verify
from bot.store import Delivery, DeliveryOutcome
from bot.web.health import Health

PATH = "/webhooks/github"

#: A delivery and what its connection waits for.
_Waiting = tuple[Delivery, asyncio.Future[DeliveryOutcome]]

_log = logging.getLogger(__name__)
_DELIVERY = re.compile(r"[A-Za-z0-9-]{1,100}")
_EVENT = re.compile(r"[a-z0-9_]{1,100}")


class WebhookLimits(Struct, frozen=True, kw_only=True):
    """What a stranger may cost."""

    body_bytes: int = 26_214_400  #: GitHub sends no more than 25 MiB.
    unverified_bytes: int = 134_217_728  #: Held over all connections before their signature.
    body_seconds: float = 10.0  #: GitHub itself gives up on a delivery then.


class _Refused(Exception):
    """A delivery that is not taken; the text is shown to people by GitHub."""

    def __init__(self, status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None):
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers or {}


def webhook(
    inbox: Inbox, secrets: Sequence[str], health: Callable[[], Health], limits: WebhookLimits
) -> ASGIRouteHandler:
    """Make the route. A delivery signed with any of the secrets is genuine."""
    receiver = _Receiver(inbox, secrets, health, limits)

    @asgi(PATH, copy_scope=False)
    async def receive_delivery(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            status, text = await receiver.take(
                cast(HTTPScope, scope), receive
            )  # no websockets here
            headers: Mapping[str, str] = {}
        except _Refused as refusal:
            status, text, headers = refusal.status, refusal.text, refusal.headers
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

    async def take(self, scope: HTTPScope, receive: Receive) -> tuple[HTTPStatus, str]:
        """Check one request and keep its delivery; raises `_Refused` for what is wrong with it."""
        if scope["method"] != "POST":
            raise _Refused(
                HTTPStatus.METHOD_NOT_ALLOWED, "deliveries come by POST", {"allow": "POST"}
            )
        headers = dict(scope["headers"])
        body = await self._genuine_body(headers, receive)
        delivery = _delivery(headers, body)
        if reason := self._health().standing_by:
            raise _Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"this instance stands by: {reason}",
                {"retry-after": "10"},
            )
        try:
            accepted = await self._keep(delivery)
        except Exception as problem:
            _log.exception("delivery %s could not be kept", delivery.id)
            raise _Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the delivery could not be kept; redeliver it once the server's log is clean",
                {"retry-after": "10"},
            ) from problem
        if accepted is DeliveryOutcome.DUPLICATE:
            return HTTPStatus.OK, "this delivery was kept before"
        return HTTPStatus.ACCEPTED, "kept"

    def _keep(self, delivery: Delivery) -> asyncio.Future[DeliveryOutcome]:
        """Keep a delivery with all that come while others are being kept, in one commit."""
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
        except Exception as problem:  # noqa: BLE001 - each connection is told, and says so
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
            if kept.done():  # Its connection hung up; the commit came all the same.
                continue
            if problem is not None:
                kept.set_exception(problem)
            else:
                kept.set_result(done.result()[place])
        self._hand_over(loop)

    async def _genuine_body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """Read the body and prove who sent it. What can be refused unread is refused unread."""
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._limits.body_bytes:
            raise self._too_long()
        if not self._secrets:
            raise _Refused(
                HTTPStatus.UNAUTHORIZED,
                "no webhook secret is configured here: set MERGEWRIGHT_WEBHOOK_SECRET",
            )
        signature = headers.get(b"x-hub-signature-256", b"")
        if not is_well_formed(signature):
            raise _Refused(
                HTTPStatus.UNAUTHORIZED,
                "no SHA-256 signature: give the webhook a secret in the repository's settings",
            )
        chunks: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                await self._read(receive, chunks)
            body = b"".join(chunks)
            genuine = verify(self._secrets, body, signature)
        except TimeoutError:
            raise _Refused(
                HTTPStatus.REQUEST_TIMEOUT, "the body did not arrive", {"connection": "close"}
            ) from None
        finally:
            self._unverified -= sum(map(len, chunks))
        if not genuine:
            raise _Refused(
                HTTPStatus.UNAUTHORIZED,
                "wrong signature: the webhook's secret is not the one configured here",
            )
        return body

    async def _read(self, receive: Receive, chunks: list[bytes]) -> None:
        """Read the body into `chunks`; what they hold is counted until the caller takes it off."""
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise _Refused(HTTPStatus.BAD_REQUEST, "the client hung up")
            chunk, more = message.get("body", b""), message.get("more_body", False)
            size += len(chunk)
            self._unverified += len(chunk)
            chunks.append(chunk)
            if size > self._limits.body_bytes:
                raise self._too_long()
            if self._unverified > self._limits.unverified_bytes:
                raise _Refused(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "too many deliveries at once",
                    {"retry-after": "5"},
                )

    def _too_long(self) -> _Refused:
        return _Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"a delivery has at most {self._limits.body_bytes} bytes",
        )


def _delivery(headers: Mapping[bytes, bytes], body: bytes) -> Delivery:
    """The delivery a genuine request carries; its body stays as it came."""
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/json":
        raise _Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "set the webhook's content type to application/json in the repository's settings",
        )
    event = headers.get(b"x-github-event", b"").decode("latin-1")
    if not _EVENT.fullmatch(event):
        raise _Refused(HTTPStatus.BAD_REQUEST, "the header X-GitHub-Event is missing or malformed")
    name = headers.get(b"x-github-delivery", b"").decode("latin-1")
    if not _DELIVERY.fullmatch(name):
        raise _Refused(
            HTTPStatus.BAD_REQUEST, "the header X-GitHub-Delivery is missing or malformed"
        )
    return Delivery(id=name, event=event, at=datetime.now(UTC), body=body, state="new")


async def _answer(send: Send, status: HTTPStatus, text: str, headers: Mapping[str, str]) -> None:
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
