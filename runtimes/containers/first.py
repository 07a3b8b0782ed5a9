"""First process of a container: `python -E -s -S first.py`, beside `inner.py` and `link/`.

A separate program that uses the standard library alone. From the socket of `client.py` in `link` it
takes the agent's command and environment. It makes a terminal for that command, or takes the
client's descriptors if the command has no terminal. If it is root, it becomes an ordinary user. It
loads the seccomp filter in `link`, and then acts as the sandbox's first process
(`runtimes.isolation.inner`). When the client ends, this program ends too, and with it all processes
in the container.

This program is root, which is user 0 of the container, in two cases: if the bot is root, because
the bot's files then belong to root, and with a rootless Docker, which maps the bot's user to user
0. The agent's program then has user 1000 in a user namespace of its own, in which the files of user
0 belong to user 1000: user_namespaces(7).
"""

# Importing socket, signal, threading, json and typing takes half of the time of a start (measured).
# ruff: noqa: PTH120, PTH123, SIM105
import _signal as signal  # type: ignore[import-not-found]
import _socket
import _thread
import ctypes
import fcntl
import marshal
import os
import sys
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HERE = os.path.dirname(__file__)
_REPORT = 3  # `supervise.REPORT`, at which `inner.py` reports; here it leads to the client.
_PORT = 8
_FREE = 20  #: Descriptors from this number on belong to this program.
_USER = 1000
_CHUNK = 65536
_LENGTH_BYTES, _DESCRIPTOR_BYTES = 4, 4
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
    """Run the program that `client.py` requests; return 0, or 1 if the container is unusable."""
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
    shown = _thread.allocate_lock()
    if program["size"]:
        shown.acquire()
        _thread.start_new_thread(_show, (master, terminal, shown))
        _thread.start_new_thread(_type, (terminal, master))
    _thread.start_new_thread(_obey, (control, rest, master))
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
    shown.acquire(timeout=2)
    return 0


def _connected() -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX)
    connection.connect(f"{_HERE}/link/first.sock")
    copy = _moved(connection.fileno())
    connection.close()
    return _socket.socket(fileno=copy)


def _moved(number: int) -> int:
    """Copy a descriptor to a number that the agent's program does not use; return the number."""
    copy: int = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, _FREE)
    return copy


def _received(control: _socket.socket) -> "tuple[Any, bytes, list[int]]":
    """Return the client's first message, the bytes after it, and the descriptors sent with it."""
    size = _socket.CMSG_SPACE(3 * _DESCRIPTOR_BYTES)
    data, extra, _, _ = control.recvmsg(_CHUNK, size)
    received = []
    for _, _, sent in extra:
        for at in range(0, len(sent), _DESCRIPTOR_BYTES):
            number = int.from_bytes(sent[at : at + _DESCRIPTOR_BYTES], sys.byteorder)
            received.append(_moved(number))
            os.close(number)
    program, rest = _message(control, data)
    if program is None:
        sys.exit(1)  # The client was ended.
    return program, rest, received


def _message(control: _socket.socket, data: bytes) -> "tuple[Any, bytes]":
    """Return the client's next message, of which `data` is the beginning, and the bytes after it.

    A message is in the format of `marshal`, after its length in four bytes. The message is None if
    the client has closed the connection.
    """
    while len(data) < _LENGTH_BYTES or len(data) < _end(data):
        try:
            more = control.recv(_CHUNK)
        except OSError:
            more = b""
        if not more:
            return None, b""
        data += more
    return marshal.loads(data[_LENGTH_BYTES : _end(data)]), data[_end(data) :]  # noqa: S302


def _end(data: bytes) -> int:
    return _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")


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


def _show(master: int, terminal: _socket.socket, done: "_thread.LockType") -> None:
    try:
        while data := os.read(master, _CHUNK):
            terminal.sendall(data)
    except OSError:
        pass  # Nobody has it open any more.
    done.release()


def _type(terminal: _socket.socket, master: int) -> None:
    try:
        while data := terminal.recv(_CHUNK):
            while data:
                data = data[os.write(master, data) :]
    except OSError:
        pass  # As above.


def _obey(control: _socket.socket, data: bytes, master: int) -> None:
    """Follow the client's messages; end the container when the client ends."""
    while True:
        message, data = _message(control, data)
        if message is None:
            os._exit(1)
        if "size" in message:
            termios.tcsetwinsize(master, message["size"])
        else:
            _kill(message["signal"])
            _kill(signal.SIGCONT)  # A stopped process does not handle SIGTERM.


def _kill(number: int) -> None:
    try:
        os.kill(-1, number)
    except ProcessLookupError:
        pass  # There is no other process.


if __name__ == "__main__":
    sys.exit(main())
