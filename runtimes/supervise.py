"""Runs one program in a terminal, and writes down how it ended: `python -I -S supervise.py DIR`.

It stands alone (standard library only) because it runs wherever the program runs. In DIR it reads
`launch.json` (argv, cwd, env; removed once read, for env may hold secrets) and writes `pid.json`
(itself: pid, start time, boot) and, when the program and all it left behind have ended,
`exit.json` (code, signal, at, and `told`: the signal by which it was to be ended, or 0). SIGTERM or
SIGHUP ends the program: politely, and after the seconds in the file `grace` (or 5) by force.
"""

# Importing pathlib would take a third of the time a start may take.
# ruff: noqa: PTH105, PTH108, PTH123, PTH208
import contextlib
import ctypes
import json
import os
import signal
import sys
import time

#: Names the run's folder in the environment of all its processes, so that survivors are found.
MARK = "MERGEWRIGHT_RUN_DIR"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_STOP_GRACE_SECONDS = 5.0
_LEFTOVERS_GRACE_SECONDS = 2.0
_FORCE_SECONDS = 5.0
_WAITED = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP})
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def main(folder: str) -> int:
    """Run the program of this folder to its end; returns the exit code for the terminal's owner."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    for number in _WAITED:  # Whoever started us (nohup) may have them ignored: never to be heard.
        signal.signal(number, signal.SIG_DFL)
    for number in _IGNORED:  # They belong to the program in the foreground.
        signal.signal(number, signal.SIG_IGN)
    try:
        launch = json.loads(_read(f"{folder}/launch.json"))
        _write(folder, "pid.json", identity(os.getpid()) or {}, once=True)
        os.unlink(f"{folder}/launch.json")
    except OSError as error:
        _say(f"cannot start a run from {folder}: {error}")
        return 125
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    ended: dict[int, int] = {}
    program = _spawn(launch["argv"], launch["cwd"], launch["env"])
    told = _wait_for(program, ended)
    if program in ended:
        at = time.time()
        _end_all(_LEFTOVERS_GRACE_SECONDS, ended)
    else:
        _end_all(_grace(folder), ended)
        at = time.time()
    code = os.waitstatus_to_exitcode(ended.get(program, signal.SIGKILL))
    killed = -code if code < 0 else None
    record: dict[str, object] = {
        "code": None if killed else code,
        "signal": killed,
        "at": at,
        "told": told,
    }
    try:
        _write(folder, "exit.json", record)
    except OSError as error:
        _say(f"cannot write {folder}/exit.json: {error}")
    return 128 + killed if killed else code


def identity(pid: int) -> dict[str, object] | None:
    """What tells a process from any other that ever had its pid; None where it does not live."""
    stat = _stat(pid)
    if stat is None or stat[0] in "ZX":
        return None
    boot = _read("/proc/sys/kernel/random/boot_id").strip()
    return {"pid": pid, "start": int(stat[19]), "boot": boot}


def _stat(pid: int | str) -> list[str] | None:
    """The fields of /proc/PID/stat from the third on: state, parent, ..., start time at 19."""
    try:
        text = _read(f"/proc/{pid}/stat")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()  # The name before it may hold spaces and ")".


def _spawn(argv: list[str], cwd: str, env: dict[str, str]) -> int:
    """Start the program as the terminal's foreground group; what cannot be run exits with 127."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setpgid(0, 0)
        if os.isatty(0):
            os.tcsetpgrp(0, os.getpid())
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)  # What we or whoever started us had ignored.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
    except Exception as error:  # noqa: BLE001 - nothing may return from this copy of us.
        why = getattr(error, "strerror", None) or error
        _say(
            f"cannot run {argv[:1]} in {cwd}: {why}. Is the program installed and on "
            f"PATH={env.get('PATH')}, and does the folder exist?"
        )
    finally:
        os._exit(127)


def _wait_for(program: int, ended: dict[int, int]) -> int:
    """Wait until the program ends by itself (0), or for the signal by which it is to be ended.

    Where both come together it is the signal: a program whose terminal closes may well end first.
    """
    while program not in ended:
        number = signal.sigwaitinfo(_WAITED).si_signo
        _reap(ended)
        if number != signal.SIGCHLD:
            return number
    return 0


def _end_all(grace: float, ended: dict[int, int]) -> None:
    """End every descendant, however it tried to get away: as their subreaper none escapes us."""
    force_at = time.monotonic() + grace
    for pid in _descendants():
        _kill(pid, signal.SIGTERM)
        _kill(pid, signal.SIGCONT)  # A stopped process does not hear the first.
    while _reap(ended) and time.monotonic() < force_at + _FORCE_SECONDS:
        if time.monotonic() >= force_at:
            for pid in _descendants():
                _kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.02)


def _reap(ended: dict[int, int]) -> bool:
    """Collect the status of every child that ended; whether any child is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        ended[pid] = status


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (stat := _stat(entry)):
            children.setdefault(int(stat[1]), []).append(int(entry))
    found = [os.getpid()]
    for pid in found:  # It grows while it is walked.
        found += children.get(pid, [])
    return found[1:]


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):  # It ended meanwhile, or changed its user.
        os.kill(pid, number)


def _grace(folder: str) -> float:
    try:
        return float(_read(f"{folder}/grace"))
    except (OSError, ValueError):
        return _STOP_GRACE_SECONDS


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(folder: str, name: str, value: dict[str, object], once: bool = False) -> None:
    """Write a file whole and durably, or not at all; `once`: refuse where it is there already."""
    new = f"{folder}/{name}.{os.getpid()}"
    with open(
        new, "w", encoding="utf-8", opener=lambda path, how: os.open(path, how, 0o600)
    ) as out:
        out.write(json.dumps(value))
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
    with contextlib.suppress(OSError):  # The terminal may be gone.
        os.write(2, f"mergewright: {text}\n".encode(errors="replace"))


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
