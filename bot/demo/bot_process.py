"""The real bot, run as users run it: `mergewright serve` in its own process."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bot.demo import agent as scripted_agent
from bot.demo.scene import REPOSITORY

#: Far more than any start takes, also on a busy machine. A bot that cannot start exits.
_READY_SECONDS = 300.0
_CONFIG = """
[server]
port = {port}
data = "{data}"
public-url = "http://127.0.0.1:{port}/"
{sign_in}
[github]
api-url = "{url}api/v3/"
app-id = "{app_id}"
allowed-owners = ["{owner}"]

[projects.greetings]
repository = "{repository}"
agent = "{agent}"

[agent-types.scripted]
program = "shell"
command = ["{python}", "-I", "{script}"]
{env}

{agent_types}
[runtime]
isolation = "{isolation}"

[limits]
sessions = {sessions}
memory-per-session-mb = 0   # the scripted agent needs next to nothing

"""
_SIGN_IN = """
[sign-in]
method = "both"
client-id = "{client_id}"
"""
#: Shorter times than by default, because everybody in the demo answers at once.
THRESHOLDS = """
[policy]
mode = "merge"
settle-seconds = 1
review-debounce-seconds = 0.5
merge-grace-seconds = 2
message-grace-seconds = 3

[timing]
sweep-seconds = 0.25
resync-seconds = 5
lease-seconds = 3
write-interval-seconds = 0.1
action-retry-seconds = 0.25
action-tries = 20
"""


def configuration(
    folder: Path,
    github_url: str,
    *,
    agent: str = "scripted",
    agent_log: Path | None = None,
    isolation: str = "none",
    agent_types: str = "",
    sessions: int = 4,
    app_id: str = "",
    client_id: str = "",
    port: int = 0,
    thresholds: str = THRESHOLDS,
) -> str:
    """Return the configuration of a bot with its data in `folder`. Port 0 picks a free port.

    `agent_log` is the file in which scripted agents log what they receive. If it is None, each run
    logs to a file in its spool, where isolated agents can write too. `agent_types` has more tables
    `[agent-types.NAME]` as text. At most `sessions` run at the same time. Without an `app_id`, the
    bot authenticates with a token. With a `client_id`, people can sign in with the App of that id.
    `thresholds` has the tables `[policy]` and `[timing]` as text.
    """
    config = _CONFIG.format(
        port=port or free_port(),
        data=folder / "data",
        url=github_url,
        app_id=app_id,
        repository=REPOSITORY,
        owner=REPOSITORY.partition("/")[0],
        agent=agent,
        python=sys.executable,
        script=scripted_agent.__file__,
        env=f'env = {{ DEMO_AGENT_LOG = "{agent_log}" }}' if agent_log else "",
        isolation=isolation,
        sign_in=_SIGN_IN.format(client_id=client_id) if client_id else "",
        agent_types=agent_types,
        sessions=sessions,
    )
    return config + thresholds


class BotProcess:
    """`mergewright serve` with its configuration in `folder`.

    It may be killed and started again.
    """

    def __init__(
        self,
        folder: Path,
        config: str,
        secrets: Mapping[str, str],
        name: str = "mergewright",
        descriptors: int = 0,
        module: str = "bot.cli",
    ) -> None:
        """Write the text `config` to the bot's configuration file, without starting the bot.

        `secrets` are environment variables for the bot, among them MERGEWRIGHT_PAGE_TOKEN. Its
        configuration and log are the files `NAME.toml` and `NAME.log` in the folder, so bots in one
        folder need different names.
        `descriptors` is a hard limit on the bot's open files; if 0, the limit of this process
        applies. `module` is the Python module of the bot's command line.
        """
        self._module = module
        self.folder = folder
        self.name = name
        self.port = int(tomllib.loads(config)["server"]["port"])
        self.url = f"http://127.0.0.1:{self.port}/"
        self.page_token = secrets["MERGEWRIGHT_PAGE_TOKEN"]
        self.config = folder / f"{name}.toml"
        self.config.write_text(config)
        self._limited = (
            ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh") if descriptors else ()
        )
        self._environment = {**os.environ, **secrets}
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / f"{name}.log"

    @property
    def alive(self) -> bool:
        """Whether the bot's process runs."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the bot without waiting until it is ready."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._limited,
                    *(sys.executable, "-m", self._module, "serve", "--config", str(self.config)),
                ],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        """Wait until the bot is ready.

        Raises `RuntimeError`, with the end of the bot's log, if it exits or takes too long.
        """
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline and self.alive:
            try:
                if httpx.get(f"{self.url}readyz", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        state = "still runs" if self.alive else f"exited with {self.wait(0)}"
        raise RuntimeError(
            f"the bot did not become ready and {state}; the end of {self.log}:\n{self.tail()}"
        )

    def is_healthy(self, seconds: float = 5.0) -> bool:
        """Whether the bot's health route responds with status 200 within `seconds`."""
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}healthz", timeout=seconds).status_code == 200
        return False

    def wait(self, seconds: float) -> int | None:
        """Wait up to `seconds` for the bot's end.

        Returns its exit code; None if it still runs or was never started.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                return self._process.wait(seconds)
        return None

    def kill(self) -> None:
        """Kill the bot with SIGKILL, and wait for its end."""
        self._end(signal.SIGKILL)

    def abort(self) -> None:
        """End the bot with SIGABRT, and wait for its end.

        With PYTHONFAULTHANDLER set, it logs the stacks of its threads.
        """
        self._end(signal.SIGABRT)

    def stop(self) -> None:
        """Stop the bot with SIGTERM, and wait for its end without a time limit."""
        self._end(signal.SIGTERM)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the bot with SIGSTOP, and let it continue afterwards."""
        if self._process is not None and self.alive:
            self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            if self._process is not None and self.alive:
                self._process.send_signal(signal.SIGCONT)

    def session(self, id: str) -> dict[str, Any]:
        """Return a session in the form of the bot's API; empty if the API does not return it."""
        try:
            answer = httpx.get(
                f"{self.url}api/v1/sessions/{id}",
                headers={"Authorization": f"Bearer {self.page_token}"},
                timeout=2,
            )
        except httpx.TransportError:
            return {}
        found: dict[str, Any] = answer.json() if answer.status_code == 200 else {}
        return found

    def tail(self, lines: int = 30) -> str:
        """Return the last `lines` lines of the bot's log."""
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
