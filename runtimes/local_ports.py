"""Allots ports of this machine to sessions, so that no two sessions get the same one.

FOLDER/ports/20001   the session that has this port
"""

import errno
import fcntl
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from runtimes.base import RuntimeFailure
from runtimes.files import make_folder, read_text, write_private
from runtimes.isolation.base import PROXY_PORT


class LocalPorts:
    """The ports that sessions of this machine have. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        """Record the ports below `folder`, the host's folder."""
        self._folder = folder / "ports"

    def allot(self, session: str, count: int, first: int, last: int) -> Sequence[int]:
        """Reserve `count` ports from `first` to `last` for the session; return them. Idempotent.

        The session keeps its ports that are in the range. New ports are those that no program uses
        at that moment. Raises `RuntimeFailure` if too few ports are free; then none is reserved.
        """
        with self._locked():
            owners = self._owners()
            own = [port for port in range(first, last + 1) if owners.get(port) == session]
            free = (
                port
                for port in range(first, last + 1)
                if port not in owners and port != PROXY_PORT and _is_free(port)
            )
            new = list(islice(free, max(count - len(own), 0)))
            if len(own) + len(new) < count:
                raise RuntimeFailure(
                    f"fewer than {count} ports are free in {first}-{last}: set a larger"
                    " `port-range`"
                )
            for port in new:
                write_private(self._folder / str(port), session)
            return sorted([*own, *new])[:count]

    def release(self, session: str) -> None:
        """Make the ports of a session available to other sessions. Idempotent."""
        if self._folder.is_dir():
            with self._locked():
                for port, owner in self._owners().items():
                    if owner == session:
                        (self._folder / str(port)).unlink(missing_ok=True)

    def _owners(self) -> dict[int, str]:
        files = [file for file in self._folder.iterdir() if file.name.isdigit()]
        return {int(file.name): read_text(file) for file in files}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold a lock against other threads and processes."""
        make_folder(self._folder)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def port_variables(ports: Sequence[int]) -> dict[str, str]:
    """Return the environment variables with a session's ports: `MERGEWRIGHT_PORT_1` and so on."""
    return {f"MERGEWRIGHT_PORT_{number}": str(port) for number, port in enumerate(ports, 1)}


def _is_free(port: int) -> bool:
    """Whether no program listens at a port of loopback, by IPv4 or by IPv6."""
    return not any(
        _is_used(port, *loopback)
        for loopback in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
    )


def _is_used(port: int, family: socket.AddressFamily, host: str) -> bool:
    """Whether a program uses a port of an address. False on a machine without such addresses.

    Raises `OSError` if this process has too many open files.
    """
    try:
        probe = socket.socket(family)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return False
    with probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error.errno != errno.EADDRNOTAVAIL
    return False
