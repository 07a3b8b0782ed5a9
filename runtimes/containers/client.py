"""Runs a program in a container, at this terminal: `python -E -s -S client.py FOLDER ARGV...`.

This program, the client, runs between a run's supervisor and the container. It uses only the
standard library and `engine.py`, which is in the same folder. It makes and starts the container
that FOLDER/container describes (`runtimes.isolation.containers`). The container's first process
(`first.py`) connects to the socket in FOLDER/link, twice:

* One connection carries what the terminal shows and what is typed. It does not go through the
  engine, so that the program survives the engine's restart.
* The other connection first carries the program's command and environment, which the engine must
  not keep because they hold secrets. Then it carries signals and the terminal's sizes, and at the
  end the report for `supervise.REPORT`. If the client is killed, this connection closes, and all
  processes in the container end.

SIGTERM is passed on to all processes in the container. Before the client exits, it removes the
container; if the engine does not answer, `Containers.remove_orphans` removes the container later.

If the engine is restarted while the container is being made, the client waits for the engine, for
as many seconds as FOLDER/container allows. The client may then make another container, because the
program in the container has not begun.

A short command (`Isolation.command`) has no terminal. The program in the container then uses the
client's descriptors 0 to 2. The client exits with the program's exit code, and is killed if the
client's parent process ends.
"""

# As in `supervise.py`, the time of a start counts.
# ruff: noqa: PTH108, PTH123, SIM105
import _signal as signal  # type: ignore[import-not-found]
import _socket
import _thread
import marshal
import os
import sys
import termios
import time
import tty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runtimes.containers.engine import Engine

_REPORT = 3  # `supervise.REPORT`; nothing can be imported here.
_PORT = 8  #: The descriptor of the socket that leads to the program's port, if it has one.
_START_SECONDS = 60.0
#: A container's label with a random text that its client chose. In FOLDER/container, `UNMARKED`
#: stands in the place of that text.
CLIENT, UNMARKED = "mergewright.client", "unmarked"
_AGAIN_SECONDS = 0.5  #: The pause before an engine that does not answer is asked again.
#: Temporary errors of an engine: it does not answer, still removes a container of this name, or has
#: lost its containerd (Docker 20.10 then answers with status 500).
_NO_ANSWER, _CONFLICT, _INTERNAL = 0, 409, 500
_REMOVAL_SECONDS = 60.0
_CHUNK = 65536
_MARSHAL = 2  #: The version of the format of `marshal` that Python 3 of any image reads.
_PR_SET_PDEATHSIG = 1


class _Failed(Exception):
    """The program was not started; the message says why."""


