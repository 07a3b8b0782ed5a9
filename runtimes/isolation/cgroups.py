"""Control groups that limit a run as a whole, where this user may make some: cgroups(7)."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from runtimes.isolation.base import Limits

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_FOLDER = "mergewright"
_PERIOD = 100_000  #: Microseconds.
_CONTROLLERS = ("memory", "pids", "cpu")


class ControlGroups:
    """The places below which groups can be made, one for each controller.

    Of version 2, one place serves all; of version 1, each controller has a hierarchy of its own.
    """

    def __init__(self, root: Path = _ROOT, own: Path = _OWN) -> None:
        self._second: Path | None = None
        self._first: dict[str, Path] = {}
        groups = dict(_memberships(own))
        if (root / "cgroup.controllers").is_file():
            self._second = _delegated(root, groups.get("", "/"))
        else:
            for name in _CONTROLLERS:
                place = root / name / groups.get(name, "/").lstrip("/")
                if os.access(place, os.W_OK) and (root / name / "cgroup.procs").exists():
                    self._first[name] = place / _FOLDER

    @property
    def limited(self) -> frozenset[str]:
        """What can be limited: `memory`, `pids`, `cpu`."""
        if self._second:
            return frozenset(_words(self._second / "cgroup.subtree_control")) & {*_CONTROLLERS}
        return frozenset(self._first)

    def groups(self, name: str, limits: Limits) -> dict[str, Mapping[str, str]]:
        """Return the groups of a run with their limits, as in `Launch.groups`; makes their parents.

        Raises `OSError`.
        """
        values = {kind: value for kind, value in _values(limits) if kind in self.limited}
        if self._second:
            files = {k: v for kind in values for k, v in _second(kind, limits).items()}
            return {str(self._second / f"{_FOLDER}-{name}"): files} if files else {}
        found: dict[str, Mapping[str, str]] = {}
        for kind in values:
            self._first[kind].mkdir(exist_ok=True)
            found[str(self._first[kind] / name)] = _first(kind, limits)
        return found

    def remove_empty(self) -> None:
        """Remove the groups of runs that have ended; one with processes stays: rmdir fails."""
        places = [*self._first.values()]
        entries = [entry for place in places if place.is_dir() for entry in place.iterdir()]
        if self._second:
            entries += self._second.glob(f"{_FOLDER}-*")
        for entry in entries:
            if entry.is_dir():
                with suppress(OSError):
                    entry.rmdir()


def _values(limits: Limits) -> Iterator[tuple[str, float]]:
    all_of_them = {"memory": limits.memory_mb, "pids": limits.processes, "cpu": limits.cpus}
    return ((kind, value) for kind, value in all_of_them.items() if value)


def _first(kind: str, limits: Limits) -> Mapping[str, str]:
    """The files of version 1: https://docs.kernel.org/admin-guide/cgroup-v1/."""
    if kind == "memory":
        return {"memory.limit_in_bytes": str(limits.memory_mb * 1024 * 1024)}
    if kind == "pids":
        return {"pids.max": str(limits.processes)}
    quota = str(int(limits.cpus * _PERIOD))
    return {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": quota}


def _second(kind: str, limits: Limits) -> Mapping[str, str]:
    """The files of version 2: https://docs.kernel.org/admin-guide/cgroup-v2.html."""
    if kind == "memory":
        return {"memory.max": str(limits.memory_mb * 1024 * 1024)}
    if kind == "pids":
        return {"pids.max": str(limits.processes)}
    return {"cpu.max": f"{int(limits.cpus * _PERIOD)} {_PERIOD}"}


def _memberships(own: Path) -> Iterator[tuple[str, str]]:
    """The groups of this process by controller; that of version 2 has an empty name."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            yield from ((name, path) for name in controllers.split(","))


def _delegated(root: Path, path: str) -> Path | None:
    """The nearest group above this process in which this user may make limited groups."""
    place = root / path.lstrip("/")
    for folder in (place, *place.parents):
        if not folder.is_relative_to(root):
            break
        has = _words(folder / "cgroup.subtree_control")
        if {"memory", "pids"} <= has and os.access(folder / "cgroup.procs", os.W_OK):
            return folder
    return None


def _words(file: Path) -> set[str]:
    try:
        return set(file.read_text().split())
    except OSError:
        return set()
