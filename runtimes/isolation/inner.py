"""First process of a sandbox.

    python -I -S inner.pyc PORT SOCKET LISTENER SERVED PROCESSES BYTES -- ARGV

A separate program that uses the standard library alone. It starts ARGV as the terminal's foreground
group, reaps orphans, and reports the program's end to the supervisor (`supervise.REPORT`). Then it
ends the other processes: with SIGTERM, and after two seconds by exiting, because the kernel kills
all processes of a PID namespace when the first one ends: pid_namespaces(7).

While ARGV runs, it forwards connections:

* Those to 127.0.0.1:PORT go to the UNIX socket SOCKET; none if PORT is 0.
* Those to the socket at the descriptor LISTENER go to 127.0.0.1:SERVED; none if LISTENER is 0.

PROCESSES limits the number of all processes, BYTES limits the memory of each process. 0 means no
limit.
"""

# Importing socket, signal, json and contextlib takes longer than all else that a sandbox adds
# (measured).
# ruff: noqa: SIM105
import _signal as signal  # type: ignore[import-not-found]
import _socket
import _thread
import os
import resource
import sys
import time

_REPORT = 3  # `supervise.REPORT`; nothing can be imported here.
_LEFTOVERS_GRACE_SECONDS = 2.0
_CHUNK = 65536


def main(
    port: int, path: str, inherited: int, served: int, processes: int, memory: int, argv: list[str]
) -> int:
    """Run the program to its end, then give all other processes two seconds to end; return 0.

    The arguments are those of the command line, in its order.
    """
    os.set_inheritable(_REPORT, False)
    forwarded: list[tuple[_socket.socket, str | tuple[str, int]]] = []
    if port:
        forwarded.append((_listener(port), path))
    if inherited:
        os.set_inheritable(inherited, False)
        forwarded.append((_socket.socket(fileno=inherited), ("127.0.0.1", served)))
    program = _start(argv, processes, memory)
    for listener, target in forwarded:
        _thread.start_new_thread(_forward, (listener, target))
    status = None
    while status is None:
        pid, ended = os.waitpid(-1, 0)
        if pid == program:
            status = ended
    os.write(_REPORT, f'{{"status": {status}, "at": {time.time()}}}'.encode())
    os.close(_REPORT)
    _end_others()
    return 0


def _start(argv: list[str], processes: int, memory: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        if os.isatty(0):
            os.tcsetpgrp(0, os.getpid())  # SIGTTOU is ignored: the supervisor sees to it.
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        # The limit of processes counts those of this user namespace: user_namespaces(7).
        limits = {resource.RLIMIT_NPROC: processes, resource.RLIMIT_DATA: memory}
        for kind, value in limits.items():
            if value:
                hard = resource.getrlimit(kind)[1]
                most = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(kind, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.execvp(argv[0], argv)
    except Exception as error:  # noqa: BLE001 - the forked child must not return.
        why = getattr(error, "strerror", None) or error
        _say(
            f"cannot run {argv[:1]} in the sandbox: {why}. Is the program installed and on "
            f"PATH={os.environ.get('PATH')}? The sandbox has /usr and the folder of the program; "
            "name others in `readable` under [sandbox]"
        )
    finally:
        os._exit(127)


def _end_others() -> None:
    try:
        os.kill(-1, signal.SIGTERM)
        os.kill(-1, signal.SIGCONT)
        deadline = time.monotonic() + _LEFTOVERS_GRACE_SECONDS
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.01)
    except (ProcessLookupError, ChildProcessError):
        pass  # There is none.


def _listener(port: int) -> _socket.socket:
    listener = _socket.socket()
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    return listener


def _forward(listener: _socket.socket, target: str | tuple[str, int]) -> None:
    """Forward each connection to the target; close connections that the target refuses."""
    while True:
        try:
            client = _socket.socket(fileno=listener._accept()[0])  # type: ignore[attr-defined]
        except OSError:  # Too many are open.
            time.sleep(0.1)
            continue
        try:
            _thread.start_new_thread(_connect, (client, target))
        except RuntimeError:  # No further thread.
            client.close()


def _connect(client: _socket.socket, target: str | tuple[str, int]) -> None:
    server = _socket.socket(_socket.AF_UNIX if isinstance(target, str) else _socket.AF_INET)
    done = _thread.allocate_lock()
    done.acquire()
    try:
        server.connect(target)
        _thread.start_new_thread(_pump, (client, server, done))
        _pump(server, client, None)
        done.acquire()
    except (OSError, RuntimeError):
        pass  # The other side sees the end.
    finally:
        client.close()
        server.close()


def _pump(source: _socket.socket, target: _socket.socket, done: "_thread.LockType | None") -> None:
    """Copy until the source ends, and shut the target down; then release `done`, if given."""
    try:
        while data := source.recv(_CHUNK):
            target.sendall(data)
    except OSError:  # The other direction cannot go on either.
        _shut(source, _socket.SHUT_RDWR)
        _shut(target, _socket.SHUT_RDWR)
    _shut(target, _socket.SHUT_WR)
    if done:
        done.release()


def _shut(end: _socket.socket, how: int) -> None:
    try:
        end.shutdown(how)
    except OSError:
        pass  # It is closed.


def _say(text: str) -> None:
    try:
        os.write(2, f"mergewright: {text}\n".encode(errors="replace"))
    except OSError:
        pass  # The terminal may be closed.


if __name__ == "__main__":
    if os.getpid() != 1:  # At its end, it would end all processes of this user.
        sys.exit("mergewright: inner.py runs only as the first process of a PID namespace")
    _port, _path, _listens, _served, _processes, _memory, _, *_argv = sys.argv[1:]
    sys.exit(
        main(
            *(int(_port), _path, int(_listens), int(_served), int(_processes), int(_memory)),
            argv=_argv,
        )
    )
