"""When notifiers send: quiet hours, digests, and receivers that fail."""

import logging

import pytest

from bot.notify.causes import undelivered_by
from bot.store import DatedKind
from bot.system.metrics import COUNTERS
from lifecycle.model.status import Reason, Status
from tests.notify.conftest import PAGE, SECRET, Desk, settings

# -- quiet hours and digests -----------------------------------------------------------------------


def test_only_urgent_messages_are_sent_in_quiet_hours(desk: Desk) -> None:
    desk.starts(team=settings(quiet="22:00-07:00", time_zone="Europe/Berlin"))
    desk.at("2030-01-02T21:30")  # 22:30 in Berlin.
    waiting, solved = desk.scenario.session(12), desk.scenario.session(13)
    desk.needs(waiting)
    desk.needs(solved)
    desk.looks()
    assert desk.team.kept == []
    desk.store.incidents.report("disk", "the disk is full", desk.clock())
    desk.looks()
    assert desk.team.types == ["incident.opened"]
    desk.decides(solved)
    desk.at("2030-01-03T05:59")
    assert desk.team.types == ["incident.opened"]
    desk.at("2030-01-03T06:00")
    assert [message.data.get("session") for message in desk.team.kept[1:]] == [waiting]


def test_a_digest_is_sent_once_a_day_at_its_time(desk: Desk) -> None:
    desk.starts(team=settings(digest="08:30", time_zone="Europe/Berlin", priority="urgent"))
    desk.at("2030-07-01T06:45")
    assert desk.team.kept == [], "today's time was before the notifier was there"
    merged, waiting = desk.scenario.session(12), desk.scenario.session(13)
    desk.at("2030-07-01T07:00")  # 09:00 in Berlin.
    desk.ends(merged, Status.MERGED, Reason.PR_MERGED, "#34 was merged")
    desk.needs(waiting)
    desk.at("2030-07-02T06:29")
    assert desk.team.kept == []
    desk.at("2030-07-02T06:30")
    desk.starts(team=desk.notifications.notifiers[0].settings)
    desk.later(3600)
    (digest,) = desk.team.kept
    assert digest.title == "Mergewright on 2 July 2030"
    assert digest.text.splitlines() == [
        "Sessions that need you: 1",
        "- widgets-13 It breaks: all failed checks also fail on main: unit",
        "",
        "Ended since yesterday: 1",
        "- widgets-12 It breaks: #34 was merged",
        "",
        f"See: {PAGE}",
    ]
    assert [one["session"] for one in digest.data["waiting"]] == [waiting]
    desk.at("2030-07-03T06:30")
    assert desk.team.kept[1].text.startswith("Sessions that need you: 1\n")
    assert "Ended since yesterday: none" in desk.team.kept[1].text


def test_a_digest_that_was_due_while_the_bot_was_down_is_sent_late(desk: Desk) -> None:
    desk.starts(team=settings(digest="08:30"))
    desk.at("2030-07-01T08:00")
    desk.starts(team=settings(digest="08:30"))
    desk.at("2030-07-01T15:00")
    assert desk.team.types == ["digest"]


def test_a_digest_lists_at_most_ten_sessions(desk: Desk) -> None:
    desk.starts(team=settings(digest="08:30", priority="urgent"))
    desk.at("2030-07-01T08:00")
    for number in range(12):
        desk.needs(desk.scenario.session(100 + number))
    desk.at("2030-07-01T08:30")
    (digest,) = desk.team.kept
    assert "Sessions that need you: 12" in digest.text
    assert "- and 2 more" in digest.text
    assert len(digest.data["waiting"]) == 12


# -- failures --------------------------------------------------------------------------------------


def test_a_receiver_that_is_down_is_tried_again_with_pauses(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    desk.team.down = "the receiver answers 503"
    desk.needs(desk.scenario.session(12))
    desk.needs(desk.scenario.session(13))
    attempts = []
    for _ in range(7):
        desk.looks()
        attempts.append(desk.team.attempts)
        desk.clock.passes(1)
    assert attempts == [1, 1, 2, 2, 2, 2, 3], "after 2 and 4 seconds, for all messages together"
    desk.team.down = ""
    desk.later(10)
    assert [message.data["session"] for message in desk.team.kept] == ["widgets-13", "widgets-12"]
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "notifier team: not delivered, tried again later: the receiver answers 503",
        "notifier team: works again",
    ]


def test_attempts_are_counted(desk: Desk) -> None:
    def counted() -> list[float]:
        name = "mergewright_notifications_total"
        labels = [{"notifier": "team", "result": result} for result in ("sent", "failed")]
        return [COUNTERS.get_sample_value(name, one) or 0 for one in labels]

    sent, failed = counted()
    desk.team.down = "refused"
    desk.needs(desk.scenario.session(12))
    desk.looks()
    assert counted() == [sent, failed + 1]
    desk.team.down = ""
    desk.later(3)
    assert counted() == [sent + 1, failed + 1]


