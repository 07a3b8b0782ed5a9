"""Prepares, observes and ends a run that the program `supervise.py` supervises.

This module and `supervise.py` exchange files in the run's folder.
"""

import errno
import json
import marshal
import os
import select
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from lifecycle.model.facts import Exit
from lifecycle.model.text import settled
from lifecycle.model.times import from_seconds
from runtimes.base import Launch, RuntimeFailure
from runtimes.files import is_about_file, open_regular, replacing, write_private
from runtimes.supervise import MARK, identity, stat

_T = TypeVar("_T")
#: `Exit.lost` of a program whose supervisor was killed: processes that it left may still run.
VANISHED = "its supervisor vanished"
_TAIL_BYTES = 8192
_TAIL_LINES = 20
_RECORD_BYTES = 65_536
#: The file that marks a run whose program is in a sandbox. That program cannot write the file.
_CONTAINED = "contained"
_GROUPS = "groups.json"  #: The file with the paths of a run's control groups.
#: Errors of reading a record after which it counts as missing.
_UNREADABLE = (OSError, msgspec.DecodeError, RecursionError)
_MARGIN_SECONDS = 8.0  # For the supervisor beyond the grace period: SIGKILL, records, a busy disk.

#: Why a program was ended, by the signal that its supervisor got.
_ENDED_BY: Mapping[int, str] = {
    signal.SIGHUP: "its terminal was closed",
    signal.SIGTERM: "it was asked to end",
}


class _Identity(msgspec.Struct, frozen=True):
    """A process, as `supervise.identity` returns it; `start` is in clock ticks since the boot."""

    pid: int
    start: int
    boot: str


class Living(NamedTuple):
    """A living supervisor."""

    pid: int
    start: int  #: In clock ticks since the boot.
    parent: int  #: The pid of its parent process.


class _Record(msgspec.Struct, frozen=True):
    at: float
    code: int | None = None
    signal: int | None = None
    ordered_by: int = 0
    memory_kills: int = 0


def prepare(launch: Launch, env: dict[str, str]) -> None:
    """Write `launch` into the run's folder, with the program's environment `env`.

    The added variable `MARK` serves to find processes that outlive the program.
    """
    env = {**env, MARK: str(launch.dir.resolve())}
    files = launch.opens.items()
    value = {
        "argv": list(launch.argv),
        "cwd": str(launch.cwd),
        "env": env,
        "contained": launch.contained,
        "opens": {number: file if isinstance(file, bytes) else str(file) for number, file in files},
        "listens": dict(launch.listens),
        "groups": {group: dict(limits) for group, limits in launch.groups.items()},
    }
    with replacing(launch.dir / "launch") as file:
        file.write(marshal.dumps(value))
    if launch.contained:
        write_private(launch.dir / _CONTAINED, "")
    if launch.groups:
        write_private(launch.dir / _GROUPS, json.dumps([*launch.groups]))


def started(folder: Path) -> bool:
    """Whether the supervisor of this folder's run has recorded its start."""
    return (folder / "pid.json").exists()


def contained(folder: Path) -> bool:
    """Whether it is recorded that this folder's run was started in a sandbox.

    False for runs that were started by an older version, which did not record it.
    """
    return (folder / _CONTAINED).exists()


def spent(folder: Path) -> bool:
    """Whether this folder's run was started or stopped, and so must not be started again."""
    return started(folder) or (folder / "grace").exists()


def outcome(folder: Path) -> Exit | None:
    """Return how a run ended, as its supervisor recorded.

    `Exit.lost` says why there is no record, or why the supervisor had to end the program. Returns
    None while the run lasts, or if it was never started. Any other result is final. Raises
    `OSError` if a fault of the machine prevents reading a file.
    """
    if not started(folder) or supervisor(folder):  # Before the record is read: it may end now.
        return None
    try:
        record = _read(folder / "exit.json", _Record)
        lost = _ENDED_BY.get(record.ordered_by, "")
    except _UNREADABLE as error:
        if isinstance(error, OSError) and not is_about_file(error):
            raise
        record, lost = _Record(at=_last_sign(folder)), _vanished(folder)
    return Exit(
        at=from_seconds(record.at),
        code=record.code,
        signal=record.signal,
        tail=tail(folder / "output.log"),
        lost=lost,
    )


def memory_kills(folder: Path) -> int:
    """Return how many processes of an ended run were killed at its memory limit; 0 if unknown."""
    try:
        return _read(folder / "exit.json", _Record).memory_kills
    except _UNREADABLE:
        return 0


def tail(log: Path) -> str:
    """Return the last 20 lines of a log, at most 8 KiB, as plain text; empty if it is unreadable.

    Raises `OSError` if the machine, not the file, is the cause.
    """
    try:
        with open_regular(log.parent.resolve() / log.name) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError as error:
        if is_about_file(error):
            return ""
        raise
    return "\n".join(settled(text).rstrip().splitlines()[-_TAIL_LINES:])


