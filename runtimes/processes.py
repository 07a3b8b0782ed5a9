"""Finds processes that are known by the pid they have in a sandbox."""

from pathlib import Path

from runtimes.files import read_text


def is_running(pid: int, began: str) -> bool:
    """Whether a process runs that has this pid in its own PID namespace, here or in a sandbox.

    `began` is its start time, in clock ticks since boot: field 22 of /proc/PID/stat (proc(5)), the
    same in every namespace. It distinguishes the process from a later one with the same pid.
    """
    if _began(str(pid)) == began:
        return True
    pids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return any(_began(one) == began and _inner_pid(one) == pid for one in pids)


def _began(pid: str) -> str:
    fields = read_text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def _inner_pid(pid: str) -> int:
    """Return a process's pid in its own PID namespace, or 0 if it is unknown.

    It is the last number of `NSpid` in proc_pid_status(5).
    """
    lines = read_text(Path(f"/proc/{pid}/status")).splitlines()
    found = next((line for line in lines if line.startswith("NSpid:")), "NSpid: 0")
    return int(found.split()[-1])
