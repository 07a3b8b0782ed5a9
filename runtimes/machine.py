"""What the machine has left."""

from pathlib import Path

_MEMORY = Path("/proc/meminfo")


def free_mb(memory: Path = _MEMORY) -> int | None:
    """The megabytes that programs could take without swapping; None where nobody can tell."""
    try:
        for line in memory.read_text(encoding="ascii").splitlines():
            name, _, rest = line.partition(":")
            if name == "MemAvailable":
                return int(rest.split()[0]) // 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
