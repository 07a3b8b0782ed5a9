"""Control groups, which limit all processes of a run together, if the bot may make groups.

https://man7.org/linux/man-pages/man7/cgroups.7.html
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from runtimes.isolation.base import Limits

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_PREFIX = "mergewright-"  #: Of the names of groups.
_PERIOD = 100_000  #: Microseconds.
_CONTROLLERS = ("memory", "pids", "cpu")


class ControlGroups:
    """The folders in which this user may make control groups, one for each controller.

    With version 2 of control groups, all controllers share a folder; with version 1, each has its
    own hierarchy of folders.
    """

    def __init__(self, root: Path = _ROOT, own: Path = _OWN) -> None:
        groups = dict(_memberships(own))
        self._places: dict[str, Path] = {}
        self._files = _first
        if (root / "cgroup.controllers").is_file():
            self._files = _second
            place, known = _delegated(root, groups.get("", "/"))
            self._places = {name: place for name in _CONTROLLERS if name in known}
            return
        for name in _CONTROLLERS:
            place = root / name / groups.get(name, "/").lstrip("/")
            if os.access(place, os.W_OK) and (root / name / "cgroup.procs").exists():
                self._places[name] = place

    @property
    def limited(self) -> frozenset[str]:
        """The controllers that can limit a run here: any of `memory`, `pids` and `cpu`."""
        return frozenset(self._places)

    def groups(self, name: str, limits: Limits) -> dict[str, Mapping[str, str]]:
        """Return the control groups of a run with their limits, as in `Launch.groups`.

        `name` must be unique on the machine. The result is empty without limits, or if none can be
        set.
        """
        found: dict[str, Mapping[str, str]] = {}
        wanted = {"memory": limits.memory_mb, "pids": limits.processes, "cpu": limits.cpus}
        for kind, place in self._places.items():
            if wanted[kind]:
                group = str(place / f"{_PREFIX}{name}")
                found[group] = {**found.get(group, {}), **self._files(kind, limits)}
        return found

    def remove_empty(self) -> None:
        """Remove the groups of runs that have ended; rmdir keeps groups with processes."""
        for place in self._places.values():
            for group in place.glob(f"{_PREFIX}*"):
                with suppress(OSError):
                    group.rmdir()


def _first(kind: str, limits: Limits) -> Mapping[str, str]:
    """Return a controller's files of version 1, with the limits to write into them.

    https://docs.kernel.org/admin-guide/cgroup-v1/
    """
    if kind == "memory":
        return {"memory.limit_in_bytes": str(limits.memory_mb * 1024 * 1024)}
    if kind == "pids":
        return {"pids.max": str(limits.processes)}
    quota = str(int(limits.cpus * _PERIOD))
    return {"cpu.cfs_period_us": str(_PERIOD), "cpu.cfs_quota_us": quota}


def _second(kind: str, limits: Limits) -> Mapping[str, str]:
    """Return a controller's files of version 2, with the limits to write into them.

    https://docs.kernel.org/admin-guide/cgroup-v2.html
    """
    if kind == "memory":
        return {"memory.max": str(limits.memory_mb * 1024 * 1024)}
    if kind == "pids":
        return {"pids.max": str(limits.processes)}
    return {"cpu.max": f"{int(limits.cpus * _PERIOD)} {_PERIOD}"}


def _memberships(own: Path) -> Iterator[tuple[str, str]]:
    """Yield each controller's name (empty for version 2) and this process's group in it."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            yield from ((name, path) for name in controllers.split(","))


def _delegated(root: Path, path: str) -> tuple[Path, set[str]]:
    """Return the nearest group around this process in which this user may make limited groups.

    Memory and processes must be among the limits. Also return all controllers that this group can
    limit; without such a group there are none.
    """
    place = root / path.lstrip("/")
    for folder in (place, *place.parents):
        if not folder.is_relative_to(root):
            break
        if os.access(folder / "cgroup.procs", os.W_OK):
            enabled = _enabled(folder)
            if {"memory", "pids"} <= enabled:
                return folder, enabled
    return root, set()


def _enabled(folder: Path) -> set[str]:
    """Return the controllers that a group enables for its subgroups.

    If `memory` or `pids` is not among them, first enables all that are available.

    systemd delegates a service's group with `Delegate=yes` and leaves it to the service to enable
    them. The kernel refuses that for a group that has processes itself; `DelegateSubgroup=` moves
    the service's processes into a subgroup.
    https://systemd.io/CGROUP_DELEGATION/
    """
    enabled = _words(folder / "cgroup.subtree_control")
    if {"memory", "pids"} <= enabled:
        return enabled
    if available := [
        name for name in _CONTROLLERS if name in _words(folder / "cgroup.controllers")
    ]:
        with suppress(OSError):
            new = " ".join(f"+{name}" for name in available)
            (folder / "cgroup.subtree_control").write_text(new)
            enabled.update(available)
    return enabled


def _words(file: Path) -> set[str]:
    try:
        return set(file.read_text().split())
    except OSError:
        return set()
