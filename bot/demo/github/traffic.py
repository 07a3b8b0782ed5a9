"""What came in, what is to go wrong on purpose, and how much everybody has left."""

import re
import threading
from dataclasses import dataclass, field
from time import time

from bot.demo.github.http import Answer

LIMITS = {"core": 5000, "graphql": 5000}
_ANONYMOUS = 60
_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request that was answered; `operation` names the top fields of a GraphQL document."""

    method: str
    path: str
    user: str
    status: int
    operation: str = ""


@dataclass(kw_only=True)
class Fault:
    """What is to happen to the next requests that match. A status of 0 cuts the connection."""

    method: str
    path: re.Pattern[str]
    times: int
    answer: Answer | None = None
    seconds: float = 0.0
    after: bool = False  #: Only the answer is lost: what was asked for happens.
    operation: str = ""
    lasts: bool = False  #: From then on everything is answered so, until limits are lifted.


@dataclass(kw_only=True)
class _Window:
    used: int = 0
    ends: int = field(default_factory=lambda: int(time()) + _HOUR)


class Traffic:
    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.limits = dict(LIMITS)  #: What everybody may use in an hour.
        self.refused = 0  #: How many requests met a limit.
        self._faults: list[Fault] = []
        self._barred: Fault | None = None
        self._windows: dict[tuple[str, str], _Window] = {}
        self._lock = threading.Lock()

    def plan(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    @property
    def planned(self) -> int:
        """How many planned faults have not come yet."""
        with self._lock:
            return sum(fault.times for fault in self._faults)

    def fault(self, method: str, path: str, body: bytes) -> Fault | None:
        """The planned fault that hits this request, counted."""
        with self._lock:
            fault = self._barred if path.startswith("/api/") else None
            fault = fault or self._next(method, path, body)
            if fault is not None and fault.lasts:
                self._barred = fault
                self.refused += 1
            return fault

    def _next(self, method: str, path: str, body: bytes) -> Fault | None:
        for fault in self._faults:
            hit = fault.method in (method, "*") and fault.path.search(path)
            if hit and fault.operation.encode() in body:
                fault.times -= 1
                if not fault.times:
                    self._faults.remove(fault)
                return fault
        return None

    def saw(self, seen: Seen) -> None:
        with self._lock:
            self.seen.append(seen)

    def refuses(self, login: str, resource: str) -> bool:
        """Whether an account has nothing left, so that its request is not answered; counted."""
        if self.spend(login, resource, 0)["remaining"]:
            return False
        with self._lock:
            self.refused += 1
        return True

    def leave(self, login: str, resource: str, much: int, seconds: int) -> None:
        """Let an account have no more than this, until so many seconds from now."""
        with self._lock:
            used, ends = self.limits[resource] - much, int(time()) + seconds
            self._windows[login, resource] = _Window(used=used, ends=ends)

    def lift(self) -> None:
        """End every limit that holds."""
        with self._lock:
            self._barred = None
            self._windows.clear()

    def spend(self, login: str, resource: str, cost: int = 1) -> dict[str, int]:
        """Take from an account's hour; answers limit, used, remaining and reset."""
        with self._lock:
            key = (login, resource)
            window = self._windows.get(key)
            if window is None or window.ends <= time():
                window = self._windows[key] = _Window()
            window.used += cost
            limit = self.limits[resource] if login else _ANONYMOUS
            return {
                "limit": limit,
                "used": window.used,
                "remaining": max(0, limit - window.used),
                "reset": window.ends,
            }