def main(folder: str, argv: list[str]) -> int:
    """Run a program to its end in the container that `folder` describes; return an exit code.

    Without a terminal, the exit code is the program's. With a terminal it is 0, because the
    program's code is in the report at `supervise.REPORT`. In both cases, it is 125 if the program
    was not started, and 137 if the container ended without a report, as when it was killed.
    """
    from engine import Engine, EngineError  # type: ignore[import-not-found]  # Beside this.

    with open(f"{folder}/container", "rb") as file:
        spec = marshal.load(file)  # noqa: S302 - the bot wrote it.
    engine, name = Engine(spec["engine"]), spec["name"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if not spec["terminal"]:
        _end_with_parent()
    try:
        control, terminal = _started(engine, spec, f"{folder}/link")
        program = {**spec["program"], "argv": argv, "env": dict(os.environ)}
        has_terminal = spec["terminal"]
        reported = (_attend if has_terminal else _run)(control, terminal, program)
        _remove_ended(engine, name)
    except (EngineError, _Failed, OSError) as error:
        _say(f"cannot start a container for {argv[:1]}: {error}")
        return 125
    if reported and has_terminal:
        os.write(_REPORT, reported)
        return 0
    if reported:
        import json  # Only here, because it takes long.

        code = os.waitstatus_to_exitcode(json.loads(reported)["status"])
        return code if code >= 0 else 128 - code
    _say("the container was killed: by its engine, for lack of memory, or by hand")
    return 128 + int(signal.SIGKILL)


def _started(engine: "Engine", spec: "dict[str, Any]", link: str) -> list[_socket.socket]:
    """Make and start the container; return its control connection and its terminal connection.

    While the engine does not answer, tries again for `spec["patience"]` seconds. A container that
    was made although the engine's answer was lost is recognised by its label and removed. Raises
    `EngineError` and `_Failed`.
    """
    from engine import EngineError

    mark = os.urandom(8).hex()
    body = spec["container"].replace(f'"{UNMARKED}"'.encode(), f'"{mark}"'.encode())
    deadline = time.monotonic() + spec["patience"]
    while True:
        try:
            return _start(engine, spec["name"], body, link)
        except BaseException as error:  # SIGTERM raises `SystemExit`.
            is_own = _remove_own(engine, spec["name"], mark)
            if not isinstance(error, EngineError) or time.monotonic() > deadline:
                raise
            passes = error.status == _NO_ANSWER or error.status >= _INTERNAL
            if not (passes or (is_own and error.status == _CONFLICT)):
                raise
        time.sleep(_AGAIN_SECONDS)


def _start(engine: "Engine", name: str, body: bytes, link: str) -> list[_socket.socket]:
    listener = _listening(link)
    try:
        engine.send("POST", f"/containers/create?name={name}", body)
        engine.send("POST", f"/containers/{name}/start")
        return [_accept(listener, engine, name) for _ in range(2)]
    finally:
        listener.close()


def _remove_own(engine: "Engine", name: str, mark: str) -> bool:
    """Remove the container of this name if this program made it; return whether it is removed."""
    from engine import EngineError

    try:
        found: Any = engine.call("GET", f"/containers/{name}/json")
        if found["Config"]["Labels"].get(CLIENT) != mark:
            return False
        engine.call("DELETE", f"/containers/{name}", force="1", v="1")
    except EngineError as error:
        return bool(
            error.status == _CONFLICT
        )  # It is being removed. Without an answer, `remove_orphans` removes it later.
    return True


def _listening(folder: str) -> _socket.socket:
    """Make the socket to which the container's first process opens two connections.

    Each container gets a new socket, so that no connection from an earlier container is accepted.
    """
    os.chdir(folder)  # The path of a socket is limited to 107 bytes: unix(7).
    try:
        os.unlink("first.sock")
    except FileNotFoundError:
        pass
    listener = _socket.socket(_socket.AF_UNIX)
    listener.bind("first.sock")
    os.chdir("/")
    listener.listen(2)
    listener.settimeout(0.25)
    return listener


def _accept(listener: _socket.socket, engine: "Engine", name: str) -> _socket.socket:
    """Wait for the container's first process to connect: about 60 seconds, if the engine answers.

    Raises `EngineError` if the engine refuses to show the container, as when it is gone, and
    `_Failed` if nothing connects in time. While the engine does not answer, the wait continues,
    because the container may start nevertheless.
    """
    from engine import EngineError

    for _ in range(int(_START_SECONDS * 4)):
        try:
            connection = _socket.socket(fileno=listener._accept()[0])  # type: ignore[attr-defined]
        except TimeoutError:
            try:
                engine.call("GET", f"/containers/{name}/json")  # Fails if it is gone.
            except EngineError as error:
                if error.status != _NO_ANSWER:
                    raise
        else:
            connection.settimeout(None)
            return connection
    raise _Failed(f"nothing in it answered within {_START_SECONDS:.0f} seconds")


def _attend(control: _socket.socket, terminal: _socket.socket, program: dict[str, object]) -> bytes:
    """Have the container run the program at this terminal; return its report of the end.

    The report is empty if the container ended without one, as when it was killed.
    """
    at_terminal = os.isatty(0)
    saved = termios.tcgetattr(0) if at_terminal else []
    _begin(control, {**program, "size": _size()}, [_PORT] if program["port"] else [])
    changes = {signal.SIGTERM, signal.SIGWINCH}
    signal.pthread_sigmask(signal.SIG_BLOCK, changes)  # The threads leave them to this one.
    shown = _thread.allocate_lock()
    shown.acquire()
    try:
        if at_terminal:
            tty.setraw(0, termios.TCSADRAIN)
        _thread.start_new_thread(_show, (terminal, shown))
        _thread.start_new_thread(_type, (terminal,))
        signal.signal(signal.SIGTERM, lambda *_: _tell(control, {"signal": signal.SIGTERM}))
        signal.signal(signal.SIGWINCH, lambda *_: _tell(control, {"size": _size()}))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, changes)
        _tell(control, {"size": _size()})  # It may have changed meanwhile.
        reported = _reported(control)
        shown.acquire(timeout=2)
        return reported
    finally:
        if at_terminal:
            termios.tcsetattr(0, termios.TCSADRAIN, saved)


