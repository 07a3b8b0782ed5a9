"""A runtime of which nothing runs: the contract of `runtimes.base.Runtime`, kept in memory."""

import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from lifecycle.model.facts import Exit
from lifecycle.model.status import Probe
from runtimes.base import Gone, Handle, Launch, Options, Press, Seen, Send, printable


class FakeRuntime:
    """Remembers programs as running. What a program would do, the test says."""

    def __init__(self, options: Options | None = None) -> None:
        self._lock = threading.Lock()
        self._started: set[str] = set()
        self._seen: dict[Handle, Seen] = {}
        self._screens: dict[Handle, str] = {}
        self._sent: dict[Handle, dict[str, str]] = {}

    def handle(self, name: str) -> Handle:
        return Handle(name)

    def start(self, launch: Launch) -> Handle:
        handle = self.handle(launch.name)
        with self._lock:
            if launch.name not in self._started:
                self._started.add(launch.name)
                self._seen[handle] = Seen(runtime=Probe.ALIVE, program=Probe.ALIVE)
                self._screens[handle] = ""
                self._sent[handle] = {}
        return handle

    def look(self) -> Mapping[Handle, Seen]:
        with self._lock:
            return dict(self._seen)

    def send(self, handle: Handle, send: Send) -> None:
        text = printable(send.text)
        if not text:
            raise ValueError(f"nothing to send to {handle}: the message is empty")
        self._keep(handle, send.key, text)

    def press(self, handle: Handle, press: Press) -> None:
        self._keep(handle, press.key, " ".join(press.keys))

    def _keep(self, handle: Handle, key: str, text: str) -> None:
        with self._lock:
            seen = self._seen.get(handle)
            if seen is None or seen.program is not Probe.ALIVE:
                raise Gone(f"{handle} does not run any more")
            self._sent[handle].setdefault(key, text)

    def screens(self, handles: Iterable[Handle]) -> Mapping[Handle, str]:
        with self._lock:
            return {handle: self._screens[handle] for handle in handles if handle in self._screens}

    def stop(self, handle: Handle, grace_seconds: float = 5.0) -> None:
        with self._lock:
            self._seen.pop(handle, None)
            self._screens.pop(handle, None)
            self._sent.pop(handle, None)

    def attach(self, handle: Handle) -> tuple[str, ...]:
        return ("echo", handle)

    def exits(
        self, handle: Handle, code: int | None = 0, signal: int | None = None, lost: str = ""
    ) -> None:
        """Let a program end; `lost` is what ended it, if not itself."""
        with self._lock:
            tail = self._screens[handle]
            end = Exit(at=datetime.now(UTC), code=code, signal=signal, tail=tail, lost=lost)
            self._seen[handle] = replace(self._seen[handle], program=Probe.DEAD, exit=end)

    def prints(self, handle: Handle, text: str) -> None:
        """Let a program print."""
        with self._lock:
            self._screens[handle] += text
            self._seen[handle] = replace(self._seen[handle], output_at=datetime.now(UTC))

    def received(self, handle: Handle) -> list[str]:
        """The messages and keys that a running program got, in order."""
        with self._lock:
            return list(self._sent[handle].values())
