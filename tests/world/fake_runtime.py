"""A runtime in memory that implements the protocol `runtimes.base.Runtime`."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from lifecycle.model.facts import Exit
from lifecycle.model.status import Probe
from runtimes.base import Gone, Launch, Seen, printable


class FakeRuntime:
    """Records programs as running; the test sets what they do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: set[str] = set()
        self._seen: dict[str, Seen] = {}
        self._screens: dict[str, str] = {}
        self._sent: dict[str, dict[str, str]] = {}
        self._typed = 0

    def start(self, launch: Launch) -> None:
        name = launch.name
        with self._lock:
            if name not in self._started:
                self._started.add(name)
                self._seen[name] = Seen(runtime=Probe.ALIVE, program=Probe.ALIVE)
                self._screens[name] = ""
                self._sent[name] = {}

    def look(self) -> Mapping[str, Seen]:
        with self._lock:
            return dict(self._seen)

    def send(self, name: str, text: str, key: str, submit_seconds: float = 0.0) -> None:
        text = printable(text)
        if not text:
            raise ValueError(f"nothing to send to {name}: the message is empty")
        self._keep(name, key, text)

    def press(self, name: str, keys: Sequence[str], key: str) -> None:
        self._keep(name, key, " ".join(keys))

    def type(self, name: str, keys: Sequence[str], paste: str = "") -> None:
        self._typed += 1
        self._keep(name, f"typed {self._typed}", f"{printable(paste)}{' '.join(keys)}")

    def _keep(self, name: str, key: str, text: str) -> None:
        with self._lock:
            seen = self._seen.get(name)
            if seen is None or seen.program is not Probe.ALIVE:
                raise Gone(f"{name} does not run any more")
            self._sent[name].setdefault(key, text)

    def screens(
        self, names: Iterable[str], *, coloured: bool = False, recent: bool = False
    ) -> Mapping[str, str]:
        with self._lock:
            return {name: self._screens[name] for name in names if name in self._screens}

    def stop(self, name: str, grace_seconds: float = 5.0) -> None:
        with self._lock:
            self._seen.pop(name, None)
            self._screens.pop(name, None)
            self._sent.pop(name, None)

    def attach(self, name: str) -> tuple[str, ...]:
        return ("echo", name)

    def exits(
        self, name: str, code: int | None = 0, signal: int | None = None, lost: str = ""
    ) -> None:
        """End a program; a non-empty `lost` is the reason why it ended without an exit status."""
        with self._lock:
            tail = self._screens[name]
            end = Exit(at=datetime.now(UTC), code=code, signal=signal, tail=tail, lost=lost)
            self._seen[name] = replace(self._seen[name], program=Probe.DEAD, exit=end)

    def prints(self, name: str, text: str) -> None:
        """Append text to a program's screen."""
        with self._lock:
            self._screens[name] += text
            self._seen[name] = replace(self._seen[name], output_at=datetime.now(UTC))

    def received(self, name: str) -> list[str]:
        """Return the messages and keys sent to a running program, in order."""
        with self._lock:
            return list(self._sent[name].values())
