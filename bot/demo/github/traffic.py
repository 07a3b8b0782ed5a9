"""Requests that were answered, and the rate limits of every account."""

import threading
from dataclasses import dataclass, field
from time import time

LIMITS = {"core": 5000, "graphql": 5000}
_ANONYMOUS = 60
_HOUR = 3600


@dataclass(frozen=True, kw_only=True)
class Seen:
    """An answered request. `operation` names the top-level fields of a GraphQL document."""

    method: str
    path: str
    user: str
    status: int
    operation: str = ""


@dataclass(kw_only=True)
class Window:
    used: int = 0
    ends: int = field(default_factory=lambda: int(time()) + _HOUR)


class Traffic:
    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.limits = dict(LIMITS)  #: Each account's hourly limits, by resource.
        self.refused = 0  #: How many requests were rate limited.
        self.windows: dict[tuple[str, str], Window] = {}
        self.lock = threading.Lock()

    def saw(self, seen: Seen) -> None:
        with self.lock:
            self.seen.append(seen)

    def refuses(self, login: str, resource: str) -> bool:
        """Whether an account's limit is used up. If so, counts the refused request."""
        if self.spend(login, resource, 0)["remaining"]:
            return False
        with self.lock:
            self.refused += 1
        return True

    def spend(self, login: str, resource: str, cost: int = 1) -> dict[str, int]:
        """Charge an account. Returns its `limit`, `used`, `remaining` and `reset`."""
        with self.lock:
            key = (login, resource)
            window = self.windows.get(key)
            if window is None or window.ends <= time():
                window = self.windows[key] = Window()
            window.used += cost
            limit = self.limits[resource] if login else _ANONYMOUS
            return {
                "limit": limit,
                "used": window.used,
                "remaining": max(0, limit - window.used),
                "reset": window.ends,
            }
