"""The stand-in GitHub with faults: requests that fail, limits that are reached, lost webhooks."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from bot.demo.github import GitHubServer
from bot.demo.github.http import Answer, Request
from bot.demo.github.traffic import Traffic, Window
from bot.demo.github.webhooks import Delivery, Hook, Webhooks


@dataclass(kw_only=True)
class Fault:
    """A fault of the next `times` matching requests. An answer's status 0 cuts the connection."""

    method: str
    path: re.Pattern[str]
    times: int
    answer: Answer | None = None  #: The response; None: the normal one.
    seconds: float = 0.0  #: The delay of the response.
    after: bool = False  #: Whether the request takes effect, and only its response is replaced.
    operation: str = ""  #: A text in the body of matching requests; empty: any body.
    lasts: bool = False  #: Every later API request gets the same response until limits are lifted.


class FaultyTraffic(Traffic):
    """HTTP traffic with planned faults and limits."""

    def __init__(self) -> None:
        super().__init__()
        self._faults: list[Fault] = []
        self._lasting: Fault | None = None

    def plan(self, fault: Fault) -> None:
        """Add a fault for the next requests that match it."""
        with self.lock:
            self._faults.append(fault)

    @property
    def planned(self) -> int:
        """How many planned faults have not happened yet."""
        with self.lock:
            return sum(fault.times for fault in self._faults)

    def fault(self, request: Request) -> Fault | None:
        """Return the fault of this request, and count it as used; None if there is none."""
        with self.lock:
            fault = self._lasting if request.path.startswith("/api/") else None
            fault = fault or self._next(request)
            if fault is not None and fault.lasts:
                self._lasting = fault
                self.refused += 1
            return fault

    def _next(self, request: Request) -> Fault | None:
        for fault in self._faults:
            hit = fault.method in (request.method, "*") and fault.path.search(request.path)
            if hit and fault.operation.encode() in request.body:
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
                return fault
        return None

    def leave(self, login: str, resource: str, remaining: int, seconds: int) -> None:
        """Leave an account `remaining` requests or points of a rate limit for `seconds`."""
        with self.lock:
            used, ends = self.limits[resource] - remaining, int(time()) + seconds
            self.windows[login, resource] = Window(used=used, ends=ends)

    def lift(self) -> None:
        """Remove every rate limit."""
        with self.lock:
            self._lasting = None
            self.windows.clear()


class FaultyWebhooks(Webhooks):
    """Webhook deliveries, of which the next can be lost."""

    to_lose = 0

    def _queue(self, delivery: Delivery) -> None:
        if not self.to_lose:
            super()._queue(delivery)
            return
        self.to_lose -= 1
        delivery.status, delivery.status_code = "failed to connect to host", 502
        self.deliveries.append(delivery)


class FaultyGitHub(GitHubServer):
    """A GitHub whose requests and webhooks fail as planned by a test."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.traffic: FaultyTraffic = FaultyTraffic()
        #: The kinds of writes of which one response was lost; None: no response is lost.
        self.lost: set[str] | None = None

    def _new_webhooks(self) -> Webhooks:
        self._faulty_webhooks = FaultyWebhooks(self.world)
        return self._faulty_webhooks

    @property
    def hooks(self) -> list[Hook]:
        """All webhooks, with their secrets."""
        return self._faulty_webhooks.hooks

    def lose_next(self, count: int = 1) -> None:
        """Lose the next `count` webhooks; GitHub can redeliver them."""
        with self.world.lock:
            self._faulty_webhooks.to_lose += count

    def fail_next(
        self,
        method: str,
        path_regex: str,
        status: int = 502,
        headers: Mapping[str, str] = {},
        body: bytes = b"",
        times: int = 1,
        after: bool = False,
        operation: str = "",
    ) -> None:
        """Replace the response to the next matching requests.

        A status of 0 cuts the connection. With `after`, the request takes effect nevertheless.
        `operation` is a text that must be in the body, to distinguish GraphQL documents.
        """
        answer = Answer(status=status, body=body, headers=dict(headers))
        self.traffic.plan(
            Fault(
                method=method,
                path=re.compile(path_regex),
                times=times,
                answer=answer,
                after=after,
                operation=operation,
            )
        )

    def limit_next(self, method: str, path_regex: str, seconds: int, status: int = 403) -> None:
        """Apply a secondary rate limit to all API requests from the next matching request on.

        Limited requests have no effect. The limit lasts until `traffic.lift` is called; `seconds`
        is only its `Retry-After`.
        """
        body = {"message": "You have exceeded a secondary rate limit.", "status": str(status)}
        headers = {"Retry-After": str(seconds), "Content-Type": "application/json; charset=utf-8"}
        answer = Answer(status=status, body=body, headers=headers)
        path = re.compile(path_regex)
        self.traffic.plan(Fault(method=method, path=path, times=1, answer=answer, lasts=True))

    def delay_next(self, method: str, path_regex: str, seconds: float, times: int = 1) -> None:
        """Delay the next `times` matching requests by `seconds`."""
        path = re.compile(path_regex)
        self.traffic.plan(Fault(method=method, path=path, times=times, seconds=seconds))

    def lose_first_responses(self) -> None:
        """Lose the first response to each kind of write, which takes effect all the same."""
        self.lost = set()

    def _loses(self, request: Request) -> bool:
        kind = _kind_of_write(request)
        with self.traffic.lock:
            if self.lost is None or not kind or kind in self.lost:
                return False
            self.lost.add(kind)
            return True

    async def _respond(self, request: Request) -> Answer:
        fault = self.traffic.fault(request)
        if fault is None and self._loses(request):
            await super()._respond(request)
            return Answer(status=0, body=b"", headers={})
        if fault is None:
            return await super()._respond(request)
        if fault.seconds:
            await asyncio.sleep(fault.seconds)
        if fault.answer is None:
            return await super()._respond(request)
        if fault.after:
            await super()._respond(request)
        return fault.answer

    async def _send(self, answer: Answer, send: Any) -> None:
        if answer.status:
            await super()._send(answer, send)
            return
        # Promising a byte that is never sent makes the server close the connection.
        headers = [(b"content-length", b"1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})


def _kind_of_write(request: Request) -> str:
    """Return the kind of write of a request, without numbers and commits; empty: a read."""
    if request.path.endswith("graphql"):
        found = re.search(rb"mutation\b[^{]*{\s*(\w+)", request.body.replace(b"\\n", b" "))
        return found[1].decode() if found else ""
    if request.method in ("GET", "HEAD") or request.path.endswith("git-upload-pack"):
        return ""
    path = re.sub(r"(?<=/heads/|labels/).*|\b\d+\b|\b[0-9a-f]{40}\b", "*", request.path)
    return f"{request.method} {path.partition('acme/widgets')[2]}"
