"""Finds causes to notify people of, stores a message for each notifier, and sends them.

Notifiers do not subscribe to events. They compare the causes in the database with the messages
stored for them, so a crash neither loses nor repeats a message. The exception is a crash after a
receiver has responded and before the bot has recorded that: then the message is repeated, with the
same `webhook-id` or with a text that says so.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bot.notify.causes import (
    Cause,
    concerns,
    digest,
    lasting,
    outcome,
    over,
    undelivered_by,
)
from bot.notify.message import Notification, NotSent, Sender, decode_notification
from bot.store import (
    DueNotification,
    Incident,
    NewNotification,
    NotificationEvent,
    RaisedNotification,
    Store,
    StoreFailure,
)
from bot.system.clock import Clock
from bot.system.crash_points import AtCrashPoint, CrashPoint
from bot.system.metrics import NOTIFICATIONS
from bot.text.notifications import undelivered
from config.schedules import is_quiet, last_digest
from config.tables import NotifierSettings
from lifecycle.model.policy import delay
from lifecycle.read import sentences

log = logging.getLogger(__name__)

#: How long a cause must be gone until its end is sent, because many causes soon return.
_GONE_SECONDS = 60.0
#: An incident is opened when a receiver has failed for this long.
_INCIDENT_SECONDS = 300.0
#: How long the bot retries a message that is useless later.
_TRIED = timedelta(days=1)
#: Ends of sessions may be stored out of order by this much, so the latest ones are read again.
_OVERLAP = timedelta(minutes=10)
_RAISED, _RESOLVED = NotificationEvent.RAISED, NotificationEvent.RESOLVED
_ONCE = NotificationEvent.ONCE
#: A cause: the id of its session, and its own id.
_Key = tuple[str, str]


@dataclass(eq=False)
class Notifier:
    """One receiver: its settings, and the state of sending to it."""

    name: str
    settings: NotifierSettings
    sender: Sender
    sending: int = field(default=0, init=False)  #: The number of the message being sent, or 0.
    work: Future[None] | None = field(default=None, init=False)
    failures: int = field(default=0, init=False)  #: Since the last success.
    failing_since: datetime | None = field(default=None, init=False)
    retry_at: datetime | None = field(default=None, init=False)
    #: The recent one-time causes, such as ended sessions, that already have a message.
    stored: frozenset[_Key] = field(default=frozenset(), init=False)

    @property
    def cursor(self) -> str:
        """Return the name of the notifier's cursor, which is a time in the database.

        Sessions that ended before that time, and digests due before that time, are skipped.
        """
        return f"notify {self.name}"


@dataclass(eq=False)
class Notifications:
    """Runs all notifiers. Only one thread may call `look`; other threads send messages."""

    store: Store
    notifiers: Sequence[Notifier]
    page: str  #: The URL of the web pages, with a trailing slash.
    redact: Callable[[Notification], Notification]
    first_seconds: float  #: The pause after a first failure; later pauses double.
    clock: Clock
    crash_point: AtCrashPoint
    may_act: Callable[[], bool]  #: Whether this bot holds the lease.
    executor: Executor  #: It has a thread for each notifier.
    on_sent: Callable[[], None] = lambda: None  #: Called after each message that was sent.
    #: Since when a message's cause is gone, by number of the message.
    _gone: dict[int, datetime] = field(default_factory=dict, init=False)
    _began: bool = field(default=False, init=False)

    def look(self) -> None:
        """Store new messages, and start to send each notifier's next due message.

        The first call deletes the messages of notifiers that are no longer configured.
        """
        if not self._began:
            self.store.notifications.keep_only([one.name for one in self.notifiers])
            self._began = True
        now = self.clock()
        self._store_changes(now)
        for notifier in self.notifiers:
            self._send_next(notifier, now)

    def rest(self, seconds: float) -> bool:
        """Wait until running sends have ended; return False if they take more than `seconds`."""
        work = [one.work for one in self.notifiers if one.work is not None]
        return not wait(work, seconds).not_done

    # -- what there is to say --------------------------------------------------------------------

    def _store_changes(self, now: datetime) -> None:
        table, incidents = self.store.notifications, self.store.incidents.current()
        causes = list(lasting(table.waiting(), incidents, self.page, now))
        raised = table.raised()
        new: list[NewNotification] = []
        withdrawn: list[int] = []
        resolved: list[tuple[int, NewNotification]] = []
        cursors: dict[str, datetime] = {}
        happened: dict[Notifier, frozenset[_Key]] = {}
        for notifier in self.notifiers:
            wanted = {
                (cause.session, cause.id): cause
                for cause in causes
                if concerns(notifier.settings, cause)
                # A notifier cannot notify people of its own failure.
                and cause.incident != undelivered_by(notifier.name)
            }
            known = {
                (one.session, one.cause): one for one in raised if one.notifier == notifier.name
            }
            new += [_new(notifier, wanted[key], _RAISED) for key in wanted if key not in known]
            for one in known.values():
                if (one.session, one.cause) in wanted or one.seq == notifier.sending:
                    self._gone.pop(one.seq, None)
                elif one.state == "due" and not one.attempting:
                    withdrawn.append(one.seq)
                elif self._is_over(one, wanted, now):
                    resolved.append((one.seq, _resolved(one, now)))
            once, cursor = self._happened(notifier, incidents, now)
            new += [_new(notifier, once[key], _ONCE) for key in once if key not in notifier.stored]
            happened[notifier] = frozenset(once)
            cursors |= cursor
        if new or withdrawn or resolved or cursors:
            table.record(now, new=new, withdrawn=withdrawn, resolved=resolved, cursors=cursors)
        for notifier, keys in happened.items():
            notifier.stored = keys
        self._gone = {one.seq: self._gone[one.seq] for one in raised if one.seq in self._gone}

    def _is_over(
        self, one: RaisedNotification, wanted: Mapping[_Key, Cause], now: datetime
    ) -> bool:
        """Whether to notify people that the cause of the message `one` is gone.

        `wanted` has the notifier's current causes, without this one. Returns True if this cause has
        been gone for a minute, unless `wanted` has another cause in the same session.
        """
        # A session that needs people for another reason may need them for this one again.
        if one.session and any(session == one.session for session, _ in wanted):
            return False
        gone = self._gone.setdefault(one.seq, now)
        return (now - gone).total_seconds() >= _GONE_SECONDS

    def _happened(
        self, notifier: Notifier, incidents: Sequence[Incident], now: datetime
    ) -> tuple[dict[_Key, Cause], dict[str, datetime]]:
        """Return the recent one-time causes, and the new time of the notifier's cursor.

        The causes include those that already have a message. The second result maps the
        cursor's name to its new time; it is empty if the time has not changed.
        """
        table, settings = self.store.notifications, notifier.settings
        since = self.store.cursors.get(notifier.cursor)
        if since is None:  # The notifier is new: older ends are not reported.
            return {}, {notifier.cursor: now}
        since = max(since, now - _TRIED)
        ended = table.ended(since)
        outcomes = (outcome(one, self.page) for one in ended)
        found = [cause for cause in outcomes if concerns(settings, cause)]
        at = last_digest(settings, now)
        if at is not None and at > since:
            found.append(digest(settings, at, table, incidents, self.page))
        begin = max((one.ended.at - _OVERLAP for one in ended), default=since)
        cursor = {notifier.cursor: begin} if begin > since else {}
        return {(cause.session, cause.id): cause for cause in found}, cursor

    # -- sending ---------------------------------------------------------------------------------

    def _send_next(self, notifier: Notifier, now: datetime) -> None:
        if notifier.work is not None and not notifier.work.done():
            return
        if notifier.retry_at is not None and now < notifier.retry_at:
            return
        urgent = is_quiet(notifier.settings, now)
        due = self.store.notifications.due(notifier.name, now, urgent=urgent)
        if due is not None:
            notifier.sending = due.seq
            notifier.work = self.executor.submit(self._send, notifier, due)

    def _send(self, notifier: Notifier, due: DueNotification) -> None:
        try:
            self._attempt(notifier, due)
        except StoreFailure as failure:
            # The attempt counts as interrupted, and is repeated.
            self._pause(notifier, f"the state of a message could not be recorded: {failure}")
        except Exception:
            log.exception("notifier %s: a message could not be sent", notifier.name)
            with suppress(StoreFailure):
                self._failed(notifier, due, "the bot failed, see its log")
        finally:
            notifier.sending = 0

    def _attempt(self, notifier: Notifier, due: DueNotification) -> None:
        table, about = self.store.notifications, f"{notifier.name} {due.event}"
        if not self.may_act() or not table.begin(due.seq):
            return
        self.crash_point(CrashPoint.TAKEN, about)
        message = self.redact(decode_notification(due.message))
        try:
            notifier.sender.send(message, repeated=due.attempting)
        except NotSent as failure:
            self._failed(notifier, due, str(failure), perhaps_sent=failure.perhaps)
            return
        self.crash_point(CrashPoint.DONE, about)
        table.mark_sent(due.seq, self.clock())
        self.crash_point(CrashPoint.MARKED, about)
        NOTIFICATIONS.labels(notifier.name, "sent").inc()
        log.debug("notifier %s: sent: %s", notifier.name, message.title)
        if notifier.failures:
            log.info("notifier %s: works again", notifier.name)
        notifier.failures, notifier.failing_since, notifier.retry_at = 0, None, None
        self.store.incidents.clear(undelivered_by(notifier.name), self.clock())
        self.on_sent()

    def _failed(
        self, notifier: Notifier, due: DueNotification, why: str, *, perhaps_sent: bool = False
    ) -> None:
        NOTIFICATIONS.labels(notifier.name, "failed").inc()
        table, now, next_at = self.store.notifications, self.clock(), self._pause(notifier, why)
        # A message that a person is needed stays useful as long as the cause lasts.
        if due.event is not _RAISED and now - due.created > _TRIED:
            table.mark_failed(due.seq, why, now)
        else:
            # An earlier attempt may have arrived, too.
            table.mark_retry(due.seq, why, next_at, perhaps_sent=perhaps_sent or due.attempting)
        since = notifier.failing_since or now
        if (now - since).total_seconds() >= _INCIDENT_SECONDS:
            text = undelivered(notifier.name, sentences.clock(since), why)
            self.store.incidents.report(undelivered_by(notifier.name), text, now)

    def _pause(self, notifier: Notifier, why: str) -> datetime:
        """Count a failure; return when the notifier tries again."""
        level, now = logging.DEBUG if notifier.failures else logging.WARNING, self.clock()
        log.log(level, "notifier %s: not delivered, tried again later: %s", notifier.name, why)
        notifier.failures += 1
        notifier.failing_since = notifier.failing_since or now
        pause = timedelta(seconds=delay(notifier.failures, self.first_seconds))
        notifier.retry_at = now + pause
        return notifier.retry_at


def _new(notifier: Notifier, cause: Cause, event: NotificationEvent) -> NewNotification:
    return NewNotification(
        notifier=notifier.name,
        session=cause.session,
        cause=cause.id,
        event=event,
        priority=cause.priority,
        message=cause.message().encoded(),
    )


def _resolved(one: RaisedNotification, now: datetime) -> NewNotification:
    message = over(decode_notification(one.message), now)
    return NewNotification(
        notifier=one.notifier,
        session=one.session,
        cause=one.cause,
        event=_RESOLVED,
        priority=message.priority,
        message=message.encoded(),
    )
