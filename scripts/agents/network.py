"""A network namespace with loopback only: network_namespaces(7)."""

import ctypes
import fcntl
import os
import socket
import struct

from scripts.agents.install import CannotRun

_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_UP = 0x1


def ask_for_root() -> None:
    """Raise `CannotRun` unless the user is root; call it before anything is installed."""
    if os.geteuid():
        raise CannotRun("only root can create a network namespace: run it as root")


def isolate() -> None:
    """Move this thread and what it starts into a new network namespace.

    Call it before any other thread starts. Raises `CannotRun` if the system does not permit it.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise CannotRun(f"no network namespace ({reason}): run it outside a sandbox")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _UP))
