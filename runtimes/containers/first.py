"""First process of a container: `python -E -s -S first.py`, beside `inner.py` and `link/`.

A separate program that uses the standard library alone. From the socket of `client.py` in `link` it
takes the agent's command and environment. It makes a terminal for that command, or takes the
client's descriptors if the command has no terminal. It becomes an ordinary user, loads the seccomp
filter in `link`, and then acts as the sandbox's first process (`runtimes.isolation.inner`). When
the client ends, it ends too, and with it all processes in the container.

If the bot is root, its files are root's, so the container has user 0. The program then has user
1000 in a user namespace of its own, in which root's files belong to user 1000: user_namespaces(7).
"""

# ruff: noqa: PTH120, PTH123, SIM105
import ctypes
import fcntl
import json
import os
import signal
import socket
import sys
import termios
import threading
from typing import Any

_HERE = os.path.dirname(__file__)
_REPORT = 3  # `supervise.REPORT`, at which `inner.py` reports; here it leads to the client.
_PORT = 8
_FREE = 20  #: Descriptors from here on are this program's.
_USER = 1000
_CHUNK = 65536
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CLONE_NEWUSER = 0x10000000
_IGNORED = (
    *(signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
    *(signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
)


class _Filter(ctypes.Structure):
    """`struct sock_fprog` of linux/filter.h."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def main() -> int:
    """Run the client's program to its end. Returns 0, or 1 if the container cannot be used."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    control, terminal = _connected(), _connected()
    program, rest, received = _received(control)
    master = -1
    try:
        if os.getuid() == 0:
            _become_user()
        with open(f"{_HERE}/link/seccomp", "rb") as file:
            _load_filter(file.read())
        _libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # The program has the same user.
        if program["size"]:
            master = _make_terminal(*program["size"])
        os.chdir(program["cwd"])
    except OSError as error:
        terminal.sendall(f"mergewright: the container cannot be used: {error}\r\n".encode())
        return 1
    os.dup2(control.fileno(), _REPORT)
    for number, descriptor in zip(program["descriptors"], received, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    shown = threading.Thread(target=_show, args=(master, terminal), daemon=True)
    if program["size"]:
        shown.start()
        threading.Thread(target=_type, args=(terminal, master), daemon=True).start()
    threading.Thread(target=_obey, args=(control, rest, master), daemon=True).start()
    os.environ.clear()
    os.environ.update(program["env"])
    from inner import main as run  # type: ignore[import-not-found]  # Where this runs.

    proxy = (program["proxy"], f"{_HERE}/proxy/proxy.sock")
    # The engine limits the processes and the memory of all together.
    listener = _PORT if _PORT in program["descriptors"] else 0
    run(*proxy, listener, program["port"], 0, 0, program["argv"])
    _kill(signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):  # Once nobody has the terminal open, it ends after what it holds.
        os.dup2(nothing, standard)
    if program["size"]:
        shown.join(2)
    return 0


def _connected() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f"{_HERE}/link/first.sock")
    with connection:
        return socket.socket(fileno=_moved(connection.fileno()))


def _moved(number: int) -> int:
    """Return a copy of a descriptor with a number that the program does not use."""
    copy: int = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _FREE)
    return copy


def _received(control: socket.socket) -> tuple[dict[str, Any], bytes, list[int]]:
    """Return the client's first message, the bytes after it, and the descriptors sent with it."""
    data, received, _, _ = socket.recv_fds(control, _CHUNK, 3)
    moved = [_moved(number) for number in received]
    for number in received:
        os.close(number)
    while b"\n" not in data:
        if not (more := control.recv(_CHUNK)):
            sys.exit(1)  # The client was ended.
        data += more
    message, rest = data.split(b"\n", 1)
    return json.loads(message), rest, moved


def _become_user() -> None:
    if _libc().unshare(_CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "no user namespace can be made in a container here")
    for file, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{_USER} 0 1"),
        ("gid_map", f"{_USER} 0 1"),
    ):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as out:
            out.write(text)


def _load_filter(code: bytes) -> None:
    program = _Filter(len(code) // 8, code)
    if _libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the seccomp filter cannot be loaded")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _make_terminal(rows: int, columns: int) -> int:
    """Make this process's controlling terminal, at descriptors 0 to 2; return its master end."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (rows, columns))
    try:
        os.setsid()
    except PermissionError:
        pass  # The engine has begun a session for it.
    moved = _moved(master)
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(slave, number)
    for number in {master, slave} - {0, 1, 2}:
        os.close(number)
    return moved


def _show(master: int, terminal: socket.socket) -> None:
    try:
        while data := os.read(master, _CHUNK):
            terminal.sendall(data)
    except OSError:
        pass  # Nobody has it open any more.


def _type(terminal: socket.socket, master: int) -> None:
    try:
        while data := terminal.recv(_CHUNK):
            while data:
                data = data[os.write(master, data) :]
    except OSError:
        pass  # As above.


def _obey(control: socket.socket, data: bytes, master: int) -> None:
    """Follow the client's messages; end the container when the client ends."""
    while True:
        *lines, data = data.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "size" in message:
                termios.tcsetwinsize(master, tuple(message["size"]))
            else:
                _kill(message["signal"])
                _kill(signal.SIGCONT)  # A stopped process does not handle SIGTERM.
        try:
            more = control.recv(_CHUNK)
        except OSError:
            more = b""
        if not more:
            os._exit(1)
        data += more


def _kill(number: int) -> None:
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        pass  # There is no other process.


if __name__ == "__main__":
    sys.exit(main())
