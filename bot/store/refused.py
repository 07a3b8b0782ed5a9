"""The hosts to which the proxy refused to connect sessions.

At most 50 hosts are stored per session, and one count for the rest.
"""

import sqlite3
from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import RowDecoder, columns, skip_corrupt

_MOST = 50
_COUNT_AGAIN = """UPDATE refused_hosts SET times = times + :times, last = :now
    WHERE session = :session AND host = :host AND port = :port"""
_ADD = """INSERT INTO refused_hosts (session, host, port, public, times, first, last)
    VALUES (:session, :host, :port, :public, :times, :now, :now)"""
KNOWN_HOSTS = "SELECT count(*) FROM refused_hosts WHERE session = ?"
REFUSED_HOSTS = """SELECT host, port, public, times, first, last FROM refused_hosts
    WHERE session = ? ORDER BY last DESC, host, port"""
_KNOWN_SESSION = "SELECT 1 FROM sessions WHERE id = ?"


class Destination(Struct, frozen=True, kw_only=True):
    """A host and port to which the proxy refused to connect a session."""

    session: str
    host: str  #: Untrusted: an agent chose it. If empty, stands for all hosts after the first 50.
    port: int
    public: bool = True  #: If False, the host is allowed, but has no public address.


class RefusedHost(Struct, frozen=True, kw_only=True):
    """A host and port that was refused to a session, with the number of refusals."""

    host: str  #: Untrusted: an agent chose it. If empty, stands for all hosts after the first 50.
    port: int
    public: bool  #: If False, the host is allowed, but has no public address.
    times: int
    first: datetime  #: The first refusal.
    last: datetime


_refused = RowDecoder(RefusedHost, "refused_hosts", "host")


class RefusedTable(StoreTable):
    """The hosts that were refused to each session."""

    def of(self, session: str) -> list[RefusedHost]:
        """Return the hosts that were refused to a session, the latest refusal first."""
        return list(skip_corrupt(_refused, self._all(REFUSED_HOSTS, (session,))))

    def record(self, refused: Mapping[Destination, int]) -> None:
        """Add these numbers of refusals to the stored counts. Unknown sessions are ignored."""
        now = self._db.clock().timestamp()

        def work(connection: sqlite3.Connection) -> set[str]:
            changed = set()
            for one, times in refused.items():
                if connection.execute(_KNOWN_SESSION, (one.session,)).fetchone():
                    _count(connection, one, times, now)
                    changed.add(one.session)
            return changed

        self._change(work)


def _count(connection: sqlite3.Connection, one: Destination, times: int, now: float) -> None:
    values = {**columns(one), "times": times, "now": now}
    if connection.execute(_COUNT_AGAIN, values).rowcount:
        return
    known: int = connection.execute(KNOWN_HOSTS, (one.session,)).fetchone()[0]
    if known >= _MOST and one.host:
        _count(connection, Destination(session=one.session, host="", port=0), times, now)
    else:
        connection.execute(_ADD, values)
