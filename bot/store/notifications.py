"""Stores the messages of notifiers, from the discovery of their cause until their delivery.

A message is stored once for each notifier and cause, then sent, and then marked as sent. Another
message may report the end of the cause.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from msgspec import Struct

from bot.store.database import StoreTable
from bot.store.rows import RowDecoder, encoded, skip_corrupt
from lifecycle.model.facts import Ended

_SUBJECT = """id AS session, project, repository, number, issue ->> 'title' AS title, status,
        reason, because"""
WAITING = f"""SELECT {_SUBJECT}, since, cause, coalesce(agent ->> 'question', '') AS question
    FROM sessions WHERE cause <> '' ORDER BY since, id"""
ENDED = f"""SELECT {_SUBJECT}, ended FROM sessions WHERE ended IS NOT NULL
    AND ended ->> 'at' > ? ORDER BY ended ->> 'at', id"""
#: The messages whose cause has not ended as far as the bot knows.
RAISED = """SELECT seq, notifier, session, cause, state, attempting, message FROM notifications
    WHERE event = 'raised' AND gone_at IS NULL ORDER BY seq"""
DUE_NOTIFICATIONS = """SELECT seq, event, attempting, created, message
    FROM notifications WHERE state = 'due' AND notifier = :notifier AND next_at <= :now
        AND (NOT :urgent OR priority = 'urgent')
    ORDER BY next_at, seq LIMIT 1"""
UNDELIVERED = """SELECT notifier, count(*) AS messages FROM notifications WHERE state = 'due'
    GROUP BY notifier"""
_ADD = """INSERT INTO notifications
        (notifier, session, cause, event, priority, next_at, created, message)
    VALUES (:notifier, :session, :cause, :event, :priority, :now, :now, :message)
    ON CONFLICT DO NOTHING"""
_WITHDRAW = "DELETE FROM notifications WHERE seq = ? AND state = 'due' AND attempting = 0"
# A message whose attempt was interrupted counts as sent, because it may have arrived.
_RESOLVE = """UPDATE notifications SET gone_at = :now, state = 'sent', attempting = 0,
        done_at = coalesce(done_at, :now)
    WHERE seq = :seq AND gone_at IS NULL"""
_SET_CURSOR = """INSERT INTO cursors (name, at) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET at = excluded.at"""
_BEGIN = "UPDATE notifications SET attempting = 1 WHERE seq = ? AND state = 'due'"
_SENT = """UPDATE notifications SET state = 'sent', attempting = 0, error = '', done_at = ?
    WHERE seq = ? AND state = 'due'"""
_RETRY = """UPDATE notifications SET attempting = ?, error = ?, next_at = ?
    WHERE seq = ? AND state = 'due'"""
_FAILED = """UPDATE notifications SET state = 'failed', attempting = 0, error = ?, done_at = ?
    WHERE seq = ? AND state = 'due'"""
_FORGET = """DELETE FROM notifications
    WHERE notifier NOT IN (SELECT value FROM json_each(?))"""


class NotificationEvent(StrEnum):
    """What a message reports about its cause."""

    RAISED = "raised"  #: The cause exists and lasts.
    RESOLVED = "resolved"  #: The cause has ended, after a message about it was sent or failed.
    ONCE = "once"  #: The cause happened and does not last.


class WaitingSession(Struct, frozen=True, kw_only=True):
    """A session with a reason to notify people."""

    session: str
    project: str
    repository: str
    number: int  #: The number of its issue; if 0, it has none.
    title: str
    status: str
    reason: str
    because: str
    since: datetime  #: Since when it has its status.
    cause: str  #: As in `SessionDecision`.
    question: str  #: What the agent asks; if empty, nothing.


class EndedSession(Struct, frozen=True, kw_only=True):
    """A session that has ended."""

    session: str
    project: str
    repository: str
    number: int
    title: str
    ended: Ended


class NewNotification(Struct, frozen=True, kw_only=True):
    """A message to store for a notifier."""

    notifier: str
    session: str = ""  #: If empty, the message is a digest or concerns an incident.
    cause: str
    event: NotificationEvent
    priority: str
    message: str  #: JSON.


class RaisedNotification(Struct, frozen=True, kw_only=True):
    """A message whose cause still exists, as far as the bot knows."""

    seq: int
    notifier: str
    session: str
    cause: str
    state: str  #: `due`, `sent` or `failed`.
    attempting: bool  #: Whether an attempt to send it has begun, and it may have arrived.
    message: str


class DueNotification(Struct, frozen=True, kw_only=True):
    """A message to send now."""

    seq: int
    event: NotificationEvent
    attempting: bool  #: Whether an attempt was interrupted, so the message may have arrived.
    created: datetime
    message: str


_waiting = RowDecoder(WaitingSession, "sessions", "session")
_ended = RowDecoder(EndedSession, "sessions", "session")
_raised = RowDecoder(RaisedNotification, "notifications", "seq")
_due = RowDecoder(DueNotification, "notifications", "seq")


class NotificationsTable(StoreTable):
    """The messages of all notifiers, and the sessions that cause them."""

    def waiting(self) -> list[WaitingSession]:
        """Return the sessions of which people are to be notified, the oldest status first."""
        return list(skip_corrupt(_waiting, self._all(WAITING)))

    def ended(self, since: datetime) -> list[EndedSession]:
        """Return the sessions that ended after a time, in the order of their ends."""
        # SQL compares times in UTC as text, with microseconds or not: start at the whole second.
        rows = self._all(ENDED, (since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),))
        return [one for one in skip_corrupt(_ended, rows) if one.ended.at > since]

    def raised(self) -> list[RaisedNotification]:
        """Return the messages whose cause still exists, as far as the bot knows."""
        return list(skip_corrupt(_raised, self._all(RAISED)))

    def record(
        self,
        now: datetime,
        *,
        new: Sequence[NewNotification] = (),
        withdrawn: Sequence[int] = (),
        resolved: Sequence[tuple[int, NewNotification]] = (),
        cursors: Mapping[str, datetime] = {},
    ) -> None:
        """Store the results of one check of all causes, in one transaction.

        A `new` message is ignored if its notifier already has one for the same session and cause;
        messages whose cause is gone do not count. `withdrawn` are the `seq` of due messages to
        delete, unless they may have been sent. `resolved` pairs the `seq` of a message whose cause
        is gone with a new message that says so. `cursors` are set as in `CursorsTable`.
        """

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_WITHDRAW, [(seq,) for seq in withdrawn])
            follow_ups = []
            for seq, message in resolved:
                if connection.execute(_RESOLVE, {"seq": seq, "now": now.timestamp()}).rowcount:
                    follow_ups.append(message)
            for one in (*new, *follow_ups):
                values = {name: getattr(one, name) for name in one.__struct_fields__}
                connection.execute(_ADD, {**values, "now": now.timestamp()})
            rows = [(name, at.timestamp()) for name, at in cursors.items()]
            connection.executemany(_SET_CURSOR, rows)

        self._db.write(work)

    def due(self, notifier: str, now: datetime, *, urgent: bool) -> DueNotification | None:
        """Return a notifier's next due message, or None; with `urgent`, its next urgent one."""
        values = {"notifier": notifier, "now": now.timestamp(), "urgent": urgent}
        row = self._first(DUE_NOTIFICATIONS, values)
        return None if row is None else _due(row)

    def begin(self, seq: int) -> bool:
        """Record that an attempt begins. Returns False if the message is no longer due."""
        return self._execute(_BEGIN, (seq,)) == 1

    def mark_sent(self, seq: int, now: datetime) -> None:
        """Record that a message was sent successfully."""
        self._execute(_SENT, (now.timestamp(), seq))

    def mark_retry(
        self, seq: int, error: str, next_at: datetime, *, perhaps_sent: bool = False
    ) -> None:
        """Record a failed attempt. The next attempt is at `next_at`.

        `perhaps_sent` says whether the message may have arrived, as after an interrupted attempt.
        """
        self._execute(_RETRY, (perhaps_sent, error, next_at.timestamp(), seq))

    def mark_failed(self, seq: int, error: str, now: datetime) -> None:
        """Record that a message failed for good: there is no further attempt."""
        self._execute(_FAILED, (error, now.timestamp(), seq))

    def undelivered(self) -> dict[str, int]:
        """Return the number of unsent messages by notifier, without those that failed for good.

        Leaves out notifiers without any.
        """
        return {row["notifier"]: row["messages"] for row in self._all(UNDELIVERED)}

    def keep_only(self, notifiers: Sequence[str]) -> None:
        """Delete the messages of all notifiers except these."""
        self._execute(_FORGET, (encoded(notifiers),))
