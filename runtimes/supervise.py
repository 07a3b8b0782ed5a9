"""Runs one program in a terminal and records its exit: `python -I -S supervise.py DIR [PARENT]`.

A separate program that uses the standard library alone. In DIR it reads `launch`, which
`runtimes.supervised` writes, and removes it, because its environment may hold secrets. It writes
`pid.json`: its own pid, start time and boot. When the program has ended, it ends all processes that
the program left, and writes `exit.json`: code, signal, at (seconds since 1970), `ordered_by` (the
signal that ordered the end, or 0) and `memory_kills` (how many processes were killed at the limit
of memory). On SIGTERM or SIGHUP this process ends the program with SIGTERM, and with SIGKILL after
the seconds in the file `grace` (5 without the file). It does the same when its parent process ends,
if PARENT is the pid of the parent.
"""

# Importing json, signal and contextlib would take a third of the time until a program starts, and
# pathlib as well (measured).
# ruff: noqa: PTH102, PTH105, PTH106, PTH108, PTH110, PTH123, PTH208, SIM105
import _signal as signal  # type: ignore[import-not-found]
import ctypes
import marshal
import os
import resource
import sys
import time

TYPE_CHECKING = False  # Importing it takes 3 ms (measured).
if TYPE_CHECKING:
    from collections.abc import Callable

#: The environment variable with the run's folder, by which the processes of a run are found after
#: its supervisor was killed.
MARK = "MERGEWRIGHT_RUN_DIR"
#: The descriptor at which a sandbox reports its program's end, as JSON: `status` as of waitpid(2),
#: and `at` in seconds since 1970.
REPORT = 3

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_STOP_GRACE_SECONDS = 5.0
_LEFTOVERS_GRACE_SECONDS = 2.0
_FORCE_SECONDS = 5.0
_WAITED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP})
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def main(folder: str, parent: int = 0) -> int:
    """Run the program that `folder` describes to its end, and return its exit code.

    Returns 128 + N if signal N ended the program, and 127 if the program cannot be executed.
    Returns 125, without trying to execute it, if `launch` cannot be read or `pid.json` cannot be
    written, or if the parent has ended already. Unless `parent` is 0, it is the pid of this
    process's parent, and the program also ends when the parent ends.
    """
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))  # Lower for tmux: `tmux.sh`.
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    for number in _WAITED:  # The parent (nohup) may have them ignored.
        signal.signal(number, signal.SIG_DFL)
    for number in _IGNORED:  # The program in the foreground gets them.
        signal.signal(number, signal.SIG_IGN)
    if parent:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            return 125
    try:
        with open(f"{folder}/launch", "rb") as file:
            launch = marshal.load(file)  # noqa: S302 - the bot wrote it.
        me, start, boot = (identity(os.getpid()) or {}).values()
        own = f'{{"pid": {me}, "start": {start}, "boot": "{boot}"}}'
        _write(folder, "pid.json", own, once=True)
        os.unlink(f"{folder}/launch")
    except OSError as error:
        _say(f"cannot start a run from {folder}: {error}")
        return 125
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    ended: dict[int, int] = {}
    reports, report = os.pipe()

    def prepare() -> None:
        for group, limits in launch["groups"].items():
            _join(group, limits)
        if launch["contained"]:
            _prepare_sandbox(report)
            _open(launch["opens"])
            _listen(folder, launch["listens"])

    program = _spawn(launch["argv"], launch["cwd"], launch["env"], prepare)
    os.close(report)
    ordered_by = _wait_for(program, ended)
    if program in ended:
        at = time.time()
        _end_all(_LEFTOVERS_GRACE_SECONDS, ended)
    else:
        _end_all(_grace(folder), ended)
        at = time.time()
    code = os.waitstatus_to_exitcode(ended.get(program, signal.SIGKILL))
    if launch["contained"]:
        code, at = _reported(reports, code, at)
    memory_kills = 0
    for group in launch["groups"]:
        memory_kills += _memory_kills(group)
        try:
            os.rmdir(group)
        except OSError:
            pass  # The runtime removes those that are left.
    killed = -code if code < 0 else None
    import json  # Only here and below, because it takes long.

    end = {"code": None if killed else code, "signal": killed, "at": at, "ordered_by": ordered_by}
    end["memory_kills"] = memory_kills
    try:
        _write(folder, "exit.json", json.dumps(end))
    except OSError as error:
        _say(f"cannot write {folder}/exit.json: {error}")
    return 128 + killed if killed else code


