"""A network in which there is nothing but this process and what it starts."""

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
    """Raise `CannotRun` for a user who could not `isolate`, before anything is fetched."""
    if os.geteuid():
        raise CannotRun("only root may have a network of its own: run it as root")


def isolate() -> None:
    """Leave the machine's network for a new one that has the loopback alone.

    It holds for what this thread starts from now on, so it is called before there is any other.
    Raises `CannotRun` where this user may not.
    """
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise CannotRun(f"no network of its own ({reason}): run it outside a sandbox")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _UP))
