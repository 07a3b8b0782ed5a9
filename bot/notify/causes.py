"""Finds what people are to be notified of, from the database, and makes the messages."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct

from bot.notify.message import Notification
from bot.store import EndedSession, Incident, NotificationsTable, WaitingSession
from bot.text import notifications as say
from config.tables import NotifierSettings
from lifecycle.judge.reasons import ADVICE, Priority, advice_on
from lifecycle.model.status import Reason, Status
from runtimes.agents.shared.dialogs import choices_in

#: The priorities, from the least to the most urgent.
_PRIORITIES = (Priority.INFO, Priority.WARNING, Priority.ACTION, Priority.URGENT)
#: For each type of message, the type of the message that reports the end of its cause.
_OVER = {"session.needs_person": "session.resolved", "incident.opened": "incident.resolved"}
_DAY = timedelta(days=1)


class Cause(Struct, frozen=True, kw_only=True):
    """Something that people are notified of once."""

    id: str
    session: str = ""  #: Its id; if empty, the cause concerns the whole bot.
    incident: str = ""  #: The incident's key; empty if the cause is not an incident.
    project: str = ""
    priority: str
    message: Callable[[], Notification]


def undelivered_by(notifier: str) -> str:
    """Return the key of the incident that reports a failing notifier."""
    return f"notify {notifier}"


def concerns(settings: NotifierSettings, cause: Cause) -> bool:
    """Whether a notifier's settings select a cause, by its priority and project.

    Settings with `projects` select no cause without a project, such as an incident.
    """
    least = _PRIORITIES.index(Priority(settings.priority))
    if _PRIORITIES.index(Priority(cause.priority)) < least:
        return False
    return not settings.projects or cause.project in settings.projects


def lasting(
    waiting: Sequence[WaitingSession], incidents: Sequence[Incident], page: str, now: datetime
) -> Iterator[Cause]:
    """Yield the causes that exist now: sessions that need people, and open incidents.

    `page` is the URL of the web pages, with a trailing slash.
    """
    for one in waiting:
        yield Cause(
            id=one.cause,
            session=one.session,
            project=one.project,
            priority=_priority(one.reason, Priority.ACTION),
            message=partial(_needed, one, page, now),
        )
    for incident in incidents:
        yield Cause(
            id=f"incident {incident.key} {incident.since.isoformat()}",
            incident=incident.key,
            priority=Priority.URGENT,
            message=partial(_opened, incident, page, now),
        )


def _priority(reason: str, otherwise: Priority) -> Priority:
    advice = ADVICE.get(reason)
    return advice.priority if advice else otherwise


def _opened(incident: Incident, page: str, now: datetime) -> Notification:
    data = {"text": incident.text, "since": incident.since, "url": page}
    words = say.incident(incident.text, page)
    return Notification.of("incident.opened", now, Priority.URGENT, words, data)


def _needed(one: WaitingSession, page: str, now: datetime) -> Notification:
    asks = one.reason == Reason.AGENT_QUESTION
    choices = choices_in(one.question) if asks else None
    url = f"{page}sessions/{one.session}{'#text' if asks else ''}"
    priority, remedy = _priority(one.reason, Priority.ACTION), advice_on(one.reason)
    words = say.needed(
        *(one.session, one.title, one.status, one.because, remedy, priority, choices, url)
    )
    data = {
        **_about(one, url),
        "status": one.status,
        "because": one.because,
        "remedy": remedy,
        "question": one.question if asks else "",
        "choices": choices or (),
        "since": one.since,
    }
    return Notification.of("session.needs_person", now, priority, words, data)


def outcome(one: EndedSession, page: str) -> Cause:
    """Return the cause of a notification that a session has ended.

    `page` is the URL of the web pages, with a trailing slash.
    """
    ended = one.ended
    merged = ended.status is Status.MERGED
    priority = Priority.INFO if merged else _priority(ended.reason, Priority.INFO)
    return Cause(
        id=f"ended {ended.at.isoformat()}",
        session=one.session,
        project=one.project,
        priority=priority,
        message=partial(_ended, one, page, priority),
    )


def _ended(one: EndedSession, page: str, priority: Priority) -> Notification:
    ended, url = one.ended, f"{page}sessions/{one.session}"
    remedy = "" if ended.status is Status.MERGED else advice_on(ended.reason)
    words = say.ended(one.session, one.title, ended.status, ended.because, remedy, url)
    data = {
        **_about(one, url),
        "status": ended.status,
        "because": ended.because,
        "remedy": remedy,
        "at": ended.at,
    }
    return Notification.of("session.ended", ended.at, priority, words, data)


def over(raised: Notification, now: datetime) -> Notification:
    """Return a message which says that the cause of the earlier message `raised` is gone."""
    about, page = raised.data, str(raised.data["url"])
    if raised.type == "incident.opened":
        words = say.incident_over(about["text"], page)
    else:
        page = page.partition("#")[0]
        words = say.no_longer_needed(about["session"], about["title"], about["because"], page)
    data = {**about, "url": page, "raised": raised.id}
    return Notification.of(_OVER[raised.type], now, raised.priority, words, data)


def digest(
    settings: NotifierSettings,
    at: datetime,
    table: NotificationsTable,
    incidents: Sequence[Incident],
    page: str,
) -> Cause:
    """Return the cause of a digest: what needs people now, and what ended in the day before `at`.

    `at` is in the notifier's time zone. `page` is the URL of the web pages, with a trailing slash.
    If the settings name `projects`, the digest has only sessions of these, and no incidents.
    """
    return Cause(
        id=f"digest {at.date().isoformat()}",
        priority=Priority.INFO,
        message=partial(_summary, settings.projects, at, table, incidents, page),
    )


def _summary(
    projects: Sequence[str],
    at: datetime,
    table: NotificationsTable,
    incidents: Sequence[Incident],
    page: str,
) -> Notification:
    waiting = [one for one in table.waiting() if not projects or one.project in projects]
    ended = [
        one
        for one in table.ended(at - _DAY)
        if one.ended.at <= at and (not projects or one.project in projects)
    ]
    problems = [] if projects else [incident.text for incident in incidents]
    words = say.digest(
        at,
        [say.DigestLine(one.session, one.title, one.because) for one in waiting],
        [say.DigestLine(one.session, one.title, one.ended.because) for one in ended],
        problems,
        page,
    )
    where = f"{page}sessions/{{}}".format
    data = {
        "waiting": [{**_about(one, where(one.session)), "because": one.because} for one in waiting],
        "ended": [{**_about(one, where(one.session)), "status": one.ended.status} for one in ended],
        "incidents": problems,
        "url": page,
    }
    return Notification.of("digest", at, Priority.INFO, words, data)


def _about(one: WaitingSession | EndedSession, url: str) -> dict[str, str | int]:
    return {
        "session": one.session,
        "project": one.project,
        "repository": one.repository,
        "issue": one.number,
        "title": one.title,
        "url": url,
    }