def identity(pid: int) -> dict[str, object] | None:
    """Return pid, start time (in clock ticks) and boot id; None if no such process runs."""
    fields = stat(pid)
    if fields is None or fields[0] in "ZX":
        return None
    boot = _read("/proc/sys/kernel/random/boot_id").strip()
    return {"pid": pid, "start": int(fields[19]), "boot": boot}


def stat(pid: int | str) -> list[str] | None:
    """Return the fields of /proc/PID/stat (proc(5)) from the third on; None without such a process.

    Index 0 has the state, 1 the parent's pid, 19 the start time in clock ticks since boot.
    """
    try:
        text = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None  # Any other failure is the machine's, and says nothing about the process.
    return text[text.rindex(")") + 2 :].split()  # The name before it may hold spaces and ")".


def _spawn(argv: list[str], cwd: str, env: dict[str, str], prepare: "Callable[[], None]") -> int:
    """Start the program as the terminal's foreground group; return its pid.

    `prepare` is called in the new process, which exits with 127 if the program cannot run.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        if os.isatty(0):
            os.tcsetpgrp(0, os.getpid())
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # The parent may ignore some.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            prepare()
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
    except Exception as error:  # noqa: BLE001 - the forked child must not return.
        why = getattr(error, "strerror", None) or error
        _say(
            f"cannot run {argv[:1]} in {cwd}: {why}. Is the program installed and on "
            f"PATH={env.get('PATH')}, and does the folder exist?"
        )
    finally:
        os._exit(127)


def _prepare_sandbox(report: int) -> None:
    """Prepare the calling process to execute a sandbox.

    Makes `report` available at the descriptor `REPORT`. Ignores signals that are meant for the
    program in the sandbox, such as SIGTERM and SIGINT, so that they do not end the sandbox.
    """
    for ignored in (*_WAITED - {signal.SIGCHLD}, *_IGNORED):
        signal.signal(ignored, signal.SIG_IGN)
    os.dup2(report, REPORT)


def _open(files: dict[int, str | bytes]) -> None:
    """Open each of `files` at its descriptor: the file at a path, or a new one of these bytes."""
    for number, given in files.items():
        if isinstance(given, str):
            file = os.open(given, os.O_RDONLY)
        else:
            file = os.memfd_create("content")
            os.write(file, given)
            os.lseek(file, 0, os.SEEK_SET)
        _move(file, number)


def _move(descriptor: int, number: int) -> None:
    """Give a descriptor another number, at which the program inherits it."""
    os.dup2(descriptor, number)
    os.close(descriptor)  # So the next one gets no number that is still to be given.


def _listen(folder: str, names: dict[int, str]) -> None:
    """Make sockets in the run's folder, and have the program inherit them."""
    if not names:
        return
    import _socket

    os.chdir(folder)  # The path of a socket is limited to 107 bytes: unix(7).
    for number, name in names.items():
        listener = _socket.socket(_socket.AF_UNIX)
        listener.bind(name)
        listener.listen()
        _move(listener.detach(), number)


