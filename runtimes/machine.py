"""The free memory of this machine, which limits how many sessions start."""

from pathlib import Path

_MEMORY = Path("/proc/meminfo")


def free_mb(memory: Path = _MEMORY) -> int | None:
    """The megabytes that programs can use without swapping (`MemAvailable` of proc(5)).

    None if the system does not report it.
    """
    try:
        for line in memory.read_text(encoding="ascii").splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) // 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