def _run(control: _socket.socket, terminal: _socket.socket, program: dict[str, object]) -> bytes:
    """Have the program run with this process's descriptors; return the report of its end."""
    _begin(control, {**program, "size": None}, [0, 1, 2])
    reported = _reported(control)
    if failure := _receive(terminal):
        os.write(2, failure)
    return reported


def _begin(control: _socket.socket, message: dict[str, object], descriptors: list[int]) -> None:
    """Send the message that starts the program, with these descriptors."""
    data = _packed({**message, "descriptors": descriptors})
    numbers = b"".join(number.to_bytes(4, sys.byteorder) for number in descriptors)
    with_it = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)] if descriptors else []
    control.sendall(data[control.sendmsg([data], with_it) :])


def _packed(message: dict[str, object]) -> bytes:
    """Return a message in the format that `first.py` expects: its length, then `marshal`."""
    data = marshal.dumps(message, _MARSHAL)
    return len(data).to_bytes(4, "big") + data


def _reported(control: _socket.socket) -> bytes:
    """Wait for the program's end; return its report, which is empty if none arrives."""
    reported = b""
    while said := _receive(control):
        reported += said
    return reported


def _end_with_parent() -> None:
    import ctypes  # Only here, because it takes long.

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _show(terminal: _socket.socket, done: "_thread.LockType") -> None:
    try:
        while data := _receive(terminal):
            while data:
                data = data[os.write(1, data) :]
    except OSError:
        pass  # This terminal is closed; its supervisor ends the program.
    done.release()


def _type(terminal: _socket.socket) -> None:
    try:
        while data := os.read(0, _CHUNK):
            terminal.sendall(data)
    except OSError:
        pass  # As above, or the program has ended.


def _receive(connection: _socket.socket) -> bytes:
    try:
        return connection.recv(_CHUNK)
    except OSError:
        return b""


def _tell(control: _socket.socket, message: dict[str, object]) -> None:
    try:
        control.sendall(_packed(message))
    except OSError:
        pass  # It has ended.


def _size() -> tuple[int, int]:
    """Return the terminal's rows and columns, or 24 and 80 without a terminal."""
    try:
        return termios.tcgetwinsize(0)
    except termios.error:
        return 24, 80


def _remove_ended(engine: "Engine", name: str) -> None:
    """Remove the container and wait until it is gone, if its engine answers.

    The wait ends after a minute if the requests time out, and after 1.5 seconds if the engine says
    that it is already removing the container. Docker 20.10 may not answer a request that arrives
    during the removal (measured: in 1 of 300 removals), so each request has a short time-out.
    """
    from engine import Engine, EngineError, EngineTimeout

    patient = Engine(engine.path, seconds=_REMOVAL_SECONDS / 30)
    for _ in range(30):
        try:
            patient.call("DELETE", f"/containers/{name}", force="1", v="1")
        except EngineTimeout:
            continue
        except EngineError as error:
            if error.status == _CONFLICT:  # The engine removes it by itself.
                time.sleep(_AGAIN_SECONDS / 10)
                continue
        return


def _say(text: str) -> None:
    try:
        os.write(2, f"mergewright: {text}\n".encode(errors="replace"))
    except OSError:
        pass  # The terminal may be closed.


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
