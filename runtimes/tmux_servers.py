"""Runs tmux commands on the server of a run, and knows which servers hang."""

import base64
import hashlib
import os
import re
import signal
import socket
import struct
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from runtimes.base import RuntimeFailure, Unavailable

_HERE = Path(__file__).parent
#: "no current target": a server without a session is about to exit.
_ABSENT = re.compile(
    r"no server running|server exited unexpectedly|lost server|can't find|no current target"
    r"|error connecting.*No such file or directory"
)
_SOCKET_PATH_BYTES = 107
#: How long a server that did not answer counts as hanging: at first, and at most. The time doubles
#: with each further command that it does not answer.
_HANGS_SECONDS, _HANGS_AT_MOST_SECONDS = 30.0, 3600.0


class TmuxSessionAbsent(RuntimeFailure):
    """tmux answered that there is no such session, or no server and so no session."""


class _Hang(NamedTuple):
    """A server that did not answer."""

    until: float  #: When it may be asked again, by the monotonic clock.
    seconds: float  #: The time from its last failure until then.


class TmuxServers:
    """The tmux servers of a runtime's folder: one for each run, by the name of the run."""

    def __init__(self, data: Path) -> None:
        """Use sockets in the folder `data`. Raises `RuntimeFailure` if its path is too long."""
        import libtmux  # Takes 0.1 s, which only commands that use tmux should cost.

        self._data = data
        self._tmux = libtmux.Server(
            config_file=str(_HERE / "tmux.conf"), tmux_bin=_HERE / "tmux.sh"
        )
        self._hanging: dict[str, _Hang] = {}
        if len(os.fsencode(self.socket("any"))) > _SOCKET_PATH_BYTES:
            raise RuntimeFailure(
                f"{data} is too long for the path of a socket in it ({_SOCKET_PATH_BYTES} "
                "bytes): choose a data folder with a shorter path"
            )

    def socket(self, name: str) -> Path:
        """Return the path of the socket of a run's tmux server.

        The path has the same length for every `name`: the file's name is made from a hash.
        """
        digest = hashlib.sha256(name.encode()).digest()
        return self._data / f"t{base64.urlsafe_b64encode(digest)[:8].decode()}"

    def serve(self, name: str) -> bool:
        """Whether the run has a tmux server: one that has ended accepts no connection."""
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)  # The queue of a server that hangs may be full.
            try:
                client.connect(os.fsencode(self.socket(name)))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
            except OSError:
                return True
        return True

    def hang(self, name: str) -> bool:
        """Whether the run's server did not answer lately, so that it is better not to ask it now.

        It may be asked again after a while, or at once where the answer is necessary.
        """
        return name in self._hanging and monotonic() < self._hanging[name].until

    def run(self, name: str, *args: str) -> list[str]:
        """Run tmux commands on a run's server and return the lines that they print.

        Raises `TmuxSessionAbsent`, and `Unavailable` if tmux is missing, fails or does not answer
        within ten seconds.
        """
        own = self.socket(name)
        try:
            done = self._tmux.cmd(f"-S{own}", *args)
        except OSError as error:
            raise Unavailable(f"{_HERE / 'tmux.sh'} cannot be run: {error}") from error
        errors = " ".join(done.stderr)
        if done.returncode in (124, 137):
            before = self._hanging.get(name, _Hang(0.0, _HANGS_SECONDS / 2))
            seconds = min(2 * before.seconds, _HANGS_AT_MOST_SECONDS)
            self._hanging[name] = _Hang(monotonic() + seconds, seconds)
            raise Unavailable(
                f"tmux did not answer within 10 seconds: see what holds its server at {own}. If"
                " you kill that server, the agent's program ends, and the bot starts it again"
            )
        self._hanging.pop(name, None)
        if done.returncode == 0:
            return done.stdout
        if done.returncode in (126, 127):
            raise Unavailable(f"tmux cannot be run; install it and see that PATH has it: {errors}")
        if _ABSENT.match(errors):
            raise TmuxSessionAbsent(errors)
        raise Unavailable(f"tmux at {own} refused `{args[0]}`: {errors}")

    def end(self, name: str) -> None:
        """End the run's server, and remove its socket. Raises `Unavailable` if that fails."""
        try:
            self.run(name, "kill-server")
        except TmuxSessionAbsent:
            pass
        except Unavailable:
            if not self.hang(name) or (pid := self._listener(name)) is None:
                raise
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._hanging.pop(name, None)
        self.socket(name).unlink(missing_ok=True)  # A server that was killed leaves it.

    def _listener(self, name: str) -> int | None:
        """Return the pid of the server, the process that listens at the socket: see unix(7)."""
        with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
            client.setblocking(False)
            client.connect(os.fsencode(self.socket(name)))
            size = struct.calcsize("3i")
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            return int(struct.unpack("3i", credentials)[0])
        return None