def end(folder: Path, grace_seconds: float) -> None:
    """End a run's supervisor and all processes of the run, even if the supervisor is gone.

    SIGTERM comes first, SIGKILL after `grace_seconds`; without a supervisor, SIGKILL comes at once.
    Raises `RuntimeFailure` if a process cannot be ended.
    """
    with suppress(OSError):  # A full disk must not keep a program alive.
        (folder / "grace").write_text(str(grace_seconds))
    if pid := supervisor(folder):
        _end(pid, signal.SIGTERM, grace_seconds + _MARGIN_SECONDS)
    if pid := supervisor(folder):
        _end(pid, signal.SIGKILL, _MARGIN_SECONDS)
    deadline = time.monotonic() + _MARGIN_SECONDS
    while survivors := list(_marked(folder)):  # Repeated: a process may fork while it is killed.
        if time.monotonic() > deadline:
            raise RuntimeFailure(
                f"processes {survivors} of {folder} survive SIGKILL, probably because they hang on"
                " a disk or network mount: repair or unmount it, or restart the machine"
            )
        for pid in survivors:
            _end(pid, signal.SIGKILL, 0.2)
    remove_groups(folder)


def supervisor(folder: Path) -> int | None:
    """Return the pid of a run's supervisor; None if it has ended or was never started."""
    born = _born(folder)
    return born.pid if born and identity(born.pid) == msgspec.structs.asdict(born) else None


def living(folder: Path) -> Living | None:
    """Return the living supervisor of a run; None if it has ended or was never started."""
    if (born := _born(folder)) is None or identity(born.pid) != msgspec.structs.asdict(born):
        return None
    fields = stat(born.pid)
    return Living(born.pid, born.start, int(fields[1])) if fields else None


def lives(known: Living) -> bool:
    """Whether a supervisor still lives and still has the same parent process."""
    fields = stat(known.pid)
    if fields is None or fields[0] in "ZX":
        return False
    return (int(fields[19]), int(fields[1])) == (known.start, known.parent)


def _born(folder: Path) -> _Identity | None:
    """Return the identity that the supervisor recorded at its start; None without a valid one."""
    try:
        return _read(folder / "pid.json", _Identity)
    except _UNREADABLE as error:
        if isinstance(error, OSError) and not is_about_file(error):
            raise  # Otherwise a living run would count as ended.
        return None


def _read(file: Path, kind: type[_T]) -> _T:
    """Read a file that the supervisor wrote; an agent that is not isolated may have replaced it."""
    place = file.parent.resolve() / file.name  # A runtime's link leads to the folder.
    with open_regular(place, names=2) as opened:  # A new `pid.json` has two names for a moment.
        return msgspec.json.decode(opened.read(_RECORD_BYTES), type=kind)


def end_orphans(folders: Iterable[Path]) -> set[Path]:
    """Kill all processes of the runs with these folders, found by the variable `MARK`.

    Pass only runs whose supervisors have ended: a living supervisor would be killed, too. Returns
    the folders of runs that had processes. Call it again for these, because a process may fork
    while it is killed. Raises `OSError` if a process cannot be examined.
    """
    marks = {f"{MARK}={folder.resolve()}".encode(): folder for folder in folders}
    found = set()
    for pid, mark in _with_mark(marks.keys()) if marks else ():
        found.add(marks[mark])
        _end(pid, signal.SIGKILL, 0.0)
    return found


def remove_groups(folder: Path) -> bool:
    """Remove the control groups that a run's killed supervisor left behind. Idempotent.

    Returns False if a group still has a process.
    """
    busy = False
    with suppress(*_UNREADABLE):
        for group in _read(folder / _GROUPS, tuple[str, ...]):
            try:
                Path(group).rmdir()
            except OSError as error:  # Or it is gone.
                busy |= error.errno == errno.EBUSY
    return not busy


def _vanished(folder: Path) -> str:
    """Return why a supervisor left no record."""
    born, here = _born(folder), identity(os.getpid())
    if born and here and born.boot != here["boot"]:
        return "the machine was restarted"
    return VANISHED


def _marked(folder: Path) -> Iterator[int]:
    """Return the pids of this user's processes with the run's folder in the variable `MARK`."""
    return (pid for pid, _ in _with_mark({f"{MARK}={folder.resolve()}".encode()}))


def _with_mark(marks: Collection[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield pid and mark of this user's processes with one of these marks (`NAME=VALUE`).

    In a sandbox, only the first process is examined. It has the run's variables, and all others end
    with it. The others could claim to belong to any run. The first process may outlive a supervisor
    that was killed while bubblewrap was setting up the sandbox (measured).
    """
    here = Path("/proc/self/ns/pid").readlink()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "ns" / "pid").readlink() != here and not _is_first(entry):
                continue
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError as error:
            if is_about_file(error):
                continue  # It ended, or is another user's.
            raise  # It may be one with a mark.
        if found := next((mark for mark in variables if mark in marks), None):
            yield int(entry.name), found


def _is_first(process: Path) -> bool:
    """Whether the process with this folder of /proc is the first one in its PID namespace."""
    lines = (process / "status").read_text().splitlines()
    ids = next((line for line in lines if line.startswith("NSpid:")), "")
    return ids.split()[-1:] == ["1"]


def _end(pid: int, number: int, seconds: float) -> None:
    """Send a signal to a process, and wait up to `seconds` for its end.

    Uses a pidfd, which never refers to a later process with the same pid.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, number)
        ended = select.poll()  # `select` takes no descriptors above 1023.
        ended.register(handle, select.POLLIN)
        ended.poll(seconds * 1000)
    os.close(handle)


def _last_sign(folder: Path) -> float:
    files = (folder / "pid.json", folder / "output.log")
    return max(file.stat().st_mtime for file in files if file.exists())
