"""The lease that lets only one bot at a time act on a database."""

import os
import socket
import sqlite3
from datetime import datetime
from pathlib import Path

from bot.store.database import Fence, StoreTable
from bot.store.outbox import INHERIT
from bot.store.rows import from_timestamp

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LEADER = "SELECT owner, epoch, expires FROM lease WHERE id = 1 AND owner <> ''"
_RENEW = "UPDATE lease SET expires = ? WHERE owner = ? RETURNING epoch"
_RELEASE = "UPDATE lease SET owner = '', expires = 0 WHERE owner = ?"
_TAKE_AWAY = "UPDATE lease SET owner = '', expires = 0"
_TAKE_OVER = """INSERT INTO lease (id, owner, epoch, expires) VALUES (1, ?, 1, ?)
    ON CONFLICT (id) DO UPDATE
    SET owner = excluded.owner, epoch = epoch + 1, expires = excluded.expires
    RETURNING epoch"""


#: The suffix of the leader's name if `mergewright cleanup`, not a bot, holds the lease.
CLEANUP = ":cleanup"


class LeaseTable(StoreTable):
    """The one row that names the leader, with an expiry and an epoch."""

    def acquire(
        self, owner: str, now: datetime, seconds: float, expired: datetime | None = None
    ) -> int | None:
        """Acquire or renew the lease for `seconds`; return the epoch, or None while another leads.

        Another leader's lease counts as expired if its expiry is not after `expired`, which is
        `now` by default. A leader on this host is replaced at once if its name comes from
        `this_process` and its process is gone. When the leader changes, the epoch grows, and the
        due actions (except typed keys) are listed in the table `inherited`, because the former
        leader may still execute them.

        Raises:
            StoreBusy: another process holds the write lock, for example a suspended one.
        """
        expires = now.timestamp() + seconds

        def work(connection: sqlite3.Connection) -> int | None:
            for renewed in connection.execute(_RENEW, (expires, owner)).fetchall():
                return int(renewed["epoch"])
            leader = connection.execute(_LEADER).fetchone()
            until = (expired or now).timestamp()
            if leader and leader["expires"] > until and not _gone(leader["owner"]):
                return None
            former = leader["owner"] if leader else ""
            connection.execute(INHERIT, (former, now.timestamp()))
            (taken,) = connection.execute(_TAKE_OVER, (owner, expires)).fetchall()
            return int(taken["epoch"])

        return self._db.submit(work, fenced=False).result()

    def holder(self) -> tuple[str, datetime] | None:
        """Return the leader's name and the expiry of its lease, which may be in the past.

        None if nobody holds the lease, or if the process of its holder is known to be gone.
        """
        row = self._first(_LEADER)
        if row is None or _gone(row["owner"]):
            return None
        return row["owner"], from_timestamp(row["expires"])

    def bot(self, now: datetime) -> str | None:
        """Return the name of the bot that leads; None if none does, as during a cleanup."""
        leader = self.holder()
        if leader is None or leader[1] <= now or leader[0].endswith(CLEANUP):
            return None
        return leader[0]

    def release(self, owner: str) -> None:
        """Release the lease if `owner` holds it, so that another bot can lead at once."""
        self._db.submit(
            lambda connection: connection.execute(_RELEASE, (owner,)), fenced=False
        ).result()

    def take_away(self) -> None:
        """End the lease in a copied database: its holder leads on the original, not on the copy."""
        self._db.submit(lambda connection: connection.execute(_TAKE_AWAY), fenced=False).result()

    def fence(self, owner: str, epoch: int) -> None:
        """Make fenced writes fail with `Fenced` unless this owner leads in this epoch."""
        if self._db.writer is not None:
            self._db.writer.fence = Fence(owner, epoch)


def this_process() -> str:
    """Return this process's name as an owner of the lease, `host:boot:pid:start`.

    From this name, another process on the host can tell whether this one still runs.
    """
    pid = os.getpid()
    return f"{_host()}:{_boot()}:{pid}:{_started(pid)}"


def may_run(former: str) -> bool:
    """Whether a former leader's process might still exist. False if the name is empty."""
    return bool(former) and not _gone(former)


def runs_here(owner: str) -> bool:
    """Whether an owner is a running process of this host and its pid namespace."""
    host, boot, pid, start = _parts(owner)
    here = host == _host() and boot == _boot() and pid.isdigit()
    return here and start == _started(int(pid))


def _gone(owner: str) -> bool:
    """Whether the process `owner` ran on this host and in this pid namespace, and has ended."""
    host, boot, pid, _ = _parts(owner)
    return host == _host() and bool(boot) and pid.isdigit() and not runs_here(owner)


def _parts(owner: str) -> list[str]:
    """Return host, boot, process id and start, each empty if missing from the owner's name."""
    return (owner.split(":") + [""] * 4)[:4]


def _host() -> str:
    # A process id is valid within one pid namespace, and containers of one machine may have the
    # same host name.
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return f"{socket.gethostname()}/{namespace.strip('pid:[]')}"


def _boot() -> str:
    return _BOOT.read_text().strip() if _BOOT.exists() else ""


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since the boot; empty if it does not run.

    https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    state, *fields = stat.rpartition(")")[2].split()  # the name before it may contain anything
    return "" if state in "ZX" else fields[18]
