"""Detects outages: a resource is used up, or a container engine or GitHub does not answer.

Each outage is an incident until it is over. An action that fails because of an outage waits, and
the attempt is not counted, because nothing is wrong with the action's session.
"""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from bot.store import IncidentsTable, StoreFailure
from bot.system.clock import Clock
from runtimes.isolation import ISOLATIONS

#: The pauses before an action is tried again, in an outage of this machine and of GitHub.
_PAUSE, _GITHUB_PAUSE = timedelta(seconds=5), timedelta(seconds=30)
#: The pause between two checks whether an outage is over.
_LOOK_SECONDS = 2.0
#: A disk with less free space is treated as full, even if no message says so.
_FULL_BYTES = 1024 * 1024
#: A disk has space again if a file of this size can be written. The bot can open files again if
#: this number of files can be opened at once.
_PROBE_BYTES, _PROBE_FILES = 4 * 1024 * 1024, 64


def _disks(data: Path) -> list[Path]:
    """Return the data folder, and each folder in it that is on a disk of its own."""
    try:
        device = data.stat().st_dev
        found = [Path(one.path) for one in os.scandir(data) if one.is_dir(follow_symlinks=False)]
        return [data, *(one for one in found if one.stat().st_dev != device)]
    except OSError:
        return [data]


def _full(data: Path) -> Path | None:
    """Return the first folder of `_disks` whose disk is full, or None."""
    for folder in _disks(data):
        with suppress(OSError):
            disk = os.statvfs(folder)
            if disk.f_bavail * disk.f_frsize < _FULL_BYTES:
                return folder
    return None


def _writes(data: Path) -> bool:
    """Whether space and quotas allow writing `_PROBE_BYTES` on each of `_disks`."""
    try:
        for folder in _disks(data):
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(bytes(_PROBE_BYTES))
                probe.flush()
    except OSError:
        return False
    return True


def _opens(_: Path) -> bool:
    with ExitStack() as opened:
        try:
            for _number in range(_PROBE_FILES):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError:
            return False
    return True


def _forks(_: Path) -> bool:
    try:
        subprocess.run(["/bin/true"], check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return True


class Resource(NamedTuple):
    """What can have an outage: disks, open files, processes, a container engine, or GitHub."""

    key: str  #: The key of its incident.
    words: re.Pattern[str]  #: Matches the messages of failures that its outage causes.
    text: str  #: What happened, and the remedy; may contain `{folder}`.
    #: Takes the data folder and returns whether the outage is over. None for GitHub, because a
    #: request to GitHub may take long and is made in another thread.
    over: Callable[[Path], bool] | None


def _engine(name: str) -> Resource:
    return Resource(
        name,
        re.compile(rf"\b{name} does not (?:work here|answer): no answer at"),
        f"{name} does not answer, and agents cannot be isolated without it: start it",
        lambda _: ISOLATIONS[name].answers(),
    )


RESOURCES = (
    Resource(
        "disk",
        re.compile(
            r"\[Errno (28|122)\]|No space left|[Oo]ut of disk ?space|[Dd]isk quota|disk is full"
        ),
        "the disk with {folder} is full: free some space there",
        _writes,
    ),
    Resource(
        "files",
        re.compile(r"\[Errno (23|24)\]|Too many open files"),
        "the bot has too many open files: raise the limit of its service (LimitNOFILE, ulimit -n)",
        _opens,
    ),
    Resource(
        "processes",
        re.compile(r"\[Errno 12\]|Cannot allocate memory|Resource temporarily unavailable"),
        "the bot cannot start programs: free memory, or raise the limits of its service (TasksMax,"
        " ulimit -u)",
        _forks,
    ),
    _engine("docker"),
    _engine("podman"),
)
#: Its pattern matches no message, because a status 502 may concern only a single request.
GITHUB = Resource(
    "github",
    re.compile(r"(?!)"),
    "GitHub does not answer: check the network, the proxy and GitHub's status page",
    None,
)
_ENDS = ". The bot repeats the actions that failed because of this."


@dataclass(eq=False)
class Outages:
    """The current outages, which are recorded as incidents. One thread calls `look`."""

    incidents: IncidentsTable
    folder: Path  #: The data folder; the disks with its parts must not be full.
    clock: Clock
    workers: Executor
    github_answers: Callable[[], bool]  #: Whether GitHub answers; the request may take long.
    #: The keys of the current outages, and whether each outage is recorded as an incident.
    _open: dict[str, bool] = field(default_factory=dict, init=False)
    _looked: float = field(default=-_LOOK_SECONDS, init=False)
    _loaded: bool = field(default=False, init=False)
    _answer: Future[bool] | None = field(default=None, init=False)  #: Whether GitHub answers.

    def retry_at(self, message: str, *, of_github: bool) -> datetime | None:
        """Return when to retry an action that failed with `message`, or None without an outage.

        `of_github` says that GitHub did not answer the action's request. The cause may be this
        request alone, so GitHub is asked again.
        """
        if self.met(message):
            return self.clock() + _PAUSE
        if not of_github or (GITHUB.key not in self._open and self.github_answers()):
            return None
        self._open.setdefault(GITHUB.key, False)
        return self.clock() + _GITHUB_PAUSE

    def met(self, message: str) -> bool:
        """Whether an outage of this machine or a container engine caused a failure with `message`.

        Such an outage is remembered, and `look` records it. While a disk is full, it counts as the
        cause of every failure.
        """
        found = [one.key for one in RESOURCES if one.words.search(message)]
        if not found and _full(self.folder):
            found = ["disk"]
        for key in found:
            self._open.setdefault(key, False)
        return bool(found)

    def look(self) -> None:
        """Record new outages and close those that are over.

        Looks every 2 s at most; calls in between do nothing.
        """
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        if _full(self.folder):
            self._open.setdefault("disk", False)
        with suppress(StoreFailure):  # A full disk has no space for its incident; later it has.
            if not self._loaded:
                keys = {incident.key for incident in self.incidents.current()}
                self._open.update(
                    {key: True for one in (*RESOURCES, GITHUB) if (key := one.key) in keys}
                )
                self._loaded = True
            for one in (*RESOURCES, GITHUB):
                if one.key in self._open:
                    self._follow(one)

    def _follow(self, resource: Resource) -> None:
        if not self._open[resource.key]:
            text = resource.text.format(folder=_full(self.folder) or self.folder) + _ENDS
            self.incidents.report(resource.key, text, self.clock())
            self._open[resource.key] = True
        if resource.over(self.folder) if resource.over else self._github_is_back():
            self.incidents.clear(resource.key, self.clock())
            del self._open[resource.key]

    def _github_is_back(self) -> bool:
        """Whether GitHub answers. Another thread asks; until it knows, the result is False."""
        if self._answer is None:
            self._answer = self.workers.submit(self.github_answers)
        if not self._answer.done():
            return False
        answer, self._answer = self._answer, None
        return answer.result()