def _join(group: str, limits: dict[str, str], tries: int = 3) -> None:
    """Make a control group with its limits, and move the calling process into it: cgroups(7).

    The caller is the process that then executes the program, not the supervisor. Version 1 has the
    file `tasks`, which moves one thread, and the caller has only one. That takes 50 us. With
    `cgroup.procs` it takes 5 to 17 ms (measured), because the kernel must first keep all other
    processes from starting threads.
    """
    try:
        os.mkdir(group)
    except FileExistsError:
        pass
    try:
        members = "tasks" if os.path.exists(f"{group}/tasks") else "cgroup.procs"
        for name, value in (*limits.items(), (members, "0")):
            with open(f"{group}/{name}", "w", encoding="ascii") as file:
                file.write(value)
    except FileNotFoundError:  # A bot that starts removes groups without processes.
        if tries == 1:
            raise
        _join(group, limits, tries - 1)


def _memory_kills(group: str) -> int:
    """Return how many processes of a control group its memory limit killed; 0 if unknown."""
    for name in ("memory.events", "memory.oom_control"):  # Of versions 2 and 1.
        try:
            fields = dict(line.split() for line in _read(f"{group}/{name}").splitlines())
        except OSError:
            continue
        return int(fields.get("oom_kill", 0))
    return 0


def _reported(reports: int, code: int, at: float) -> tuple[int, float]:
    """Return the exit code (or negative signal) of a sandbox's program, and the time of its end.

    `code` and `at` are those of the sandbox. They are used if the program's end was not reported; a
    `code` from 129 to 159 is then converted to the negative signal.
    """
    import json

    try:
        report = json.loads(os.read(reports, 200))
        return os.waitstatus_to_exitcode(int(report["status"])), min(at, float(report["at"]))
    except (ValueError, TypeError, KeyError, OverflowError):  # The program may write there too.
        # It exits with 128 and the signal that ended its first process, as shells do.
        return (128 - code if 128 < code < 160 else code), at


def _wait_for(program: int, ended: dict[int, int]) -> int:
    """Wait for the program's exit, or for a signal that orders its end; return the signal or 0.

    If the program has exited and a signal is pending, return the signal: when a terminal closes,
    the program may exit before this process handles the signal.
    """
    while program not in ended:
        number: int = signal.sigwaitinfo(_WAITED).si_signo
        _reap(ended)
        if number != signal.SIGCHLD:
            return number
    return 0


def _end_all(grace: float, ended: dict[int, int]) -> None:
    """End every descendant, with SIGKILL after `grace` seconds; give up 5 seconds after that.

    Orphans are among them, because this process is their subreaper (prctl(2)).
    """
    force_at = time.monotonic() + grace
    for pid in descendants(os.getpid()):
        _kill(pid, signal.SIGTERM)
        _kill(pid, signal.SIGCONT)  # A stopped process does not handle SIGTERM.
    while _reap(ended) and time.monotonic() < force_at + _FORCE_SECONDS:
        if time.monotonic() >= force_at:
            for pid in descendants(os.getpid()):
                _kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.02)


def _reap(ended: dict[int, int]) -> bool:
    """Collect the status of every child that ended; return whether any child is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        ended[pid] = status


def descendants(parent: int) -> list[int]:
    """Return the pids of all descendants of the process `parent`, its children first."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := stat(entry)):
            children.setdefault(int(fields[1]), []).append(int(entry))
    found = [parent]
    for pid in found:  # The list grows during the loop.
        found += children.get(pid, [])
    return found[1:]


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass  # It ended, or runs as another user now.


def _grace(folder: str) -> float:
    try:
        return float(_read(f"{folder}/grace"))
    except (OSError, ValueError):
        return _STOP_GRACE_SECONDS


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(folder: str, name: str, text: str, once: bool = False) -> None:
    """Write a file atomically and durably; with `once`, raise `FileExistsError` if it exists."""
    new = f"{folder}/{name}.{os.getpid()}"
    with open(
        new, "w", encoding="utf-8", opener=lambda path, how: os.open(path, how, 0o600)
    ) as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    if once:
        os.link(new, f"{folder}/{name}")
        os.unlink(new)
    else:
        os.replace(new, f"{folder}/{name}")
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def _say(text: str) -> None:
    try:
        os.write(2, f"mergewright: {text}\n".encode(errors="replace"))
    except OSError:
        pass  # The terminal may be closed.


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