def test_a_receiver_that_stays_down_is_an_incident_for_the_others(desk: Desk) -> None:
    desk.starts(team=settings(), others=settings())
    desk.team.down = "the receiver answers 503"
    desk.needs(desk.scenario.session(12))
    for _ in range(5):
        desk.later(90)
    (incident,) = desk.store.incidents.current()
    assert incident.key == undelivered_by("team")
    assert "delivered no message since 2030-01-02 03:05 UTC: the receiver answers" in incident.text
    assert "mergewright notify --test team" in incident.text
    assert desk.senders["others"].types == ["session.needs_person", "incident.opened"]
    desk.team.down = ""
    desk.later(300)
    desk.later(61)
    assert desk.store.incidents.current() == []
    assert desk.team.types == ["session.needs_person"], "of its own failure it says nothing"
    assert desk.senders["others"].types[2:] == ["incident.resolved"]


def test_what_is_of_no_use_later_is_tried_for_a_day(desk: Desk) -> None:
    desk.looks()
    desk.team.down = "refused"
    waiting = desk.scenario.session(13)
    desk.needs(waiting)
    desk.clock.passes(1)
    desk.ends(desk.scenario.session(12), Status.MERGED, Reason.PR_MERGED, "#34 was merged")
    desk.looks()
    for _ in range(4):
        desk.later(86_401)
    desk.team.down = ""
    desk.later(86_401)
    desk.later(86_401)
    assert desk.team.types == ["session.needs_person"]


def test_a_program_that_fails_counts_as_a_failure(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    desk.needs(desk.scenario.session(12))
    with monkeypatch.context() as broken:
        broken.setattr(desk.team, "send", breaks)
        desk.looks()
    assert desk.team.kept == []
    desk.later(3)
    assert desk.team.types == ["session.needs_person"]
    assert desk.team.repeated == [False]


def test_a_message_that_may_have_arrived_is_repeated_as_such_and_resolved(desk: Desk) -> None:
    session = desk.scenario.session(12)
    desk.needs(session)
    desk.team.down, desk.team.perhaps = "timed out", True
    desk.looks()
    desk.team.down, desk.team.perhaps = "refused", False
    desk.later(3)
    desk.team.down = ""
    desk.later(9)
    assert desk.team.repeated == [True]

    other = desk.scenario.session(13)
    desk.needs(other)
    desk.team.down, desk.team.perhaps = "timed out", True
    desk.later(20)
    desk.team.down = ""
    desk.ends(other, Status.MERGED, Reason.PR_MERGED, "#34 was merged")
    desk.later(600)
    desk.later(61)
    assert "session.resolved" in desk.team.types


def test_nothing_is_sent_without_the_lease(desk: Desk) -> None:
    desk.needs(desk.scenario.session(12))
    desk.notifications.may_act = lambda: False
    desk.looks()
    assert desk.team.attempts == 0
    desk.notifications.may_act = lambda: True
    desk.looks()
    assert desk.team.repeated == [False]


def test_secrets_are_masked_in_what_is_sent(desk: Desk) -> None:
    desk.needs(desk.scenario.session(12), because=f"it said {SECRET}")
    desk.looks()
    (message,) = desk.team.kept
    assert SECRET not in str(message)
    assert message.data["because"] == "it said [secret]"


def test_sent_messages_expire_but_not_those_whose_cause_lasts(desk: Desk) -> None:
    lasting, solved = desk.scenario.session(12), desk.scenario.session(13)
    desk.needs(lasting)
    desk.needs(solved)
    desk.looks()
    desk.decides(solved)
    desk.looks()
    desk.later(61)
    desk.clock.passes(3600)
    expiry, kind = desk.store.expiry, DatedKind.NOTIFICATIONS
    assert expiry.dated(kind, desk.clock()).rows == 2
    expiry.delete_dated(kind, desk.clock())
    assert expiry.dated(kind, desk.clock()).rows == 0
    desk.looks()
    assert len(desk.team.kept) == 3, "what lasts is not sent again"


def test_an_idle_bot_writes_nothing(desk: Desk) -> None:
    desk.starts(team=settings(digest="03:05"))
    desk.needs(desk.scenario.session(12))
    desk.looks()
    desk.clock.passes(1)
    desk.ends(desk.scenario.session(13), Status.MERGED, Reason.PR_MERGED, "#34 was merged")
    desk.later(120)
    assert desk.team.types == ["session.needs_person", "session.ended", "digest"]
    seen: list[str] = []
    desk.store.db.write(lambda connection: connection.set_trace_callback(seen.append))
    seen.clear()
    desk.later(30)
    desk.later(3600)
    assert seen == []
