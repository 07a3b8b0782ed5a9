"""The real bot, run as users run it: `mergewright serve` in its own process."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

_READY_SECONDS = 30.0


class BotProcess:
    """`mergewright serve` with its configuration in `folder`; may be killed and started again."""

    def __init__(self, folder: Path, config: str, secrets: Mapping[str, str]) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/"
        self.page_token = secrets["MERGEWRIGHT_PAGE_TOKEN"]
        self.config = folder / "mergewright.toml"
        self.config.write_text(config.replace("PORT", str(self.port)))
        self._environment = {**os.environ, **secrets}
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / "bot.log"

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it without waiting until it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bot.cli", "serve", "--config", str(self.config)],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        """Wait until it acts. Raises `RuntimeError` with the end of its log if it does not."""
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline and self.alive:
            try:
                if httpx.get(f"{self.url}readyz", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"the bot did not become ready; the end of {self.log}:\n{self.tail()}")

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it with SIGTERM."""
        self._end(signal.SIGTERM)

    def session(self, id: str) -> dict[str, Any]:
        """Return a session as its API shows it; empty while there is none or it does not answer."""
        try:
            answer = httpx.get(
                f"{self.url}api/sessions/{id}",
                headers={"Authorization": f"Bearer {self.page_token}"},
                timeout=2,
            )
        except httpx.TransportError:
            return {}
        found: dict[str, Any] = answer.json() if answer.status_code == 200 else {}
        return found

    def tail(self, lines: int = 30) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _end(self, number: int) -> None:
        if self._process is not None:
            if self.alive:
                self._process.send_signal(number)
            self._process.wait()


def free_port() -> int:
    """Return a free port on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
